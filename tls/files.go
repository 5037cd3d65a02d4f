package origincert

import (
	"context"
	"crypto/tls"
	"sync"
	"sync/atomic"
	"time"

	"serve.zone/relay/duty"
)

// lookEvery is the distance of two looks. Reading two small files whole sees
// what a change of links, mounts or times would hide, and costs nothing.
const lookEvery = 3 * time.Second

// FilesConfig is what Files are made from.
type FilesConfig struct {
	// CertFile and KeyFile name a PEM chain, the leaf first, and its key.
	CertFile, KeyFile string
	// Read reads a file; ReadFile if nil. It is the seam. What it returns
	// belongs to the caller, who zeroes the key.
	Read func(name string) (File, error)
	// Wall is the clock that dates are judged by; time.Now if nil.
	Wall   func() time.Time
	Events *duty.Events // of a catalogue with EventKinds; nil publishes nothing
}

// Files is the Source that two files make. All methods are safe for concurrent
// use.
type Files struct {
	cfg     FilesConfig
	metrics *metrics
	current atomic.Pointer[pair] // nil while there is none

	looking chan struct{} // holds one token; who has it looks, and owns what follows
	reading chan look     // a read that did not come back in time; nil when none
	suspect sight         // what was refused at the last look
	told    told          // what was said of the current pair

	mu            sync.Mutex // guards what follows, which is only shown
	since         time.Time  // when current was taken up, or the source made
	acceptedSince time.Time  // since when the files hold current
	refused       sight      // nothing when the files hold what is served
	refusedSince  time.Time
}

// told is what events have said of a pair, so that they say it once.
type told struct{ expired, expiresSoon bool }

var _ Source = (*Files)(nil)

// NewFiles returns a source that has no certificate yet. Reload looks for one.
func NewFiles(cfg FilesConfig) *Files {
	if cfg.Read == nil {
		cfg.Read = ReadFile
	}
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	f := &Files{cfg: cfg, looking: make(chan struct{}, 1), since: cfg.Wall()}
	f.looking <- struct{}{}
	f.metrics = newMetrics(f)
	return f
}

// GetCertificate returns the pair of the moment, to whatever name is asked for:
// the origin has one.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p := f.current.Load()
	if p == nil {
		return nil, ErrNone
	}
	return p.certificate, nil
}

// Names returns the host names and addresses of the certificate that is served,
// nil while there is none.
func (f *Files) Names() []string {
	if p := f.current.Load(); p != nil {
		return append([]string(nil), p.names...)
	}
	return nil
}

// NotAfter returns the end of the certificate that is served, the zero time
// while there is none.
func (f *Files) NotAfter() time.Time {
	if p := f.current.Load(); p != nil {
		return p.leaf.NotAfter
	}
	return time.Time{}
}

// Matches reports whether the certificate that is served is good for a host name
// or an address, by the rules of crypto/x509.
func (f *Files) Matches(host string) bool {
	p := f.current.Load()
	return p != nil && p.leaf.VerifyHostname(host) == nil
}

// Reload looks at the files now and judges at once what it finds. The error
// wraps the Refusal, and the reason why a file could not be read; the last good
// pair is then still served. It takes at most 5 s, and as long again while
// another look is under way.
func (f *Files) Reload() error { return f.look(true) }

// Run looks at the files every 3 s until the context ends. A pair that is good
// is taken at once; one that is not is refused when it still stands there at the
// next look, since two files are rarely replaced in the same instant.
func (f *Files) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.look(false)
		case <-ctx.Done():
			return
		}
	}
}

// Status tells what is served and what was refused.
func (f *Files) Status(now time.Time) Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{State: StatePending, Names: []string{}, Since: f.since}
	if p := f.current.Load(); p != nil {
		s.State = stateAt(p.leaf.NotBefore, p.leaf.NotAfter, now)
		s.Names = append(s.Names, p.names...)
		s.NotBefore, s.NotAfter = p.leaf.NotBefore.UTC(), p.leaf.NotAfter.UTC()
		s.AcceptedSince = f.acceptedSince
	}
	if f.refused != (sight{}) {
		s.Refused, s.RefusedSince, s.AcceptedSince = f.refused.why.String(), f.refusedSince, time.Time{}
	}
	return s
}

// Checks judges the certificate at a time, as Status.Checks does.
func (f *Files) Checks(now time.Time) []duty.Check { return f.Status(now).Checks(now) }
