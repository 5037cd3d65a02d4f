package escrow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/carriertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs a test in fake time and checks that every buffer came back.
func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); carriertest.Bubble(t, f) }

// wallClock is a wall clock that can be stepped.
type wallClock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *wallClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *wallClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// output collects what the logger writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) { o.mu.Lock(); defer o.mu.Unlock(); return o.b.Write(p) }

func (o *output) String() string { o.mu.Lock(); defer o.mu.Unlock(); return o.b.String() }

// rig is an escrow between a Cloudly that the test plays and nodes that answer as
// they are told.
type rig struct {
	*Escrow
	t      testing.TB
	clock  *wallClock
	log    *output
	events *duty.Events
	end    context.CancelFunc // of Run
	ran    chan struct{}      // closed when Run has returned

	mu     sync.Mutex
	pushes []pushed
	answer func(ctx context.Context, p pushed) ([]byte, error) // nil acknowledges
}

// pushed is one push as a node saw it.
type pushed struct {
	node    string
	session string
	signed  string
	renewal contract.DNSLeaseRenewal
	at      time.Time // true time

	recalled <-chan struct{}
}

func (p pushed) String() string {
	return fmt.Sprintf("%s %d @%s", p.node, p.renewal.Sequence, p.at.UTC().Format("15:04:05.000"))
}

// newRig makes an escrow and runs it.
func newRig(t testing.TB) *rig {
	r := newIdleRig(t, nil)
	r.run()
	return r
}

// newIdleRig makes an escrow that is not run. push is nil for the rig's own nodes.
func newIdleRig(t testing.TB, push func(context.Context, <-chan struct{}, Binding, []byte) ([]byte, error)) *rig {
	t.Helper()
	r := &rig{t: t, clock: &wallClock{}, log: &output{}, ran: make(chan struct{}), end: func() {}}
	catalogue, err := duty.NewCatalogue(EventKinds)
	if err != nil {
		t.Fatal(err)
	}
	log := duty.NewLogger(duty.LogConfig{Out: r.log, Level: -4, Wall: r.clock.now})
	r.events = duty.NewEvents(duty.EventsConfig{Catalogue: catalogue, Log: log, Wall: r.clock.now})
	if push == nil {
		push = r.serve
	}
	r.Escrow = New(Config{Wall: r.clock.now, Push: push, Log: log, Events: r.events})
	return r
}

func (r *rig) run() {
	ctx, cancel := context.WithCancel(context.Background())
	r.end = cancel
	go func() {
		defer close(r.ran)
		if err := r.Run(ctx); err != nil {
			r.t.Errorf("run: %v", err)
		}
	}()
	r.t.Cleanup(r.stop)
}

func (r *rig) stop() { r.end(); <-r.ran }

// serve is every node: it reads the request as a node would, and answers.
func (r *rig) serve(ctx context.Context, recalled <-chan struct{}, b Binding, body []byte) ([]byte, error) {
	select {
	case <-recalled:
		return nil, typedsocket.ErrRecalled
	default:
	}

	request, err := contract.ReadApplyDNSLeaseRenewalRequest(body)
	if err != nil {
		r.t.Errorf("pushed: %v", err)
		return nil, err
	}
	p := pushed{b.NodeID, string(request.Session), string(request.Signed.Received), request.Signed.Renewal, time.Now(), recalled}
	r.mu.Lock()
	r.pushes = append(r.pushes, p)
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		return answer(ctx, p)
	}
	return acknowledging(p), nil
}

// answering has the nodes answer otherwise; nil acknowledges.
func (r *rig) answering(answer func(ctx context.Context, p pushed) ([]byte, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// taken returns what was pushed since the last call, as "node sequence @time".
func (r *rig) taken() []string {
	synctest.Wait()
	var all []string
	for _, p := range r.take() {
		all = append(all, p.String())
	}
	return all
}

func (r *rig) take() []pushed {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.pushes
	r.pushes = nil
	slices.SortStableFunc(all, func(a, b pushed) int { return a.at.Compare(b.at) })
	return all
}

// wantTaken compares what was pushed since the last call.
func (r *rig) wantTaken(want ...string) {
	r.t.Helper()
	got := r.taken()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.t.Errorf("pushed %q, want %q", got, want)
	}
}

func acknowledging(p pushed) []byte {
	return contract.ApplyDNSLeaseRenewalAnswer{Status: "admitted", Renewal: p.renewal.Reference()}.AppendJSON(nil)
}

// refusing is a node that refuses.
func refusing(context.Context, pushed) ([]byte, error) {
	return nil, &typedsocket.RemoteError{Peer: "node", Method: contract.MethodApplyDNSLeaseRenewal, Text: "renewal-window-not-open: marked-text"}
}

// silent is a node that never answers.
func silent(ctx context.Context, _ pushed) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }

// unsent is a node to whose socket a push does not get before it is recalled.
func unsent(ctx context.Context, p pushed) ([]byte, error) {
	select {
	case <-p.recalled:
		return nil, typedsocket.ErrRecalled
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// late is a node that acknowledges after so long, whatever happens meanwhile.
func late(after time.Duration) func(context.Context, pushed) ([]byte, error) {
	return func(ctx context.Context, p pushed) ([]byte, error) {
		select {
		case <-time.After(after):
			return acknowledging(p), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// gone is a node whose socket has ended.
func gone(context.Context, pushed) ([]byte, error) { return nil, typedsocket.ErrClosed }

// must holds a run, or fails.
func (r *rig) must(x contract.HoldDNSLeaseRenewalsRequest) {
	r.t.Helper()
	if held, refused := r.hold(bodyOf(x)); refused != nil || held != len(x.Renewals) {
		r.t.Fatalf("held %d of %d: %v", held, len(x.Renewals), refused)
	}
}

// attached registers a session and binds nodes under it.
func (r *rig) attached(nodes ...string) {
	r.SessionRegistered()
	for _, id := range nodes {
		r.Bound(bindingOf(id, 1))
	}
}

// status returns one node's part of the status.
func (r *rig) node(id string) Node {
	r.t.Helper()
	for _, n := range r.Status().(Status).Nodes {
		if n.ID == id {
			return n
		}
	}
	r.t.Fatalf("the status does not show %s", id)
	return Node{}
}

// eventsOf returns the events of some types, as "type key=value ...".
func (r *rig) eventsOf(types ...duty.EventType) []string {
	var out []string
	for _, e := range r.events.Since(0).Events {
		if !slices.Contains(types, e.Type) {
			continue
		}
		text := string(e.Type)
		for _, f := range e.Fields {
			text += " " + f.Key().String() + "=" + f.String()
		}
		out = append(out, text)
	}
	return out
}

var errBroken = errors.New("broken")

// errDropped is what a call meets whose frame was taken back while its socket stays.
var errDropped = typedsocket.ErrDropped
