package forward

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
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

// testConn is what the listener would hand over.
type testConn struct {
	sock *typedsocket.Socket
	mu   sync.Mutex
	role string
	node string
}

func (c *testConn) Socket() *typedsocket.Socket { return c.sock }

func (c *testConn) Role() string { c.mu.Lock(); defer c.mu.Unlock(); return c.role }

func (c *testConn) Bound() string { c.mu.Lock(); defer c.mu.Unlock(); return c.node }

func (c *testConn) become(role string) { c.mu.Lock(); defer c.mu.Unlock(); c.role = role }

func (c *testConn) BindNode(node string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.role != RoleUnbound && c.node != node {
		return errors.New("the socket is something else")
	}
	c.role, c.node = RoleNode, node
	return nil
}

// rig is a whole room between bare peers: nodes on one side, Cloudly on the
// other.
type rig struct {
	*Forward
	t      testing.TB
	log    *lines
	events *duty.Events
	nodes  *carriertest.Network
	cloud  *carriertest.Network
	mu     sync.Mutex
	conns  map[*typedsocket.Socket]*testConn
	ups    chan *typedsocket.Socket
	downs  chan *typedsocket.Socket
	dials  chan struct{} // held while one dials, so that it gets its own socket
	// What serves requests, when a test does it itself.
	serveNode    func(*testConn, *typedsocket.Request)
	serveCloudly func(*typedsocket.Request)
	seen         memories
	hooks        []string // what the hooks were told, in order
}

// memories keeps the memory that messages of peers were read into, to look at it
// when it should be nobody's any more.
type memories struct {
	mu   sync.Mutex
	keep bool
	all  [][]byte
}

func (m *memories) Received(_ bool, p []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keep {
		m.all = append(m.all, p)
	}
}

func (m *memories) Sent(bool, []byte) {}

// lines collects what the logger writes.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }

func (l *lines) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

func newRig(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, log: &lines{}, nodes: carriertest.NewNetwork(), cloud: carriertest.NewNetwork(), conns: map[*typedsocket.Socket]*testConn{},
		ups: make(chan *typedsocket.Socket, 1), downs: make(chan *typedsocket.Socket, 1), dials: make(chan struct{}, 1)}
	catalogue, err := duty.NewCatalogue(EventKinds)
	if err != nil {
		t.Fatal(err)
	}
	log := duty.NewLogger(duty.LogConfig{Out: r.log})
	r.events = duty.NewEvents(duty.EventsConfig{Catalogue: catalogue, Log: log})
	cfg := Config{Log: log, Events: r.events,
		OnBound:   func(b Binding) { r.hook("bound " + b.NodeID + " " + string(b.Session.Received)) },
		OnUnbound: func(node string) { r.hook("unbound " + node) },
		OnStaleCredential: func(up *typedsocket.Socket, data []byte) {
			r.hook("stale " + up.Peer() + " " + string(data))
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	if r.Forward, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	r.serveNode = func(c *testConn, q *typedsocket.Request) { r.NodeRequest(c, q) }
	r.serveCloudly = r.CloudlyRequest
	r.serve(r.nodes, r.downs, typedsocket.Config{Peer: "node", OverloadName: string(contract.RelayOverloaded),
		Limits:  typedsocket.Limits{Frame: contract.UnregisteredFrameLimit},
		Handler: typedsocket.HandlerFunc(func(q *typedsocket.Request) { r.serveNode(r.conn(q.Socket()), q) })})
	r.serve(r.cloud, r.ups, typedsocket.Config{Peer: "cloudly", KeepMalformed: true,
		Limits:  typedsocket.Limits{Frame: contract.CloudlyFrameLimit},
		Handler: typedsocket.HandlerFunc(func(q *typedsocket.Request) { r.serveCloudly(q) })})
	return r
}

func (r *rig) serve(n *carriertest.Network, accepted chan<- *typedsocket.Socket, cfg typedsocket.Config) {
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

func (r *rig) hook(what string) { r.mu.Lock(); defer r.mu.Unlock(); r.hooks = append(r.hooks, what) }

// told returns what the hooks were told since the last call.
func (r *rig) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.hooks
	r.hooks = nil
	return told
}

// conn is the one Conn of a socket.
func (r *rig) conn(s *typedsocket.Socket) *testConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.conns[s]
	if c == nil {
		c = &testConn{sock: s, role: RoleUnbound}
		r.conns[s] = c
	}
	return c
}

// frame is one message as it came.
type frame struct {
	text              string
	Method            string
	Request, Response json.RawMessage
	Error             *struct {
		Text string
		Data json.RawMessage
	}
	Retry             json.RawMessage
	RequestInstanceID string
	Correlation       struct{ ID, Phase string }
}

// wire is a bare WebSocket peer that reads all the time.
type wire struct {
	t      testing.TB
	ws     *websocket.Conn
	sock   *typedsocket.Socket // the relay's end
	frames chan frame
	ended  chan struct{}
	code   websocket.StatusCode // once ended
	gate   *gate
	next   int
}

// gate lets reads through while it is open.
type gate struct {
	net.Conn
	mu     sync.Mutex
	opened chan struct{}
	isShut bool
}

// shut lets one more read through, which is under way.
func (g *gate) shut() {
	synctest.Wait()
	g.mu.Lock()
	g.opened, g.isShut = make(chan struct{}), true
	g.mu.Unlock()
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isShut {
		close(g.opened)
		g.isShut = false
	}
}

func (g *gate) Read(p []byte) (int, error) {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	<-opened
	return g.Conn.Read(p)
}

func (r *rig) dial(n *carriertest.Network, accepted <-chan *typedsocket.Socket) *wire {
	r.t.Helper()
	r.dials <- struct{}{}
	defer func() { <-r.dials }()
	client, server := net.Pipe()
	g := &gate{Conn: client, opened: make(chan struct{}), isShut: true}
	g.open()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return n.Connect(ctx, g, server) }}
	ws, _, err := websocket.Dial(context.Background(), "ws://relay/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		r.t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	w := &wire{t: r.t, ws: ws, frames: make(chan frame, 1<<16), ended: make(chan struct{}), gate: g}
	w.sock = <-accepted
	go w.read()
	r.t.Cleanup(func() { w.hangUp(); <-w.sock.Done() })
	return w
}

func (w *wire) read() {
	defer close(w.ended)
	for {
		_, text, err := w.ws.Read(context.Background())
		if err != nil {
			w.code = websocket.CloseStatus(err)
			return
		}
		f := frame{text: string(text)}
		if err := json.Unmarshal(text, &f); err != nil {
			w.t.Errorf("no JSON: %.200s", text)
		}
		w.frames <- f
	}
}

func (w *wire) hangUp() { w.gate.open(); w.ws.CloseNow(); <-w.ended }

func (r *rig) dialNode() *wire { return r.dial(r.nodes, r.downs) }

// cloudly connects a Cloudly and tells the room that it accepted the relay.
func (r *rig) cloudly() *wire {
	w := r.dial(r.cloud, r.ups)
	r.UpstreamRegistered(w.sock)
	return w
}

// lose ends the session to Cloudly, as package cloudly would.
func (r *rig) lose(w *wire) {
	w.hangUp()
	<-w.sock.Done()
	r.UpstreamLost()
}

// write sends one message as it is.
func (w *wire) write(text string) {
	w.t.Helper()
	if err := w.ws.Write(context.Background(), websocket.MessageText, []byte(text)); err != nil {
		w.t.Fatal(err)
	}
}

// send sends a request and returns its correlation id.
func (w *wire) send(method, body string) string {
	w.t.Helper()
	w.next++
	id := fmt.Sprintf("c%d", w.next)
	w.write(fmt.Sprintf(`{"method":%q,"request":%s,"response":null,"requestInstanceId":"i%d","correlation":{"id":%q,"phase":"request"}}`, method, body, w.next, id))
	return id
}

// answer answers a request with these members.
func (w *wire) answer(f frame, members string) {
	w.t.Helper()
	w.write(fmt.Sprintf(`{"method":%q,%s,"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, f.Method, members, f.RequestInstanceID, f.Correlation.ID))
}

// recv waits for one message.
func (w *wire) recv() frame {
	w.t.Helper()
	select {
	case f := <-w.frames:
		return f
	case <-w.ended:
	case <-time.After(time.Minute):
	}
	select {
	case f := <-w.frames: // the last one before the end
		return f
	default:
		w.t.Fatal("no message, but an end or a minute's silence")
		return frame{}
	}
}

// none fails if a message came, or comes without time passing.
func (w *wire) none() {
	w.t.Helper()
	synctest.Wait()
	select {
	case f := <-w.frames:
		w.t.Fatalf("got %.300s", f.text)
	default:
	}
}

// closed waits for the end and returns the code.
func (w *wire) closed() typedsocket.CloseCode {
	w.t.Helper()
	select {
	case <-w.ended:
		return typedsocket.CloseCode(w.code)
	case <-time.After(time.Minute):
		w.t.Fatal("not closed within a minute")
		return 0
	}
}

// refused checks that a message is a refusal by name, in text and data, and
// returns its reason.
func refused(t testing.TB, f frame, name contract.RefusalName) string {
	t.Helper()
	if f.Error == nil || f.Correlation.Phase != "response" {
		t.Fatalf("not refused: %.300s", f.text)
	}
	reason, ok := strings.CutPrefix(f.Error.Text, string(name)+": ")
	if !ok || string(f.Error.Data) != fmt.Sprintf(`{"code":%q}`, name) || string(f.Response) != "null" || f.Retry != nil {
		t.Fatalf("refused with %s, want %s", f.text, name)
	}
	return reason
}

// unnamed checks that a message is a failure that names no cause.
func unnamed(t testing.TB, f frame) {
	t.Helper()
	if f.Error == nil || f.Error.Text != "Internal server error" || string(f.Error.Data) != "{}" || string(f.Response) != "null" {
		t.Fatalf("want an unnamed failure: %.300s", f.text)
	}
}

// sessionOf is a session as Cloudly would issue it, with text that no encoder
// writes again.
func sessionOf(node string, epoch int) string {
	return fmt.Sprintf(`{ "nodeId":%q,"controller":{"kind" : "cloudly","id":"c1"},"clusterId":"cluster-a","runtimeNamespace":"ns:1",`+
		`"credentialGeneration":1.0, "sessionEpoch":%d}`, node, epoch)
}

func registrationOf(node string) string {
	return fmt.Sprintf(`{ "nodeId":%q, "bearer":"bearer-of-%s","nodeInstanceNonce":"n"}`, node, node)
}

const register = contract.MethodRegisterPalletRuntimeSession

func accepted(session string) string {
	return `"response":{"session":` + session + `,"protocol":{"interfacesVersion":"32.44.0"}}`
}

// register registers a node over its socket and returns its session.
func (r *rig) register(cloud, node *wire, id string, epoch int) string {
	r.t.Helper()
	session := sessionOf(id, epoch)
	node.send(register, registrationOf(id))
	cloud.answer(cloud.recv(), accepted(session))
	if f := node.recv(); f.Error != nil || !strings.Contains(f.text, session) {
		r.t.Fatalf("registration answered %s", f.text)
	}
	return session
}

// bound returns a node that is registered, with its session.
func (r *rig) bound(cloud *wire, id string) (node *wire, session string) {
	r.t.Helper()
	node = r.dialNode()
	return node, r.register(cloud, node, id, 1)
}

// body is a body with a session and one more member.
func body(session, more string) string { return `{"session":` + session + `,` + more + `}` }

// eventsOf returns the events so far as "type key=value ...", from seq on.
func (r *rig) eventsOf(types ...duty.EventType) []string {
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
