package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/hub/network/networktest"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/carriertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs a test in fake time and checks that every buffer came back.
func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); carriertest.Bubble(t, f) }

const (
	applyMethod = contract.MethodApplyVPNNetwork
	pullMethod  = contract.MethodGetVPNNetwork
)

// lines collects what the logger writes.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }

func (l *lines) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// rig is a hub between a Cloudly that speaks the wire and nodes that dial it.
type rig struct {
	*Hub
	t      testing.TB
	net    *packetNet // nil on the loopback interface
	log    *lines
	events *duty.Events
	ups    chan *typedsocket.Socket
	begun  time.Time

	mu     sync.Mutex
	offset time.Duration // of the wall clock
	end    context.CancelFunc
	ran    chan error
}

const hubAddress = "192.0.2.1:4433"

// newRig makes a hub on a network of its own, and runs it.
func newRig(t testing.TB, change ...func(*Config)) *rig {
	r := &rig{net: newPacketNet()}
	r.build(t, append([]func(*Config){func(c *Config) {
		c.Address, c.ListenPacket = netip.MustParseAddrPort(hubAddress), r.net.ListenPacket
	}}, change...))
	return r
}

// newLoopbackRig makes a hub on the loopback interface, in true time.
func newLoopbackRig(t testing.TB) *rig {
	r := &rig{}
	r.build(t, []func(*Config){func(c *Config) {
		c.Address = netip.MustParseAddrPort("127.0.0.1:0")
		c.ListenPacket = new(net.ListenConfig).ListenPacket
	}})
	return r
}

func (r *rig) build(t testing.TB, change []func(*Config)) {
	t.Helper()
	r.t, r.log, r.begun, r.ran = t, &lines{}, time.Now(), make(chan error, 1)
	r.ups = make(chan *typedsocket.Socket, 1)
	catalogue, err := duty.NewCatalogue(EventKinds)
	if err != nil {
		t.Fatal(err)
	}
	log := duty.NewLogger(duty.LogConfig{Out: r.log, Level: -4, Wall: r.wall})
	r.events = duty.NewEvents(duty.EventsConfig{Catalogue: catalogue, Log: log, Wall: r.wall})
	cfg := Config{
		Key: keyOf(9999), Wall: r.wall, Log: log, Events: r.events,
		Call: func(ctx context.Context, sock *typedsocket.Socket, method string, request []byte, o typedsocket.CallOptions) (*typedsocket.Answer, error) {
			return sock.Call(ctx, method, request, o)
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	if r.Hub, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	if err := r.Bind(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.end = cancel
	go func() { r.ran <- r.Run(ctx) }()
	t.Cleanup(r.stop)
}

// stop ends Run, once.
func (r *rig) stop() {
	if r.end == nil {
		return
	}
	r.end()
	r.end = nil
	if err := <-r.ran; err != nil {
		r.t.Errorf("run: %v", err)
	}
}

// wall is a wall clock that can be stepped, and at which networks of networktest are
// in force.
func (r *rig) wall() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.UnixMilli(networktest.Admitted).Add(time.Since(r.begun) + r.offset)
}

func (r *rig) step(d time.Duration) { r.mu.Lock(); defer r.mu.Unlock(); r.offset += d }

func (r *rig) from(i int) string {
	if r.net == nil {
		return "127.0.0.1:0"
	}
	return fmt.Sprintf("198.51.%d.%d:0", 100+i/200, i%200+1)
}

func (r *rig) listen(ctx context.Context, network, address string) (net.PacketConn, error) {
	if r.net == nil {
		return new(net.ListenConfig).ListenPacket(ctx, network, address)
	}
	return r.net.ListenPacket(ctx, network, address)
}

// netOf is a network of so many nodes with a prefix each, 10.i.0.0/24, and grants
// between their domains, given as numbers of nodes: source, destination, ...
func netOf(revision int64, nodes int, pairs ...int) contract.VPNNetwork {
	x := networktest.Grid(nodes, 1)
	x.Revision = revision
	for i := range x.Nodes {
		x.Nodes[i].PublicKey = keyOf(i).Public().String()
	}
	var grants []string
	for _, p := range pairs {
		grants = append(grants, fmt.Sprintf("d%d.0", p))
	}
	return networktest.Grant(x, grants...)
}

// without takes nodes out of a network, and their grants.
func without(x contract.VPNNetwork, gone ...int) contract.VPNNetwork {
	var ids, domains []string
	for _, i := range gone {
		ids = append(ids, fmt.Sprintf("node-%03d", i))
		domains = append(domains, fmt.Sprintf("d%d.0", i))
	}
	x.Nodes = slices.DeleteFunc(slices.Clone(x.Nodes), func(n contract.VPNNode) bool { return slices.Contains(ids, n.NodeID) })
	x.Grants = slices.DeleteFunc(slices.Clone(x.Grants), func(g contract.VPNGrant) bool {
		return slices.Contains(domains, g.SourceDomain) || slices.Contains(domains, g.DestinationDomain)
	})
	return x
}

// ip is an address of node i's workloads.
func ip(i int) string { return fmt.Sprintf("10.%d.0.7", i) }

// control is node i's control address.
func control(i int) string { return fmt.Sprintf("192.168.0.%d", i+2) }

// cloud is Cloudly's end of the session.
type cloud struct {
	t     testing.TB
	own   *typedsocket.Socket
	relay *typedsocket.Socket

	hold  chan struct{} // a pull is answered when it is closed; nil at once
	pulls atomic.Int32

	mu   sync.Mutex
	nets []*contract.VPNNetwork // what pulls are answered, all further ones the last
}

func (c *cloud) ServeRequest(q *typedsocket.Request) {
	if c.hold != nil {
		<-c.hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pulls.Add(1)
	var answer contract.GetVPNNetworkAnswer
	if len(c.nets) > 0 {
		answer.Network = c.nets[0]
		c.nets = c.nets[min(1, len(c.nets)-1):]
	}
	q.Answer(answer.AppendJSON(nil))
}

// answers has pulls answered with these, one each, and all further ones with the last.
func (c *cloud) answers(nets ...*contract.VPNNetwork) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nets = nets
}

// cloudly connects a Cloudly and tells the hub that it accepted the relay.
func (r *rig) cloudly() *cloud {
	r.t.Helper()
	c := r.connect()
	r.SessionRegistered(c.relay)
	return c
}

// connect connects a Cloudly that has accepted nothing.
func (r *rig) connect() *cloud {
	r.t.Helper()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s, err := typedsocket.Accept(w, q, typedsocket.Config{Peer: "cloudly",
			Limits:  typedsocket.Limits{Frame: contract.CloudlyFrameLimit},
			Handler: typedsocket.HandlerFunc(func(q *typedsocket.Request) { r.Apply(q) })})
		if err == nil {
			r.ups <- s
		}
	})}
	far := carriertest.NewNetwork()
	served := make(chan struct{})
	go func() { defer close(served); server.Serve(far) }()
	c := &cloud{t: r.t}
	own, err := typedsocket.Connect(context.Background(), typedsocket.Dial{URL: "ws://relay/", Net: far.Dial,
		Config: typedsocket.Config{Peer: "relay", Limits: typedsocket.Limits{Frame: contract.CloudlyFrameLimit}, Handler: c}})
	if err != nil {
		r.t.Fatal(err)
	}
	c.own, c.relay = own, <-r.ups
	r.t.Cleanup(func() {
		c.own.Cut(typedsocket.CloseNormal, "")
		<-c.own.Done()
		<-c.relay.Done()
		server.Close()
		<-served
	})
	return c
}

// ask calls the relay and waits for the answer.
func (c *cloud) ask(body []byte) (string, error) {
	answer, err := c.own.Call(context.Background(), applyMethod, body, typedsocket.CallOptions{Timeout: time.Minute})
	if remote := (*typedsocket.RemoteError)(nil); errors.As(err, &remote) {
		return "", errors.New(remote.Text)
	}
	if err != nil {
		return "", err
	}
	defer answer.Release()
	return string(answer.Response()), nil
}

// apply pushes a network and returns the answer as state and revision.
func (c *cloud) apply(x contract.VPNNetwork) string {
	c.t.Helper()
	body, err := c.ask(contract.ApplyVPNNetworkRequest{Network: x}.AppendJSON(nil))
	if err != nil {
		return err.Error()
	}
	answer, err := contract.ReadApplyVPNNetworkAnswer([]byte(body))
	if err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprintf("%s %d", answer.State, answer.AppliedRevision)
}

// must pushes a network that is applied at once.
func (c *cloud) must(x contract.VPNNetwork) {
	c.t.Helper()
	if got := c.apply(x); got != fmt.Sprintf("idle %d", x.Revision) {
		c.t.Fatalf("apply of revision %d: %s", x.Revision, got)
	}
}

// status returns what the hub shows.
func (r *rig) status() Status { return r.Status().(Status) }

// member returns what the hub shows of node i.
func (r *rig) member(i int) Membership {
	r.t.Helper()
	for _, m := range r.status().Members {
		if m.Node == fmt.Sprintf("node-%03d", i) {
			return m
		}
	}
	r.t.Fatalf("the status does not show node %d", i)
	return Membership{}
}

// drops is how many packets were dropped for a reason.
func (r *rig) drops(why policy.Reason) uint64 { return r.metrics.drops.Of(why).Value() }

// handshakes is how many ended so.
func (r *rig) handshakes(how handshakeEnd) uint64 { return r.metrics.handshakes.Of(how).Value() }

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

// settle lets what is on its way arrive.
func settle() {
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
}

// dropping reports whether an end of custody has begun.
func (r *rig) dropping() bool { r.Hub.mu.Lock(); defer r.Hub.mu.Unlock(); return r.custody > 0 }
