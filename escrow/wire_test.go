package escrow

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/carriertest"
)

// network makes sockets inside the process. The server's ends are the relay's.
type network struct {
	t        testing.TB
	net      *carriertest.Network
	accepted chan *typedsocket.Socket
	serve    func(*typedsocket.Request)
}

func newNetwork(t testing.TB) *network {
	n := &network{t: t, net: carriertest.NewNetwork(), accepted: make(chan *typedsocket.Socket, 1)}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s, err := typedsocket.Accept(w, q, typedsocket.Config{Peer: "peer",
			Handler: typedsocket.HandlerFunc(func(r *typedsocket.Request) { n.serve(r) })})
		if err == nil {
			n.accepted <- s
		}
	})}
	served := make(chan struct{})
	go func() { defer close(served); server.Serve(n.net) }()
	t.Cleanup(func() { server.Close(); <-served })
	return n
}

// end is a peer at the other end of a socket of the relay.
type end struct {
	*typedsocket.Socket                     // the peer's
	relay               *typedsocket.Socket // the relay's
	gate                *gate

	mu    sync.Mutex
	seen  []string // bodies of requests that reached it
	serve func(*typedsocket.Request)
}

// gate lets the peer read while it is open.
type gate struct {
	net.Conn
	mu   sync.Mutex
	open chan struct{} // closed while it is
}

func (g *gate) Read(p []byte) (int, error) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	<-open
	return g.Conn.Read(p)
}

func (g *gate) shut() { g.mu.Lock(); defer g.mu.Unlock(); g.open = make(chan struct{}) }

func (g *gate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// dial connects a peer that acknowledges renewals.
func (n *network) dial() *end {
	n.t.Helper()
	open := make(chan struct{})
	close(open)
	e := &end{gate: &gate{open: open}}
	e.serve = acknowledgeRequest
	var err error
	e.Socket, err = typedsocket.Connect(context.Background(), typedsocket.Dial{URL: "ws://relay/",
		Net: func(ctx context.Context, _, _ string) (net.Conn, error) {
			client, server := net.Pipe()
			e.gate.Conn = client
			return n.net.Connect(ctx, e.gate, server)
		},
		Config: typedsocket.Config{Peer: "relay", Handler: typedsocket.HandlerFunc(func(r *typedsocket.Request) {
			e.mu.Lock()
			e.seen = append(e.seen, string(r.Body()))
			serve := e.serve
			e.mu.Unlock()
			serve(r)
		})}})
	if err != nil {
		n.t.Fatal(err)
	}
	e.relay = <-n.accepted
	n.t.Cleanup(func() {
		e.gate.reopen()
		e.Cut(typedsocket.CloseNormal, "test over")
		<-e.Done()
		<-e.relay.Done()
	})
	return e
}

func (e *end) serving(serve func(*typedsocket.Request)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.serve = serve
}

func (e *end) requests() []string {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.seen...)
}

// acknowledgeRequest answers as a node that admits whatever comes.
func acknowledgeRequest(r *typedsocket.Request) {
	x, err := contract.ReadApplyDNSLeaseRenewalRequest(r.Body())
	if err != nil || r.Method() != contract.MethodApplyDNSLeaseRenewal {
		r.Fail()
		return
	}
	r.Answer(acknowledging(pushed{renewal: x.Signed.Renewal}))
}

// bind binds a node over the socket of a peer.
func (r *rig) bind(id string, e *end, epoch int) Binding {
	b := bindingOf(id, epoch)
	b.Socket = e.relay
	r.Bound(b)
	return b
}

// newWireRig is an escrow whose pushes go over real sockets.
func newWireRig(t testing.TB) (*rig, *network) {
	r := newIdleRig(t, Call)
	n := newNetwork(t)
	n.serve = r.Hold
	r.run()
	return r, n
}

// R45, R48, contract §9.3: on the wire a hold is answered with its number, and a
// refused one with its name in text and code, also without a session and while the
// relay drains.
func TestR45_R48_HoldOnTheWire(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, n := newWireRig(t)
		cloudly := n.dial()
		r.attached("node-a")
		hold := func(body []byte) (string, *typedsocket.RemoteError) {
			answer, err := cloudly.Call(context.Background(), contract.MethodHoldDNSLeaseRenewals, body, typedsocket.CallOptions{})
			if err != nil {
				refused, ok := err.(*typedsocket.RemoteError)
				if !ok {
					t.Fatal(err)
				}
				return "", refused
			}
			defer answer.Release()
			return string(answer.Response()), nil
		}
		for count, want := range map[int]string{23: `{"held":23}`, 3: `{"held":3}`, 0: `{"held":0}`} {
			if got, refused := hold(bodyOf(grid(spec{}, begin, count))); got != want {
				t.Errorf("a run of %d: %s %v", count, got, refused)
			}
		}
		for name, body := range map[contract.RefusalName][]byte{
			contract.EscrowRunInvalid:        []byte(`{}`),
			contract.EscrowRunUnordered:      changed(2, 1, func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Sequence = 1 }),
			contract.EscrowNodeNotCarried:    bodyOf(grid(spec{node: "node-x"}, begin, 1)),
			contract.EscrowRunForeignSession: bodyOf(grid(spec{namespace: "ns:2"}, begin, 1)),
			contract.EscrowRunStale:          bodyOf(grid(spec{}, begin.Add(-time.Hour), 1)),
		} {
			_, refused := hold(body)
			if refused == nil || !strings.HasPrefix(refused.Text, string(name)+": ") || string(refused.Data) != `{"code":"`+string(name)+`"}` {
				t.Errorf("want %s, got %+v", name, refused)
			}
		}
		r.SessionLost()
		if _, refused := hold(bodyOf(grid(spec{}, begin, 1))); refused == nil || !strings.HasPrefix(refused.Text, "escrow-cloudly-only: ") {
			t.Errorf("without a session: %+v", refused)
		}
		r.SessionRegistered()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := r.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		if _, refused := hold(bodyOf(grid(spec{}, begin, 1))); refused == nil || !strings.HasPrefix(refused.Text, "relay-not-ready: ") {
			t.Errorf("draining: %+v", refused)
		}
	})
}

// R52: the very bytes leave, on the socket of the binding and on no other.
func TestR52_OnTheSocketOfTheBinding(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, n := newWireRig(t)
		older, newer, other := n.dial(), n.dial(), n.dial()
		r.SessionRegistered()
		r.bind("node-a", older, 1)
		b := r.bind("node-a", newer, 2)
		r.bind("node-b", other, 1)
		run := grid(spec{}, begin, 3)
		r.must(run)
		r.SessionLost()
		want := `{"session":` + string(b.Session.Received) + `,"signed":` + string(run.Renewals[0].Received) + `}`
		if got := newer.requests(); len(got) != 1 || got[0] != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if len(older.requests())+len(other.requests()) != 0 {
			t.Error("another socket was pushed to")
		}
		if n := r.node("node-a"); n.Acknowledged == nil || n.Acknowledged.Sequence != 1 {
			t.Errorf("%+v", n)
		}
	})
}

// What a node's answer and a socket's end count as.
func TestOutcomesOnTheWire(t *testing.T) {
	refuse := func(r *typedsocket.Request) { r.Refuse("renewal-window-not-open: x", nil) }
	for name, row := range map[string]struct {
		serve     func(*end, *typedsocket.Request)
		want      outcome
		reachable bool
	}{
		"acknowledged": {func(_ *end, r *typedsocket.Request) { acknowledgeRequest(r) }, outcomeAcknowledged, true},
		"refused":      {func(_ *end, r *typedsocket.Request) { refuse(r) }, outcomeRefused, true},
		"null":         {func(_ *end, r *typedsocket.Request) { r.Answer(nil) }, outcomeForeign, true},
		"silent":       {func(_ *end, r *typedsocket.Request) { time.AfterFunc(time.Minute, r.Drop) }, outcomeFailed, true},
		"no handler":   {func(_ *end, r *typedsocket.Request) { r.RefuseMethod() }, outcomeRefused, true},
		"retry for ever": {func(_ *end, r *typedsocket.Request) { r.Retry(time.Second, "later") },
			outcomeFailed, true},
		"hangs up": {func(e *end, r *typedsocket.Request) { e.Cut(typedsocket.CloseNormal, "gone"); r.Drop() }, outcomeSocketEnded, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, n := newWireRig(t)
				node := n.dial()
				node.serving(func(q *typedsocket.Request) { row.serve(node, q) })
				r.attached()
				r.bind("node-a", node, 1)
				r.must(grid(spec{}, begin, 1))
				r.SessionLost()
				time.Sleep(pushWait + time.Second)
				synctest.Wait()
				if v := r.node("node-a"); v.LastOutcome != row.want.String() || v.Reachable != row.reachable {
					t.Errorf("%+v, want %s", v, row.want)
				}
				r.SessionRegistered()
				time.Sleep(time.Minute)
			})
		})
	}
	bubble(t, func(t *testing.T) { // a binding without a socket
		r, _ := newWireRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 1))
		r.SessionLost()
		synctest.Wait()
		if v := r.node("node-a"); v.LastOutcome != outcomeFailed.String() {
			t.Errorf("%+v", v)
		}
	})
}

// R54: a node may ask for the request again later (TypedRequest 8). When Cloudly is
// back by then, it does not get it.
func TestR54_NoRetryAfterTheReturn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, n := newWireRig(t)
		node := n.dial()
		node.serving(func(q *typedsocket.Request) { q.Retry(2*time.Second, "later") })
		r.attached()
		r.bind("node-a", node, 1)
		r.must(grid(spec{}, begin, 1))
		r.SessionLost()
		time.Sleep(3 * time.Second)
		if n := len(node.requests()); n != 2 {
			t.Fatalf("%d requests", n)
		}
		r.SessionRegistered()
		time.Sleep(time.Minute)
		if n := len(node.requests()); n != 2 {
			t.Errorf("%d requests after the return", n-2)
		}
	})
}

// R52: a signature made before the hold is good at the node: nothing of the record
// was written anew.
func TestR52_SignatureSurvives(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, n := newWireRig(t)
		node := n.dial()
		r.attached()
		r.bind("node-a", node, 1)
		authority := simulate.NewSigningAuthority(3)
		run := contract.HoldDNSLeaseRenewalsRequest{NodeID: "node-a", Projection: projection("projection:1", 4)}
		for i, plain := range grid(spec{}, begin, 2).Renewals {
			signed, err := authority.Sign(plain.Renewal)
			if err != nil {
				t.Fatal(i, err)
			}
			run.Renewals = append(run.Renewals, signed)
		}
		r.must(run)
		r.SessionLost()
		time.Sleep(slotEvery)
		all := node.requests()
		if len(all) != 2 {
			t.Fatalf("%d pushes", len(all))
		}
		for _, body := range all {
			x, err := contract.ReadApplyDNSLeaseRenewalRequest([]byte(body))
			if err == nil {
				err = simulate.VerifyRenewal(x.Signed, authority.Authority, authority.Reference())
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
}
