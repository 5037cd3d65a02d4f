package ingress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
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
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	carriertest.Bubble(t, f)
}

const (
	registerMethod = contract.MethodRegisterIngress
	tableMethod    = contract.MethodGetIngressRouteTable
	hintMethod     = contract.MethodPushIngressRouteTableChanged
	trafficMethod  = contract.MethodGetTrafficStatistics
	pushMethod     = contract.MethodPushRouteTable
	pullMethod     = contract.MethodGetRouteTable
)

var ownOffer = contract.Offer{InterfacesVersion: "32.44.0", MinimumPeerVersion: "32.0.0"}

const ownOfferText = `{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}`

// conn is what the listener would hand over: one role, once, until the end.
type conn struct {
	sock *typedsocket.Socket

	mu    sync.Mutex
	role  string
	node  string
	hooks []func()
	over  bool
	fails any  // what BindIngress panics with
	deaf  bool // it tells nobody of its end
}

func newConn(sock *typedsocket.Socket) *conn {
	c := &conn{sock: sock, role: RoleUnbound}
	go func() {
		<-sock.Ending()
		c.mu.Lock()
		hooks := c.hooks
		c.hooks, c.over = nil, true
		if c.deaf {
			hooks = nil
		}
		c.mu.Unlock()
		for _, f := range hooks {
			f()
		}
	}()
	return c
}

func (c *conn) Socket() *typedsocket.Socket { return c.sock }

func (c *conn) Role() string { c.mu.Lock(); defer c.mu.Unlock(); return c.role }

func (c *conn) become(role string) { c.mu.Lock(); defer c.mu.Unlock(); c.role = role }

func (c *conn) BindIngress(node string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.fails != nil:
		panic(c.fails)
	case c.sock.Err() != nil:
		return errors.New("the socket has ended")
	case c.role == RoleIngress && c.node == node:
		return nil
	case c.role != RoleUnbound:
		return errors.New("the socket is something else")
	}
	c.role, c.node = RoleIngress, node
	c.sock.SetFrameLimit(contract.IngressFrameLimit, contract.IngressFrameLimit)
	return nil
}

func (c *conn) OnClose(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		go f()
		return
	}
	c.hooks = append(c.hooks, f)
}

// memories keeps the memory that messages of peers were read into, to look at it
// when it should be nobody's any more.
type memories struct {
	mu   sync.Mutex
	keep bool
	all  [][]byte
}

func (m *memories) Received(_ bool, p []byte) { m.add(p) }
func (m *memories) Sent(_ bool, p []byte)     { m.add(p) }

func (m *memories) add(p []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keep {
		m.all = append(m.all, p)
	}
}

// lines collects what the logger writes.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }

func (l *lines) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// rig is a whole room between peers that speak the wire: ingresses on one side,
// Cloudly on the other.
type rig struct {
	*Ingress
	t       testing.TB
	log     *lines
	events  *duty.Events
	near    *carriertest.Network // of ingresses
	far     *carriertest.Network // of Cloudly
	downs   chan *typedsocket.Socket
	ups     chan *typedsocket.Socket
	seen    memories
	pullErr error // of the last call of Config.Call
	held    chan *typedsocket.Request

	mu    sync.Mutex
	conns map[*typedsocket.Socket]*conn
	stale []string
}

func newRig(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, log: &lines{}, near: carriertest.NewNetwork(), far: carriertest.NewNetwork(),
		downs: make(chan *typedsocket.Socket, 1), ups: make(chan *typedsocket.Socket, 1), held: make(chan *typedsocket.Request, 1), conns: map[*typedsocket.Socket]*conn{}}
	catalogue, err := duty.NewCatalogue(EventKinds)
	if err != nil {
		t.Fatal(err)
	}
	log := duty.NewLogger(duty.LogConfig{Out: r.log})
	r.events = duty.NewEvents(duty.EventsConfig{Catalogue: catalogue, Log: log})
	cfg := Config{Offer: ownOffer, Log: log, Events: r.events,
		Call: func(ctx context.Context, sock *typedsocket.Socket, method string, request []byte, o typedsocket.CallOptions) (*typedsocket.Answer, error) {
			answer, err := sock.Call(ctx, method, request, o)
			r.pullErr = err
			return answer, err
		},
		OnStaleCredential: func(up *typedsocket.Socket, data []byte) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.stale = append(r.stale, up.Peer()+" "+string(data))
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	if r.Ingress, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	r.accept(r.near, r.downs, typedsocket.Config{Peer: "ingress",
		Limits: typedsocket.Limits{Frame: contract.UnregisteredFrameLimit + 4096},
		Handler: typedsocket.HandlerFunc(func(q *typedsocket.Request) {
			switch q.Method() {
			case tableMethod:
				r.Table(r.conn(q.Socket()), q)
			case "held":
				r.held <- q
			default:
				r.Register(r.conn(q.Socket()), q)
			}
		})})
	r.accept(r.far, r.ups, typedsocket.Config{Peer: "cloudly", KeepMalformed: true,
		Limits: typedsocket.Limits{Frame: contract.CloudlyFrameLimit, Close: 2 * contract.CloudlyFrameLimit},
		Handler: typedsocket.HandlerFunc(func(q *typedsocket.Request) {
			if q.Method() == trafficMethod {
				r.Statistics(q)
				return
			}
			r.PushTable(q)
		})})
	t.Cleanup(func() { r.DropCustody("test-over") })
	return r
}

// accept serves the relay's ends of a network.
func (r *rig) accept(n *carriertest.Network, accepted chan<- *typedsocket.Socket, cfg typedsocket.Config) {
	cfg.Recorder = &r.seen
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if s, err := typedsocket.Accept(w, q, cfg); err == nil {
			accepted <- s
		}
	})}
	served := make(chan struct{})
	go func() { defer close(served); server.Serve(n) }()
	r.t.Cleanup(func() { server.Close(); <-served })
}

// conn is the one Conn of a socket.
func (r *rig) conn(s *typedsocket.Socket) *conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.conns[s]
	if c == nil {
		c = newConn(s)
		r.conns[s] = c
	}
	return c
}

// staleTold is what OnStaleCredential was told.
func (r *rig) staleTold() []string { r.mu.Lock(); defer r.mu.Unlock(); return r.stale }

// remote is a peer: its own end of a socket, and the relay's.
type remote struct {
	t     testing.TB
	own   *typedsocket.Socket
	relay *typedsocket.Socket

	mu     sync.Mutex
	frames []string // what it was sent
	asked  map[string][]*typedsocket.Request
	serves map[string]func(*typedsocket.Request)
}

func (p *remote) Received(_ bool, b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frames = append(p.frames, string(b))
}

func (p *remote) Sent(bool, []byte) {}

// ServeRequest serves as the test says, or keeps the request for next. A peer zeroes
// its own memory too: it comes from the same pool as the relay's, which is looked at.
func (p *remote) ServeRequest(r *typedsocket.Request) {
	r.Erase()
	p.mu.Lock()
	serve := p.serves[r.Method()]
	if serve == nil {
		p.asked[r.Method()] = append(p.asked[r.Method()], r)
	}
	p.mu.Unlock()
	if serve != nil {
		serve(r)
	}
}

// on serves a method from now on.
func (p *remote) on(method string, serve func(*typedsocket.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serves[method] = serve
}

// got returns the frames of a method that it was sent.
func (p *remote) got(method string) []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	var of []string
	for _, f := range p.frames {
		if strings.Contains(f, `"method":"`+method+`"`) && strings.Contains(f, `"phase":"request"`) {
			of = append(of, f)
		}
	}
	return of
}

// next returns the next request of a method that nothing serves.
func (p *remote) next(method string) *typedsocket.Request {
	p.t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := p.asked[method]
	if len(waiting) == 0 {
		p.t.Fatalf("no %s came", method)
	}
	p.asked[method] = waiting[1:]
	return waiting[0]
}

// none checks that no request of a method came.
func (p *remote) none(method string) {
	p.t.Helper()
	if got := p.got(method); len(got) > 0 {
		p.t.Errorf("%s came: %.200s", method, got)
	}
}

// answered is what a call came to.
type answered struct {
	body string
	err  error
}

// ask calls the relay and waits.
func (p *remote) ask(method, body string) answered {
	answer, err := p.own.Call(context.Background(), method, []byte(body), typedsocket.CallOptions{Timeout: time.Hour, Erase: true})
	if err != nil {
		return answered{err: err}
	}
	answer.Erase()
	defer answer.Release()
	return answered{body: string(answer.Response())}
}

// start calls the relay and returns where what it comes to will be.
func (p *remote) start(method, body string) <-chan answered {
	c := make(chan answered, 1)
	go func() { c <- p.ask(method, body) }()
	return c
}

// dial connects a peer.
func (r *rig) dial(n *carriertest.Network, accepted <-chan *typedsocket.Socket) *remote {
	r.t.Helper()
	p := &remote{t: r.t, asked: map[string][]*typedsocket.Request{}, serves: map[string]func(*typedsocket.Request){}}
	limits := typedsocket.Limits{Frame: contract.CloudlyFrameLimit}
	own, err := typedsocket.Connect(context.Background(), typedsocket.Dial{URL: "ws://relay/", Net: n.Dial,
		Config: typedsocket.Config{Peer: "relay", Limits: limits, Handler: p, Recorder: p}})
	if err != nil {
		r.t.Fatal(err)
	}
	p.own, p.relay = own, <-accepted
	r.t.Cleanup(func() {
		p.own.Cut(typedsocket.CloseNormal, "")
		<-p.own.Done()
		<-p.relay.Done()
		for _, waiting := range p.asked {
			for _, q := range waiting {
				q.Drop()
			}
		}
	})
	return p
}

// node connects an ingress that is not registered.
func (r *rig) node() *remote { return r.dial(r.near, r.downs) }

// cloudly connects a Cloudly and tells the room that it accepted the relay.
func (r *rig) cloudly() *remote {
	p := r.dial(r.far, r.ups)
	r.SessionRegistered(p.relay)
	return p
}

// lose ends the session to Cloudly, as package cloudly would.
func (r *rig) lose(cloud *remote) {
	cloud.own.Cut(typedsocket.CloseGoingAway, "")
	<-cloud.relay.Done()
	r.SessionLost()
	synctest.Wait()
}

const offerText = `{"interfacesVersion":"32.40.1","minimumPeerVersion":"32.0.0"}`

// registrationOf is the registration of a node's ingress, as no encoder writes it.
func registrationOf(node, bearer string) string {
	return fmt.Sprintf(`{ "protocol" : %s,"nodeId":%q, "bearer":%q,"version":"3.0.0","capabilities":{"z":1.50,"a":[ ]} }`, offerText, node, bearer)
}

const acceptedText = `{"accepted":true,"revision":7,"protocol":{"interfacesVersion":"32.9.0","minimumPeerVersion":"32.1.0"}}`

// register registers an ingress over its socket.
func (r *rig) register(cloud, p *remote, node string) {
	r.t.Helper()
	c := p.start(registerMethod, registrationOf(node, "bearer-of-"+node))
	cloud.next(registerMethod).Answer([]byte(acceptedText))
	if a := <-c; a.err != nil {
		r.t.Fatalf("registration of %s: %v", node, a.err)
	}
}

// ingress returns a registered ingress that answers its hints.
func (r *rig) ingress(cloud *remote, node string) *remote {
	r.t.Helper()
	p := r.node()
	p.on(hintMethod, func(q *typedsocket.Request) { q.Answer([]byte("{}")) })
	r.register(cloud, p, node)
	return p
}

// tableOf is a table, as no encoder writes it, with a private key in it.
func tableOf(revision int64, key string) string {
	return fmt.Sprintf(`{ "revision":%d,"issuedAt":1767225600000 , "routes":[{"hostname":"a.example","destinations":[{"address":"10.0.4.7","port":30080}],`+
		`"certificate":{"privateKey":%q,"chain":"C","chain":"D"},"basicAuth":{"password":%[2]q}}],"portRoutes":[{"transport":"udp","port":53}]}`, revision, key)
}

func pushOf(table string) string { return `{"table":` + table + `}` }

// push pushes a table and returns the revision that it is answered with.
func (r *rig) push(cloud *remote, table string) int64 {
	r.t.Helper()
	a := cloud.ask(pushMethod, pushOf(table))
	if a.err != nil {
		r.t.Fatal(a.err)
	}
	read, err := contract.ReadPushRouteTableAnswer([]byte(a.body))
	if err != nil {
		r.t.Fatal(err)
	}
	return read.AppliedRevision
}

// refusedWith checks that a call was refused by name, and returns the reason.
func refusedWith(t testing.TB, a answered, name contract.RefusalName) string {
	t.Helper()
	var refused *typedsocket.RemoteError
	if !errors.As(a.err, &refused) {
		t.Fatalf("answered %.200s, %v; want %s", a.body, a.err, name)
	}
	reason, ok := strings.CutPrefix(refused.Text, string(name))
	if !ok || string(refused.Data) != fmt.Sprintf(`{"code":%q}`, name) {
		t.Fatalf("refused with %q, %s; want %s", refused.Text, refused.Data, name)
	}
	return strings.TrimPrefix(reason, ": ")
}

// declinedWith checks that a registration was refused with these data.
func declinedWith(t testing.TB, a answered, data string) {
	t.Helper()
	var refused *typedsocket.RemoteError
	if !errors.As(a.err, &refused) {
		t.Fatalf("answered %.200s, %v; want an error", a.body, a.err)
	}
	if string(refused.Data) != data {
		t.Fatalf("refused with %q, %s; want the data %s", refused.Text, refused.Data, data)
	}
}

func ownData(reason contract.RefusalName) string {
	return fmt.Sprintf(`{"code":"cluster-ingress-registration-refused","reason":%q,"retryAfterMs":5000}`, reason)
}

// unnamed checks that a call failed without a name.
func unnamed(t testing.TB, a answered) {
	t.Helper()
	var refused *typedsocket.RemoteError
	if !errors.As(a.err, &refused) || refused.Text != "Internal server error" || string(refused.Data) != "{}" {
		t.Fatalf("answered %.200s, %v; want a failure without a name", a.body, a.err)
	}
}

// known returns how many sockets the room knows.
func (r *rig) known() int {
	r.Ingress.mu.Lock()
	defer r.Ingress.mu.Unlock()
	return max(len(r.peers), len(r.roles.seats))
}

// status is the duty's part of the status document.
func (r *rig) status() Status { return r.Status().(Status) }

// told returns the events so far of these types, as "type key=value ...".
func (r *rig) told(types ...duty.EventType) []string {
	synctest.Wait()
	var out []string
	for _, e := range r.events.Since(0).Events {
		for _, t := range types {
			if e.Type == t {
				text := string(e.Type)
				for _, f := range e.Fields {
					text += " " + f.Key().String() + "=" + f.String()
				}
				out = append(out, text)
			}
		}
	}
	return out
}

// shown is everything that the room shows, by where.
func (r *rig) shown() map[string]string {
	r.t.Helper()
	synctest.Wait()
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			r.t.Fatal(err)
		}
		return string(b)
	}
	return map[string]string{"log": r.log.String(), "status": text(r.Status()), "events": text(r.events.Since(0)),
		"metrics": fmt.Sprint(r.Metrics().Snapshot()), "checks": fmt.Sprint(r.Checks(time.Now()))}
}

func pointerTo[T any](v T) *T { return &v }
