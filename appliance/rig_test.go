package appliance

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"serve.zone/relay/config"
	"serve.zone/relay/duty"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket/carriertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	originHost   = "relay.cluster-a.serve.zone"
	originText   = "https://" + originHost + ":8443"
	cloudlyHost  = "cloudly.example"
	relayListens = "10.0.4.7:8443"
	operatorAt   = "127.0.0.1:9465"
)

// certificates are made once: they cost more than most tests.
var certificates = sync.OnceValue(func() *pairs {
	t := &quiet{}
	a := newAuthority(t)
	p := &pairs{authority: a}
	p.relayChain, p.relayKey = a.issue(t, originHost)
	p.otherChain, p.otherKey = a.issue(t, "other.serve.zone")
	p.cloudlyChain, p.cloudlyKey = a.issue(t, cloudlyHost)
	return p
})

type pairs struct {
	*authority
	relayChain, relayKey     []byte
	otherChain, otherKey     []byte
	cloudlyChain, cloudlyKey []byte
}

// quiet stands for a test while what all tests share is made.
type quiet struct{ testing.TB }

func (*quiet) Helper()           {}
func (*quiet) Fatal(args ...any) { panic(args) }

// clock is a wall clock that can be stepped.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// stepTo sets how far the clock is off.
func (c *clock) stepTo(offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = offset
}

// output is what the relay logged.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// forget drops what was logged so far, so that it weighs nothing in a long run.
func (o *output) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = bytes.Buffer{}
}

// rig is a whole relay between a simulated Cloudly and simulated nodes, in the
// fake time of a bubble.
type rig struct {
	t       *testing.T
	net     *network
	clock   *clock
	cloudly *simulate.Cloudly
	relay   *Appliance
	rec     *recorder
	log     *output
	dir     string

	stop  context.CancelFunc
	ended chan struct{} // closed when Run has returned
	err   error         // of Run
}

// change alters a rig before it is started.
type change struct {
	cloudly func(*simulate.CloudlyConfig)
	relay   func(*Config)
	idle    bool                    // the relay is not started
	parts   func(*Appliance) []part // duties before the recorder
}

// bubble runs a test in fake time.
func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); certificates(); carriertest.Bubble(t, f) }

// newRig starts a Cloudly and a relay, and waits for nothing.
func newRig(t *testing.T, c change) *rig {
	t.Helper()
	r := &rig{t: t, net: newNetwork(), clock: &clock{}, log: &output{}, dir: t.TempDir(), rec: &recorder{}}
	all := certificates()
	pair, err := tls.X509KeyPair(all.cloudlyChain, all.cloudlyKey)
	if err != nil {
		t.Fatal(err)
	}
	sim := simulate.CloudlyConfig{
		Wall: r.clock.now, Origin: originText,
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}, Time: r.clock.now},
	}
	if c.cloudly != nil {
		c.cloudly(&sim)
	}
	if r.cloudly, err = simulate.NewCloudly(sim); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.cloudly.Close)
	if err := r.cloudly.Serve(r.net.serve(cloudlyHost + ":443")); err != nil {
		t.Fatal(err)
	}
	r.net.alias(originHost+":8443", relayListens)
	r.build(c)
	if !c.idle {
		r.start()
	}
	return r
}

// build makes the relay of the rig.
func (r *rig) build(c change) {
	r.t.Helper()
	var err error
	if r.relay, err = build(r.config(c), recorderKinds, func(a *Appliance) []part {
		var before []part
		if c.parts != nil {
			before = c.parts(a)
		}
		return append(before, r.rec.part(a))
	}); err != nil {
		r.t.Fatal(err)
	}
}

// config writes the relay's files and returns its configuration.
func (r *rig) config(c change) Config {
	r.t.Helper()
	all := certificates()
	r.write("ca.pem", all.pem)
	r.write("cert.pem", all.relayChain)
	r.write("key.pem", all.relayKey)
	r.write("credential", []byte(r.cloudly.Authorization()))
	cfg := Config{
		Settings: r.settings(), Build: Build{Version: "0.1.0"},
		Listen: r.net.listen, Dial: r.net.dial, ListenPacket: r.net.listenPacket, Wall: r.clock.now,
		Log: duty.NewLogger(duty.LogConfig{Out: r.log, Wall: r.clock.now}),
	}
	if c.relay != nil {
		c.relay(&cfg)
	}
	return cfg
}

// settings are those of a relay as an operator would configure it, read by the
// reader that serve uses.
func (r *rig) settings() config.Config {
	r.t.Helper()
	in := func(name string) string { return filepath.Join(r.dir, name) }
	settings, _, err := config.Load(config.Sources{Flags: map[string]string{
		"cloudly-url": "https://" + cloudlyHost, "cloudly-ca-file": in("ca.pem"), "credential-file": in("credential"),
		"node-id": "node-relay", "listen": relayListens, "operator-listen": operatorAt,
		"tls-cert-file": in("cert.pem"), "tls-key-file": in("key.pem"),
	}})
	if err != nil {
		r.t.Fatal(err)
	}
	return settings
}

// write puts a file where the relay reads it, in one step.
func (r *rig) write(name string, content []byte) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		r.t.Fatal(err)
	}
}

// start starts the relay and has it run until the test ends.
func (r *rig) start() {
	r.t.Helper()
	if _, err := r.cloudly.EnrollNode("node-relay"); err != nil {
		r.t.Fatal(err)
	}
	if err := r.relay.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop, r.ended = cancel, make(chan struct{})
	go func() { defer close(r.ended); r.err = r.relay.Run(ctx) }()
	r.t.Cleanup(func() { r.halt() })
}

// halt ends the relay as SIGTERM does and returns what Run returned.
func (r *rig) halt() error {
	r.stop()
	<-r.ended
	return r.err
}

// registered waits until a socket newer than the given one carries the relay.
func (r *rig) registered(newerThan int) int {
	r.t.Helper()
	socket, err := r.cloudly.WaitRegistered(r.soon(), newerThan)
	if err != nil {
		r.t.Fatalf("%v\n%s", err, r.log)
	}
	synctest.Wait()
	return socket
}

// soon is a context for what must come within a minute.
func (r *rig) soon() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	r.t.Cleanup(cancel)
	return ctx
}

// node starts a simulated Pallet and waits until it is registered.
func (r *rig) node(id string) *simulate.Pallet {
	r.t.Helper()
	p := r.dialling(id, nil)
	if _, err := p.WaitRegistered(r.soon(), 0); err != nil {
		r.t.Fatalf("node %s: %v\n%s", id, err, r.log)
	}
	return p
}

// dialling starts a simulated Pallet and waits for nothing.
func (r *rig) dialling(id string, alter func(*simulate.PalletConfig)) *simulate.Pallet {
	r.t.Helper()
	credential, err := r.cloudly.EnrollNode(id)
	if err != nil {
		r.t.Fatal(err)
	}
	cfg := simulate.PalletConfig{
		URL: originText, TLS: &tls.Config{RootCAs: certificates().pool, Time: r.clock.now}, Dial: r.net.dial,
		Wall: r.clock.now, NodeID: id, Credential: credential, Authority: r.cloudly.Authority(),
	}
	if alter != nil {
		alter(&cfg)
	}
	p, err := simulate.NewPallet(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(p.Close)
	if err := p.Start(); err != nil {
		r.t.Fatal(err)
	}
	return p
}

// get asks the operator endpoint.
func (r *rig) get(path string) (status int, body string) {
	r.t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, n, a string) (net.Conn, error) { return r.net.dial(ctx, n, a) },
	}}
	request, err := http.NewRequestWithContext(r.soon(), http.MethodGet, "http://"+operatorAt+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// section returns the part of the status document of one duty.
func (r *rig) section(name string) map[string]any {
	r.t.Helper()
	var document map[string]any
	_, text := r.get("/status")
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		r.t.Fatalf("%v: %s", err, text)
	}
	return sectionOf(r.t, document, name)
}

// events returns the types of what was published, in order.
func (r *rig) events(types ...duty.EventType) []duty.Event {
	var found []duty.Event
	for _, e := range r.relay.events.Since(0).Events {
		for _, want := range types {
			if e.Type == want {
				found = append(found, e)
			}
		}
	}
	return found
}

// upstream returns the requests of a method that Cloudly received.
func (r *rig) upstream(method string) []simulate.Message { return r.cloudly.Frames().Received(method) }

// sequences returns the registration sequences that Cloudly accepted.
func (r *rig) sequences() []int64 {
	var all []int64
	for _, a := range r.cloudly.Registrations() {
		all = append(all, a.Sequence)
	}
	return all
}

// wantNoViolations checks that no peer saw the relay break a rule.
func (r *rig) wantNoViolations(nodes ...*simulate.Pallet) {
	r.t.Helper()
	all := r.cloudly.Violations()
	for _, p := range nodes {
		all = append(all, p.Violations()...)
	}
	for _, v := range all {
		r.t.Errorf("a peer saw a violation: %+v", v)
	}
}

// sectionOf finds a duty's part in the status document.
func sectionOf(t *testing.T, document map[string]any, name string) map[string]any {
	t.Helper()
	duties, _ := document["duties"].(map[string]any)
	section, ok := duties[name].(map[string]any)
	if !ok {
		t.Fatalf("the status document has no part %s: %v", name, document)
	}
	return section
}
