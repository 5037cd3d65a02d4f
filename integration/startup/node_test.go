package startup_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

const (
	// report is a method that passes from a node to Cloudly, and assign one that
	// passes the other way.
	report = "reportRuntimeNetworkProtection"
	assign = "applyRuntimeAssignment"

	// register is the relay's own registration.
	register = contract.MethodRegisterClusterRelay
	// openSession authenticates the relay's socket, exchange is what comes before.
	openSession = contract.MethodRegisterCloudlyClientSession
	exchange    = contract.DefaultMethodExchangeIdentity
	pull        = contract.DefaultMethodGetConfiguration
	push        = contract.DefaultMethodPushConfiguration
)

// member is a body that any report may have.
var member = []byte(`{"entry":1}`)

// puppet is a node whose every word is the test's: a raw socket that has registered.
// A Pallet would answer and dial again by itself.
type puppet struct {
	*rig.Socket
	t       *testing.T
	session json.RawMessage
}

// letter is a TypedRequest envelope.
type letter struct {
	Method      string          `json:"method"`
	Request     json.RawMessage `json:"request"`
	Response    json.RawMessage `json:"response"`
	Instance    string          `json:"requestInstanceId"`
	Correlation struct {
		ID    string `json:"id"`
		Phase string `json:"phase"`
	} `json:"correlation"`
	Error *struct {
		Text string          `json:"text"`
		Data json.RawMessage `json:"data"`
	} `json:"error"`
}

// newPuppet registers a node on a raw socket.
func newPuppet(t *testing.T, r *rig.Rig, id string) *puppet {
	t.Helper()
	p := &puppet{Socket: r.DialNode(), t: t}
	p.Request(contract.MethodRegisterPalletRuntimeSession, registration(r.Enroll(id), id))
	answer := p.next()
	var body struct {
		Session json.RawMessage `json:"session"`
	}
	if err := json.Unmarshal(answer.Response, &body); err != nil || answer.Error != nil || body.Session == nil {
		t.Fatalf("the registration of %s was answered %+v: %v", id, answer, err)
	}
	p.session = body.Session
	return p
}

// registration is the request with which a node registers.
func registration(c simulate.NodeCredential, id string) string {
	return string(simulate.NodeRegistration{
		NodeID: id, Credential: c, Nonce: "6b1f0c8e-0d5a-4c52-9f0e-2f7e4f3c9a11",
		Authorities: []string{"network", "secrets", "storage"}, Offer: simulate.DefaultOffer(),
	}.AppendJSON(nil))
}

// next returns the next message.
func (p *puppet) next() letter {
	p.t.Helper()
	_, text := p.Receive()
	var l letter
	if err := json.Unmarshal(text, &l); err != nil {
		p.t.Fatalf("a message is no envelope: %v", err)
	}
	return l
}

// under returns a body under the session that the puppet obtained.
func (p *puppet) under(members string) string {
	return fmt.Sprintf(`{"session":%s,%s}`, p.session, members)
}

// answer answers a request that Cloudly sent.
func (p *puppet) answer(l letter, response string) {
	p.t.Helper()
	p.Send(fmt.Sprintf(`{"method":%q,"request":null,"response":%s,"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`,
		l.Method, response, l.Instance, l.Correlation.ID))
}
