package simulate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/carriertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs a test in fake time and checks that every buffer came back.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	carriertest.Bubble(t, f)
}

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

const testOrigin = "https://relay.cluster-a.serve.zone:8443"

// stage is a Cloudly on a network, with node-a, node-b and the foreign node-x.
type stage struct {
	*Cloudly
	t       *testing.T
	clock   *clock
	network *carriertest.Network
}

func newStage(t *testing.T, change func(*CloudlyConfig)) *stage {
	t.Helper()
	s := &stage{t: t, clock: &clock{}, network: carriertest.NewNetwork()}
	cfg := CloudlyConfig{Wall: s.clock.now, Origin: testOrigin}
	if change != nil {
		change(&cfg)
	}
	var err error
	if s.Cloudly, err = NewCloudly(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.Serve(s.network); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"node-a", "node-b"} {
		if _, err := s.EnrollNode(id); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.EnrollForeignNode("node-x"); err != nil {
		t.Fatal(err)
	}
	return s
}

// client is a relay reduced to its socket: it says what a test tells it to.
type client struct {
	t      *testing.T
	stage  *stage
	socket *typedsocket.Socket
	jwt    contract.Secret
}

// dial opens a socket to Cloudly that has said nothing yet.
func (s *stage) dial(h typedsocket.Handler) *client {
	s.t.Helper()
	c, err := s.tryDial(h)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *stage) tryDial(h typedsocket.Handler) (*client, error) {
	socket, err := typedsocket.Connect(s.t.Context(), typedsocket.Dial{URL: "ws://cloudly/any/path", Net: s.network.Dial,
		Config: typedsocket.Config{Peer: "cloudly", Handler: h, Limits: typedsocket.Limits{Frame: contract.CloudlyFrameLimit}}})
	if err != nil {
		return nil, err
	}
	s.t.Cleanup(func() {
		socket.Close(typedsocket.CloseNormal, "test over")
		<-socket.Done()
	})
	return &client{t: s.t, stage: s, socket: socket}, nil
}

// ask calls and returns the answer's text.
func (c *client) ask(method string, body []byte) (string, error) {
	answer, err := c.socket.Call(context.Background(), method, body, typedsocket.CallOptions{})
	if err != nil {
		return "", err
	}
	defer answer.Release()
	return string(answer.Response()), nil
}

func (c *client) must(method string, body []byte) string {
	c.t.Helper()
	answer, err := c.ask(method, body)
	if err != nil {
		c.t.Fatalf("%s: %v", method, explain(err))
	}
	return answer
}

// explain shows what the peer said, which errors do not.
func explain(err error) error {
	var remote *typedsocket.RemoteError
	if errors.As(err, &remote) {
		return errors.New(remote.Text + " " + string(remote.Data))
	}
	return err
}

// wrong is a message that a judge must refuse, with the exact refusal. Data ""
// stands for {}.
type wrong struct {
	name       string
	body       []byte
	text, data string
}

// refuses sends each wrong message and checks its refusal.
func (c *client) refuses(method string, cases ...wrong) {
	c.t.Helper()
	for _, w := range cases {
		answer, err := c.ask(method, w.body)
		wantRefusal(c.t, w, answer, err)
	}
}

func wantRefusal(t *testing.T, w wrong, answer string, err error) {
	t.Helper()
	if w.data == "" {
		w.data = "{}"
	}
	var remote *typedsocket.RemoteError
	if !errors.As(err, &remote) {
		t.Errorf("%s: got answer %q, error %v, want a refusal", w.name, answer, err)
		return
	}
	if diff := cmp.Diff([]string{w.text, w.data}, []string{remote.Text, string(remote.Data)}); diff != "" {
		t.Errorf("%s: refusal (-want +got):\n%s", w.name, diff)
	}
}

// unread is the wrong message that contract's own reader refuses, with the
// reasons it gives: how they are worded is contract's to test.
func unread[T any](t *testing.T, name string, read func([]byte) (T, error), body []byte) wrong {
	t.Helper()
	_, err := read(body)
	if err == nil {
		t.Fatalf("%s: the body is read", name)
	}
	return wrong{name, body, err.Error(), ""}
}

func named(name contract.RefusalName, reason string) (text, data string) {
	r := contract.Refusal{Name: name, Reason: reason}
	return r.Text(), string(r.AppendData(nil))
}

// authenticate exchanges the bearer and opens the client session.
func (c *client) authenticate() {
	c.t.Helper()
	c.exchange()
	c.must(contract.MethodRegisterCloudlyClientSession, c.session())
}

func (c *client) exchange() {
	c.t.Helper()
	body := c.must(contract.DefaultMethodExchangeIdentity,
		contract.IdentityExchangeRequest{Token: contract.Secret(c.stage.Authorization())}.AppendJSON(nil))
	answer, err := contract.ReadIdentityExchangeAnswer([]byte(body))
	if err != nil {
		c.t.Fatal(err)
	}
	c.jwt = answer.Identity.JWT
}

func (c *client) session() []byte {
	return contract.ClientSessionRequest{Identity: contract.IdentityCredential{JWT: c.jwt}, Protocol: DefaultOffer()}.AppendJSON(nil)
}

// facts are a registration that this Cloudly accepts.
func facts(sequence int64) contract.RelayRegistrationRequest {
	return contract.RelayRegistrationRequest{Protocol: DefaultOffer(), RegistrationSequence: sequence,
		Relay: contract.RelayFacts{Version: "4.0.0", NodeID: "node-a", ListenAddress: "10.0.4.7", ListenPort: 8443}}
}

func withHub(request contract.RelayRegistrationRequest, address string) contract.RelayRegistrationRequest {
	request.Relay.VPNHub = &contract.VPNHub{PublicKey: contract.NoiseKey{1}.String(), Address: address, QUICPort: 4433}
	return request
}

// relay returns a client that is authenticated and registered.
func (s *stage) relay(h typedsocket.Handler) *client {
	s.t.Helper()
	c := s.dial(h)
	c.authenticate()
	c.must(contract.MethodRegisterClusterRelay, withHub(facts(0), "192.0.2.1").AppendJSON(nil))
	return c
}

// node registers a node through the client and returns its session.
func (c *client) node(id string, credential NodeCredential, nonce string) contract.Raw {
	c.t.Helper()
	body := c.must(contract.MethodRegisterPalletRuntimeSession, registration(id, credential, nonce).AppendJSON(nil))
	session, err := contract.ReadSessionBinding([]byte(body), id)
	if err != nil {
		c.t.Fatal(err)
	}
	return session.Received
}

func (s *stage) credential(id string) NodeCredential {
	s.t.Helper()
	credential, err := s.EnrollNode(id)
	if err != nil {
		s.t.Fatal(err)
	}
	return credential
}

const (
	nonceA = "11111111-1111-4111-8111-111111111111"
	nonceB = "22222222-2222-4222-8222-222222222222"
)

func registration(id string, credential NodeCredential, nonce string) NodeRegistration {
	return NodeRegistration{NodeID: id, Credential: credential, Nonce: nonce,
		Authorities: []string{"network", "storage"}, Offer: DefaultOffer()}
}

// under composes a body with a session.
func under(session contract.Raw, members string) []byte {
	return compose().value("session", session).spread([]byte(members)).end()
}

func rulesOf(list []Violation) []Rule {
	rules := []Rule{}
	for _, v := range list {
		rules = append(rules, v.Rule)
	}
	return rules
}

func wantViolations(t *testing.T, list []Violation, want ...Rule) {
	t.Helper()
	if got := rulesOf(list); !slices.Equal(got, want) {
		t.Errorf("violations %v, want %v", got, want)
	}
}

// soon is a context of one minute.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// swap replaces one text in a body, which must hold it.
func swap(t *testing.T, body []byte, old, new string) []byte {
	t.Helper()
	if !strings.Contains(string(body), old) {
		t.Fatalf("%q is not in the body", old)
	}
	return []byte(strings.Replace(string(body), old, new, 1))
}

func wantProtocolRefusal(t *testing.T, err error, reason contract.Incompatibility) {
	t.Helper()
	var remote *typedsocket.RemoteError
	if !errors.As(err, &remote) {
		t.Fatalf("got error %v, want a protocol refusal", err)
	}
	refusal, ok := contract.ReadProtocolRefusal(remote.Data)
	if !ok || refusal.Reason != reason {
		t.Fatalf("got %v (%v), want %s", refusal, ok, reason)
	}
	// The stated reason is the one that the stated offers give.
	if judged, compatible := contract.Negotiate(refusal.Refusing, refusal.Refused); compatible || judged.Reason != reason {
		t.Fatalf("the offers give %q, want %s", judged.Reason, reason)
	}
}

func timeout(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
