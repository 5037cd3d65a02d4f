package cloudly

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"serve.zone/relay/typedsocket"
)

// Session is the one upstream session. Its methods are safe for concurrent use and
// never wait for the loop, Drain apart.
type Session struct {
	cfg     Config
	start   time.Time // whose monotonic reading the machine counts from
	inbox   *inbox
	keeper  *keeper
	metrics metrics
	tasks   sync.WaitGroup // goroutines of Run
	reads   atomic.Uint64  // configurations pushed and registrations accepted so far
	begun   atomic.Bool    // Run was called
	quiet   atomic.Bool    // no attempt is begun any more
	done    chan struct{}  // closed when Run has returned

	// Of the loop alone.
	ctx     context.Context // of Run
	state   state
	attempt *attempt // the latest; nil before the first
	ending  *pulls   // of an attempt that is left, until they have ended
	sent    sentFacts
	told    trouble // of the last failure

	mu    sync.Mutex // guards what follows
	shown shown
	live  *attempt // the latest that came to a socket
	// sockets are those that have not been counted, gone what those counted for.
	sockets map[*typedsocket.Socket]struct{}
	gone    typedsocket.Tally
}

// attempt is one try to have a session, with its socket when it came to one.
type attempt struct {
	epoch    uint64
	ctx      context.Context // ends when the attempt is left
	cancel   context.CancelFunc
	gate     *gate
	identity identity

	sock    *typedsocket.Socket // of the loop; nil until it is open
	pulls   *pulls              // of the loop; nil while none are wanted
	running int                 // of the loop; steps whose outcome was not looked at
	ended   *mail               // of the loop; the end of the socket while steps are running
}

// New returns a session that Run begins. What is wrong with the configuration is
// told by Config.Validate, and by Run.
func New(c Config) *Session {
	s := &Session{cfg: c.withDefaults(), start: time.Now(), inbox: newInbox(), done: make(chan struct{}), sockets: map[*typedsocket.Socket]struct{}{}}
	s.keeper = newKeeper(c.Credential, func(fresh bool, unusual *CredentialError) {
		s.post(mail{event: event{kind: evCredential, fresh: fresh}, unusual: unusual})
	})
	s.shown = newShown(s.cfg.Wall())
	s.metrics = s.newMetrics()
	return s
}

// now is the time of the machine.
func (s *Session) now() time.Duration { return time.Since(s.start) }

// post hands m to the loop and reports whether it was taken.
func (s *Session) post(m mail) bool { return s.inbox.post(m) }

// FactsChanged says that the facts may differ from those that were sent. When they
// do and the session stands, it registers again.
func (s *Session) FactsChanged() { s.post(mail{event: event{kind: evFacts}}) }

// Kick begins the next attempt at once when the session waits after a plain loss
// or failure. It shortens no wait that the contract states.
func (s *Session) Kick() { s.post(mail{event: event{kind: evKick}}) }

// Reload has the credential read again now, as on SIGHUP.
func (s *Session) Reload() { s.keeper.glanceSoon() }

// errStarted is a second call of Run.
var errStarted = errors.New("cloudly: the session was started before")

// errPanicked is the end of a loop that panicked. The panic was logged.
var errPanicked = errors.New("cloudly: the session's loop panicked")

// Run keeps the session until ctx ends or Drain is called, and returns when
// everything it started has ended. It is called once.
func (s *Session) Run(ctx context.Context) error {
	if err := s.cfg.Validate(); err != nil {
		return err
	}
	if s.begun.Swap(true) {
		return errStarted
	}
	defer close(s.done)
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s.ctx = inner
	s.tasks.Go(func() { s.keeper.run(inner) })
	err := s.loop(ctx)
	cancel()
	for _, m := range s.inbox.close() {
		s.discard(m)
	}
	return errors.Join(err, s.settle())
}

// loop is the one goroutine that steps the machine and calls the hooks.
func (s *Session) loop(ctx context.Context) (err error) {
	defer func() {
		if s.cfg.Log.Recovered(recover()) {
			s.abandon()
			err = errPanicked
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for s.state.phase != stopped {
		timer.Reset(s.untilWake())
		select {
		case <-ctx.Done():
			s.handle(mail{event: event{kind: evStop}})
		case <-timer.C:
			if s.untilWake() <= 0 {
				s.handle(mail{event: event{kind: evWake}})
			}
		case <-s.inbox.wake:
			for m, ok := s.inbox.take(); ok; m, ok = s.inbox.take() {
				s.handle(m)
			}
		}
	}
	return nil
}

// never is a wait that an event ends.
const never = time.Duration(1<<63 - 1)

// untilWake returns how long the machine wants to be left alone.
func (s *Session) untilWake() time.Duration {
	if s.state.wakeAt == 0 && s.state.phase != waiting {
		return never
	}
	return s.state.wakeAt - s.now()
}

// handle takes one thing that happened through the machine.
func (s *Session) handle(m mail) {
	m.chance = rand.Float64()
	switch {
	case m.push != nil:
		s.pushed(m)
	case m.pulled != nil:
		s.pulled(m)
	case m.kind == evFacts && s.sent.are(s.cfg.Facts()):
		// What was sent last still holds.
	case m.kind == evLost && s.running(m):
		s.attempt.ended = &m
	default:
		s.advance(m)
		s.finish(m)
	}
}

// running reports whether a step is running on the socket that has ended. Its
// outcome comes at once and is looked at first: a refusal that was read before the
// socket ended counts, and it can end custody.
func (s *Session) running(lost mail) bool {
	a := s.attempt
	return a != nil && a.epoch == lost.epoch && a.running > 0
}

// finish looks at the end of the socket when the last step on it has had its say.
func (s *Session) finish(m mail) {
	a := s.attempt
	if !m.step || a == nil || a.epoch != m.epoch {
		return
	}
	if a.running--; a.running == 0 && a.ended != nil {
		lost := *a.ended
		a.ended = nil
		s.advance(lost)
	}
}

// advance steps the machine and carries its effects out.
func (s *Session) advance(m mail) {
	before := s.state
	after, effects := step(before, m.event, s.now())
	if m.kind == evOpened {
		if after.phase != exchanging || after.epoch != m.epoch {
			s.discard(m)
			return
		}
		s.adopt(m.sock)
	}
	s.state = after
	for _, e := range effects {
		if e.kind == doEndCustody {
			m.ended, m.trouble = e.name, custodyEnded
		}
	}
	s.show(before, &m)
	for _, e := range effects {
		s.execute(e, &m)
	}
	s.settlePulls()
	s.narrate(before, &m)
}

// adopt takes over the socket that an attempt opened.
func (s *Session) adopt(sock *typedsocket.Socket) {
	a := s.attempt
	a.sock = sock
	s.mu.Lock()
	s.live = a
	s.sockets[sock] = struct{}{}
	s.mu.Unlock()
	s.tasks.Go(func() {
		<-sock.Ending()
		s.post(mail{event: event{kind: evLost, epoch: a.epoch}, trouble: socketLost, err: sock.Err()})
		<-sock.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sockets, sock)
		s.gone.Add(sock.Stats())
	})
}

// count adds one of the carrier's counts up, over all sockets so far.
func (s *Session) count(c typedsocket.Count) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.gone[c]
	for sock := range s.sockets {
		n += sock.Stats().Of(c)
	}
	return n
}

// discard ends what mail carries that nobody looks at.
func (s *Session) discard(m mail) {
	m.bearer.Zero()
	if m.sock != nil {
		m.sock.Close(typedsocket.CloseGoingAway, "the relay gave this attempt up")
		s.tasks.Go(func() { <-m.sock.Done() })
	}
	if m.push != nil {
		s.refusePush(m.push, notReady)
	}
}

// abandon is the end after a panic in the loop: no request is served any more and
// nothing queued leaves.
func (s *Session) abandon() {
	if a := s.attempt; a != nil && a.sock != nil {
		a.gate.shut()
		if a.pulls != nil {
			a.pulls.end()
		}
		a.sock.Cut(typedsocket.CloseInternal, "the relay failed")
		a.identity.forget()
	}
}

// settle waits for what Run started.
func (s *Session) settle() error {
	gone := make(chan struct{})
	go func() { defer close(gone); s.tasks.Wait() }()
	timer := time.NewTimer(endWait)
	defer timer.Stop()
	select {
	case <-gone:
		return nil
	case <-timer.C:
		return errors.New("cloudly: goroutines of the session have not ended within " + endWait.String())
	}
}

// DropCustody forgets what the session shows of its registration. What ended
// custody is known to the machine already, or does not concern it.
func (s *Session) DropCustody(string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown.dropCustody()
}

// Quiesce begins no attempt any more. A session that stands goes on until Drain.
func (s *Session) Quiesce() { s.quiet.Store(true) }

// Drain ends the session: requests are refused, the socket is closed, and OnLost is
// called when a session stood. It returns when Run has, or when ctx ends.
func (s *Session) Drain(ctx context.Context) error {
	s.post(mail{event: event{kind: evStop}})
	if !s.begun.Load() {
		return nil
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Name returns the duty's name.
func (s *Session) Name() string { return Name }
