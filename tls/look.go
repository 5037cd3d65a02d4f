package origincert

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"serve.zone/relay/duty/field"
)

// readWait bounds how long a look waits for its files.
const readWait = 5 * time.Second

// look reads and judges the files and takes up what is good. final tells that a
// refusal is published at once.
func (f *Files) look(final bool) error {
	token := <-f.looking
	defer func() { f.looking <- token }()
	now := f.cfg.Wall()
	found := f.read()
	defer clear(found.key.Content)
	digest := found.digest()
	defer f.tell(now)
	if held := f.current.Load(); held != nil && found.err == nil && held.digest == digest {
		f.suspect = sight{}
		f.lift(now)
		return nil
	}
	p, err := found.judge(now)
	if err == nil {
		p.digest = digest
		f.suspect = sight{}
		f.take(p, now)
		return nil
	}
	seen := sight{bad: true, digest: digest}
	errors.As(err, &seen.why)
	if final || seen == f.suspect {
		f.refuse(seen, now, err)
	}
	f.suspect = seen
	return fmt.Errorf("look at the certificate's files: %w", err)
}

// sight is what a look found that is not served: which bytes, and what is wrong
// with them. The zero sight is none.
type sight struct {
	bad    bool
	digest [sha256.Size]byte
	why    Refusal
}

// take makes a pair the one that is served.
func (f *Files) take(p *pair, now time.Time) {
	f.mu.Lock()
	f.current.Store(p)
	f.since, f.acceptedSince, f.refused = now, now, sight{}
	f.mu.Unlock()
	f.told = told{}
	f.metrics.loaded.Inc()
	f.publish(EventLoaded, p.host(), field.Expires(p.leaf.NotAfter))
}

// refuse notes that the files hold what is not served, and says it once.
func (f *Files) refuse(seen sight, now time.Time, err error) {
	f.mu.Lock()
	known := f.refused == seen
	if !known {
		f.refused, f.refusedSince = seen, now
	}
	f.mu.Unlock()
	if known {
		return
	}
	f.metrics.refused.Of(seen.why).Inc()
	fields := []field.Field{field.Reason(seen.why.String())}
	if err != error(seen.why) {
		fields = append(fields, field.Error(err)) // why a file could not be read
	}
	f.publish(EventRefused, fields...)
}

// lift notes that the files hold what is served again.
func (f *Files) lift(now time.Time) {
	f.mu.Lock()
	lifted := f.refused.bad
	if lifted {
		f.refused, f.acceptedSince = sight{}, now
	}
	f.mu.Unlock()
	if lifted {
		f.publish(EventLifted)
	}
}

// tell says once that the pair that is served nears its end, and that it has
// reached it.
func (f *Files) tell(now time.Time) {
	p := f.current.Load()
	if p == nil {
		return
	}
	begin, end := p.leaf.NotBefore, p.leaf.NotAfter
	switch {
	case stateAt(begin, end, now) == StateExpired:
		if !f.told.expired {
			f.told = told{expired: true, expiresSoon: true}
			f.publish(EventExpired, p.host(), field.Expires(end))
		}
	case expiresSoon(begin, end, now) && !f.told.expiresSoon:
		f.told.expiresSoon = true
		f.publish(EventExpiresSoon, p.host(), field.Expires(end))
	}
}

// look is what was read of the two files.
type look struct {
	chain, key File
	err        error // wraps CertificateUnreadable or KeyUnreadable
}

// digest tells what was read apart from what was read before, without keeping
// its bytes.
func (l *look) digest() (sum [sha256.Size]byte) {
	h := sha256.New()
	var head [12]byte
	binary.BigEndian.PutUint64(head[:], uint64(len(l.chain.Content)))
	binary.BigEndian.PutUint32(head[8:], uint32(l.key.Mode))
	h.Write(head[:])
	h.Write(l.chain.Content)
	h.Write(l.key.Content)
	h.Sum(sum[:0])
	return sum
}

func (l *look) judge(now time.Time) (*pair, error) {
	if l.err != nil {
		return nil, l.err
	}
	return judge(l.chain.Content, l.key.Content, l.key.Mode, now)
}

// errHung is a read that did not come back in time.
var errHung = errors.New("the file system did not answer within " + readWait.String())

// read reads both files, and waits readWait for it at most. A read that hangs
// is waited for again at the next look, and no other is begun meanwhile.
func (f *Files) read() look {
	if f.reading == nil {
		done := make(chan look, 1)
		go func() { done <- f.readBoth() }()
		f.reading = done
	}
	timer := time.NewTimer(readWait)
	defer timer.Stop()
	select {
	case found := <-f.reading:
		f.reading = nil
		return found
	case <-timer.C:
		return look{err: fmt.Errorf("%w: %w", CertificateUnreadable, errHung)}
	}
}

func (f *Files) readBoth() (found look) {
	var err error
	if found.chain, err = f.cfg.Read(f.cfg.CertFile); err != nil {
		found.err = fmt.Errorf("%w: %w", CertificateUnreadable, err)
		return found
	}
	if found.key, err = f.cfg.Read(f.cfg.KeyFile); err != nil {
		found.err = fmt.Errorf("%w: %w", KeyUnreadable, err)
	}
	return found
}
