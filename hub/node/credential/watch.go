package credential

import (
	"context"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/hub/node"
)

const (
	// LookEvery is how often a Watcher looks at its file. A credential is renewed hours
	// before it ends, and who is in a hurry asks.
	LookEvery = 5 * time.Second
	// readWait is how long one look waits for the file system.
	readWait = 5 * time.Second
)

// A Watcher looks at the file of a credential again and again.
type Watcher struct {
	// Read reads the file, as Read does.
	Read func() (node.Credential, error)
	// Held is what was read last, before Run.
	Held node.Credential
	// Again asks for a look now. What a read finds that began since is told, even if it is
	// no news.
	Again <-chan struct{}
	// Take is told what was found, if it is another thing than at the time before: a
	// credential, or an *Error that was met twice in a row. It must not wait.
	Take func(node.Credential, error)

	Log *duty.Logger // is told of panics; nil says nothing
}

// found is what one look found.
type found struct {
	credential node.Credential
	err        error
}

// sight is what tells one thing that was found from another. The key is not part of it
// as a secret but by its public half.
type sight struct {
	credential bool
	hub        string
	hubKey     node.PublicKey
	authority  string
	key        node.PublicKey
	expires    int64
	why        string
}

func (f found) sight() sight {
	if f.err != nil {
		return sight{why: f.err.Error()}
	}
	c := f.credential
	return sight{
		credential: true, hub: c.Hub.String(), hubKey: c.HubKey, authority: c.AuthorityID,
		key: c.Key.Public(), expires: c.ExpiresAt.UnixMilli(),
	}
}

// Run looks until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	ticker := time.NewTicker(LookEvery)
	defer ticker.Stop()
	told := found{credential: w.Held}.sight()
	suspect := sight{}
	var reading chan found // nil while no read is under way
	older := false         // it began before Again asked, and may have seen what stood there then
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-w.Again:
			asked, older = true, reading != nil
		}
		if reading == nil {
			reading = w.read()
		}
		f, answered := await(ctx, reading)
		if answered && older && ctx.Err() == nil {
			older = false
			reading = w.read()
			f, answered = await(ctx, reading)
		}
		if ctx.Err() != nil {
			return
		}
		if answered {
			reading = nil
		}
		seen := f.sight()
		// Somebody may be about to write the file: what is wrong with it is told when
		// it is still wrong at the next look.
		sure := asked || f.err == nil || seen == suspect
		suspect = seen
		if asked || sure && seen != told {
			told = seen
			w.take(f)
		}
	}
}

// take tells what was found. One that panics is told the next thing all the same.
func (w *Watcher) take(f found) {
	defer func() { w.Log.Recovered(recover()) }()
	w.Take(f.credential, f.err)
}

// read begins a read, of which there is one at a time.
func (w *Watcher) read() chan found {
	to := make(chan found, 1)
	go func() {
		f := found{err: &Error{Name: Fault}}
		defer func() {
			w.Log.Recovered(recover())
			to <- f
		}()
		c, err := w.Read()
		f = found{c, err}
	}()
	return to
}

// await waits for a read. One that takes too long is waited for again at the next look.
func await(ctx context.Context, reading <-chan found) (f found, answered bool) {
	timer := time.NewTimer(readWait)
	defer timer.Stop()
	select {
	case f := <-reading:
		return f, true
	case <-ctx.Done():
	case <-timer.C:
	}
	return found{err: &Error{Name: Timeout}}, false
}
