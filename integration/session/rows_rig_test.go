package session_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/envelope"
)

// Methods that the rows use often, one in each direction.
const (
	registration = contract.MethodRegisterPalletRuntimeSession
	protection   = "reportRuntimeNetworkProtection"
	assignment   = "applyRuntimeAssignment"
)

// fromNodes are the methods of contract §8.1 and toNodes those of §8.2, written out here once more so that a gap in the
// relay's own catalogue shows.
var (
	fromNodes = []string{
		"registerPalletRuntimeSession", "reportRuntimeAssignmentObservation", "reportRuntimeAssignmentTerminalReceipt",
		"getRuntimeRegistryCredential", "getRuntimeManagedVpnCredential", "reportRuntimeNetworkProtection",
		"reportRuntimeNetworkProjectionApplication", "getRuntimeSecretRecipientState", "beginRuntimeSecretRecipientEnrollment",
		"completeRuntimeSecretRecipientEnrollment", "getRuntimeAssignmentSecretMaterial", "reportRuntimeAssignmentLogs",
	}
	toNodes = []string{
		"applyRuntimeAssignment", "applyRuntimeLocalStorageClaim", "applyRuntimeNetworkDnsLeaseRenewal", "readRuntimeAssignmentStats",
	}
)

// ready returns a relay that is ready, for a test that runs beside others.
func ready(t *testing.T, options ...rig.Option) *rig.Rig {
	t.Helper()
	t.Parallel()
	r := rig.New(t, options...)
	r.WaitReady()
	return r
}

// inner is what the relay only forwards in every odd body: no second encoder writes it so, and none that is careful reads
// it. Of two equal names, half surrogates and __proto__ it holds those that pass, below the levels which the relay reads.
const inner = `{"k":1,"k" : [1.0,-0,1e+21,1E400,0.10],"__proto__":null,"half":"\ud800 and \udfff\ud800",` +
	"\n\t\"\\u00e9\\/\":\"<\u2028&\u00e9>\",\"10\":0,\"2\":1}"

// member is one member of an object, its value as it is spelled.
type member struct{ name, value string }

// membersOf takes an object apart, in order, and looks into nothing below it.
func membersOf(t *testing.T, text []byte) []member {
	t.Helper()
	d := jsontext.NewDecoder(bytes.NewReader(text), loose, jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		t.Fatalf("%v in %.300q", err, text)
	}
	var members []member
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			t.Fatalf("%v in %.300q", err, text)
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			t.Fatalf("%v in %.300q", err, text)
		}
		members = append(members, member{name, string(value)})
	}
	return members
}

// taken is a message of a peer, taken apart.
func taken(t *testing.T, m simulate.Message) frame {
	t.Helper()
	f := frame{
		sent: m.Sent, text: string(m.Text), members: map[string]jsontext.Value{},
		method: m.Method, tag: m.Method, id: m.ID, instance: m.Instance, answer: !m.Request,
	}
	for _, member := range membersOf(t, m.Text) {
		f.names = append(f.names, member.name)
		f.members[member.name] = jsontext.Value(member.value)
	}
	slices.Sort(f.names)
	return f
}

// odd spells an object as no encoder does: members in reverse order, white space wherever it may stand, and the first
// letter of every name as an escape.
func odd(t *testing.T, body []byte) []byte {
	t.Helper()
	members := membersOf(t, body)
	slices.Reverse(members)
	texts := make([]string, len(members))
	for i, m := range members {
		texts[i] = escaped(m.name) + " :\n\t" + m.value
	}
	return []byte("{ " + strings.Join(texts, apart) + "\t}")
}

// escaped writes a name with its first letter as an escape.
func escaped(name string) string {
	const digits = "0123456789ABCDEF"
	return `"\u00` + string(digits[name[0]>>4]) + string(digits[name[0]&15]) + name[1:] + `"`
}

// apart is what stands between two members of an odd body.
const apart = "\r\n , "

// oddly makes a node spell its bodies so.
func oddly(t *testing.T) func(*simulate.PalletConfig) {
	return func(c *simulate.PalletConfig) { c.Spell = func(body []byte) []byte { return odd(t, body) } }
}

// anyway answers a request with these bytes, whatever it holds.
func anyway(response string) simulate.Step {
	return simulate.Step{Unjudged: true, Response: []byte(response)}
}

// crossings returns every call of a method that one peer made and the other served, at both ends of the relay, in order.
func crossings(t *testing.T, method string, asker, server *simulate.FrameLog) []exchange {
	t.Helper()
	sent, arrived := asker.Sent(method), server.Received(method)
	if len(sent) != len(arrived) || len(sent) == 0 {
		t.Fatalf("%s: %d were sent and %d arrived", method, len(sent), len(arrived))
	}
	all := make([]exchange, len(sent))
	for i := range sent {
		answered, one := server.Answer(arrived[i])
		returned, two := asker.Answer(sent[i])
		if !one || !two {
			t.Fatalf("%s: call %d was answered %t, and the answer came back %t", method, i, one, two)
		}
		all[i] = exchange{taken(t, sent[i]), taken(t, arrived[i]), taken(t, answered), taken(t, returned)}
	}
	return all
}

// wantRefused holds an answer to a refusal by name: by the text, which it leads, and by data {code} (contract §6.1, O10).
func wantRefused(t *testing.T, what string, err error, name contract.RefusalName) {
	t.Helper()
	var remote *typedsocket.RemoteError
	if !errors.As(err, &remote) {
		t.Errorf("%s: %v, want the refusal %s", what, err, name)
		return
	}
	if got, _, _ := strings.Cut(remote.Text, ": "); got != string(name) || string(remote.Data) != `{"code":"`+string(name)+`"}` {
		t.Errorf("%s: refused with %q %s, want %s", what, remote.Text, remote.Data, name)
	}
}

// withheld stands in every body that must not cross.
const withheld = "a-body-that-must-not-cross"

// wantWithheld checks that no such body has reached a peer. What came before it in the same flow must have arrived.
func wantWithheld(t *testing.T, l *simulate.FrameLog) {
	t.Helper()
	for _, f := range l.All() {
		if m, _ := f.Message(); !f.Sent && bytes.Contains(f.Text, []byte(withheld)) {
			t.Errorf("%s crossed the relay: %.300s", m.Method, f.Text)
		}
	}
}

// under is a body with a session and a member more.
func under(session contract.Raw, member string) []byte {
	return []byte(`{"session":` + string(session) + `,` + member + `}`)
}

// bound returns the session that a node holds.
func bound(t *testing.T, p *simulate.Pallet) contract.Raw {
	t.Helper()
	b, ok := p.Binding()
	if !ok {
		t.Fatal("the node has no session")
	}
	return b.Received
}

// wantCarried checks that a node's session works in both directions.
func wantCarried(t *testing.T, r *rig.Rig, node *simulate.Pallet, id string) {
	t.Helper()
	if _, err := node.Send(r.Soon(), protection, []byte(`{"of":"`+id+`"}`)); err != nil {
		t.Errorf("a report of %s: %v", id, err)
	}
	if _, err := r.Cloudly.CallNode(r.Soon(), id, assignment, []byte(`{"for":"`+id+`"}`)); err != nil {
		t.Errorf("a push for %s: %v", id, err)
	}
}

// registrationOf is the body that registers a node with its credential and this nonce.
func registrationOf(r *rig.Rig, id string, nonce int) string {
	return string(registering(id, r.Enroll(id), nonce).AppendJSON(nil))
}

func registering(id string, credential simulate.NodeCredential, nonce int) simulate.NodeRegistration {
	return simulate.NodeRegistration{
		NodeID: id, Credential: credential, Nonce: "00000000-0000-4000-8000-00000000000" + string(rune('0'+nonce)),
		Authorities: []string{"network"}, Offer: simulate.DefaultOffer(),
	}
}

// hand is a node's socket in the hands of a test: it sends what no right node would, and it acts on nothing.
type hand struct {
	*rig.Socket
	t       *testing.T
	session contract.Raw // once registered
}

// byHand opens a socket to the relay and registers nothing.
func byHand(t *testing.T, r *rig.Rig) *hand { t.Helper(); return &hand{Socket: r.DialNode(), t: t} }

// registered is byHand with a session of the node.
func registered(t *testing.T, r *rig.Rig, id string, nonce int) *hand {
	t.Helper()
	h := byHand(t, r)
	answer, err := h.ask(registration, registrationOf(r, id, nonce))
	if err != nil {
		t.Fatalf("register %s: %v", id, err)
	}
	h.take(answer, id)
	return h
}

// take holds the session of an answer.
func (h *hand) take(answer contract.Raw, id string) {
	h.t.Helper()
	binding, err := contract.ReadSessionBinding(answer, id)
	if err != nil {
		h.t.Fatal(err)
	}
	h.session = bytes.Clone(binding.Received)
}

// next returns the next message.
func (h *hand) next() frame {
	h.t.Helper()
	binary, text := h.Receive()
	if binary {
		h.t.Fatalf("a binary message: %.100q", text)
	}
	m, ok := simulate.Frame{Text: text}.Message()
	if !ok {
		h.t.Fatalf("no envelope: %.300q", text)
	}
	return taken(h.t, m)
}

// ask sends a request and returns the answer, which is the next message.
func (h *hand) ask(method, body string) (contract.Raw, error) {
	h.t.Helper()
	id := h.Request(method, body)
	f := h.next()
	if !f.answer || f.id != id || f.method != method {
		h.t.Fatalf("the answer to %s is %.300s", method, f.text)
	}
	return f.outcome(h.t)
}

// outcome is what an answer says: the response, or a *typedsocket.RemoteError.
func (f frame) outcome(t *testing.T) (contract.Raw, error) {
	t.Helper()
	if f.members["error"] == nil {
		return contract.Raw(f.members["response"]), nil
	}
	text, data, _ := envelope.ReadError(f.members["error"])
	return nil, &typedsocket.RemoteError{Text: text, Data: data}
}

// reply answers a request that the socket received.
func (h *hand) reply(request frame, response string) {
	h.t.Helper()
	h.Send(`{"method":"` + request.method + `","request":null,"response":` + response + `,"requestInstanceId":"` + request.instance +
		`","correlation":{"id":"` + request.id + `","phase":"response"}}`)
}
