package session_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/peers"
)

// loose lets bodies hold lone surrogates, which JSON.stringify writes.
var loose = jsontext.AllowInvalidUTF8(true)

// frame is one message that a Node peer recorded at its own socket.
type frame struct {
	sent     bool
	text     string
	names    []string                  // of the members, sorted
	members  map[string]jsontext.Value // the bytes that came
	method   string
	tag      string // of the request, by which the tests tell calls apart
	id       string // correlation.id
	instance string // requestInstanceId
	answer   bool
}

// read takes an envelope apart without changing a byte of its members.
func read(t *testing.T, sent bool, text string) frame {
	t.Helper()
	f := frame{sent: sent, text: text, members: map[string]jsontext.Value{}}
	d := jsontext.NewDecoder(strings.NewReader(text), loose)
	if _, err := d.ReadToken(); err != nil {
		t.Fatalf("no JSON object: %v in %.300q", err, text)
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			t.Fatalf("%v in %.300q", err, text)
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			t.Fatalf("%v in %.300q", err, text)
		}
		f.names = append(f.names, key)
		f.members[key] = slices.Clone(value)
	}
	slices.Sort(f.names)
	var known struct {
		Method      string `json:"method"`
		Instance    string `json:"requestInstanceId"`
		Correlation struct {
			ID    string `json:"id"`
			Phase string `json:"phase"`
		} `json:"correlation"`
	}
	var request struct {
		Tag string `json:"tag"`
	}
	if err := json.Unmarshal([]byte(text), &known, loose); err != nil {
		t.Fatalf("%v in %.300q", err, text)
	}
	json.Unmarshal(f.members["request"], &request, loose) // null in an answer of the relay
	f.method, f.instance, f.id = known.Method, known.Instance, known.Correlation.ID
	f.answer, f.tag = known.Correlation.Phase == "response", request.Tag
	return f
}

// peer is a Node program that records its messages.
type peer struct {
	*peers.Process
	t      *testing.T
	frames []frame // that were looked at so far
}

// find returns the first message that matches, waiting for it.
func (p *peer) find(match func(frame) bool) frame {
	p.t.Helper()
	for i := 0; ; i++ {
		if i == len(p.frames) {
			var recorded struct {
				Direction string `json:"direction"`
				Text      string `json:"text"`
			}
			p.Await("frame", &recorded)
			p.frames = append(p.frames, read(p.t, recorded.Direction == "out", recorded.Text))
		}
		if match(p.frames[i]) {
			return p.frames[i]
		}
	}
}

// request returns the nth request with this tag, from 0, that the peer sent or got.
func (p *peer) request(sent bool, tag string, nth int) frame {
	p.t.Helper()
	return p.find(func(f frame) bool {
		if f.answer || f.sent != sent || f.tag != tag {
			return false
		}
		nth--
		return nth < 0
	})
}

// answerTo returns the answer to a request at the same peer.
func (p *peer) answerTo(request frame) frame {
	p.t.Helper()
	return p.find(func(f frame) bool {
		return f.answer && f.sent != request.sent && f.id == request.id && f.instance == request.instance
	})
}

// arrived returns the tags of these calls in the order in which their first requests came.
func (p *peer) arrived(tags []string) []string {
	var order []string
	for _, f := range p.frames {
		if !f.sent && !f.answer && slices.Contains(tags, f.tag) && !slices.Contains(order, f.tag) {
			order = append(order, f.tag)
		}
	}
	return order
}

// identity returns the JWT that cloudly8 gave the relay.
func (p *peer) identity() string {
	p.t.Helper()
	answer := p.find(func(f frame) bool { return f.answer && f.method == contract.DefaultMethodExchangeIdentity })
	read, err := contract.ReadIdentityExchangeAnswer(answer.members["response"])
	if err != nil {
		p.t.Fatal(err)
	}
	return string(read.Identity.JWT)
}

// exchange is one call that passed the relay, at both ends.
type exchange struct {
	sent, arrived      frame // the request
	answered, returned frame // the answer
}

// between collects the nth send of the call with this tag from one peer to the other.
func between(asker, server *peer, tag string, nth int) exchange {
	asker.t.Helper()
	var x exchange
	x.sent = asker.request(true, tag, nth)
	x.arrived = server.request(false, tag, nth)
	x.answered = server.answerTo(x.arrived)
	x.returned = asker.answerTo(x.sent)
	return x
}

// minted are the ids that the relay gave to what it passed on.
type minted map[string]bool

// relayID is the form of TypedRequest's ids, 96 random bits.
var relayID = regexp.MustCompile(`^uni_[0-9a-f]{24}$`)

// foreign stands in everything that hop.mjs puts into an envelope beside what belongs there.
const foreign = "foreign-of-"

// check holds the exchange to R29, and to what design §3.1 lets cross besides.
func (x exchange) check(t *testing.T, ids minted) {
	t.Helper()
	same(t, "method", x.sent, x.arrived)
	same(t, "request", x.sent, x.arrived)
	same(t, "method", x.sent, x.returned)
	crossed := []string{"response"}
	for _, name := range []string{"error", "retry"} {
		if x.answered.members[name] != nil {
			crossed = append(crossed, name)
		}
	}
	for _, name := range crossed {
		same(t, name, x.answered, x.returned)
	}
	own := []string{"method", "request", "requestInstanceId", "correlation"}
	x.arrived.holds(t, append(own, "response"), "response")
	x.returned.holds(t, append(own, crossed...), "request")
	for _, id := range []string{x.arrived.id, x.arrived.instance} {
		if !relayID.MatchString(id) || ids[id] || id == x.sent.id || id == x.sent.instance {
			t.Errorf("%s: %q is no fresh id of the relay", x.sent.tag, id)
		}
		ids[id] = true
	}
}

// same compares the bytes of a member at both ends of the relay.
func same(t *testing.T, name string, from, to frame) {
	t.Helper()
	left, came := from.members[name], to.members[name]
	if bytes.Equal(left, came) {
		return
	}
	at := 0
	for at < min(len(left), len(came)) && left[at] == came[at] {
		at++
	}
	part := func(b []byte) []byte { return b[max(at-40, 0):min(at+40, len(b))] }
	t.Errorf("%s of %s differs from byte %d on: %q left, %q came", name, from.method, at, part(left), part(came))
}

// holds checks what an envelope of the relay has in it: these members, null in one of them, and nothing that a peer
// added to its own.
func (f frame) holds(t *testing.T, names []string, null string) {
	t.Helper()
	slices.Sort(names)
	if diff := cmp.Diff(names, f.names); diff != "" {
		t.Errorf("members of an envelope of %s (-want +got):\n%s", f.method, diff)
	}
	if got := string(f.members[null]); got != "null" {
		t.Errorf("the %s in an envelope of %s is %.100q", null, f.method, got)
	}
	if strings.Contains(f.text, foreign) {
		t.Errorf("a foreign member crossed with %s: %.300q", f.method, f.text)
	}
}

// unusual checks that what a peer sent is what no second encoder would write again, and that its envelope holds what
// must not cross: otherwise there is nothing to compare.
func (f frame) unusual(t *testing.T, name string) {
	t.Helper()
	for _, want := range []string{`1e+21`, `"\ud800"`, `\udfff\ud800`, "\u2028", "\n", "\t", `"10": `} {
		if !bytes.Contains(f.members[name], []byte(want)) {
			t.Errorf("%s of %s does not hold %q", name, f.method, want)
		}
	}
	for _, foreign := range []string{"localData", "authInfo"} {
		if f.members[foreign] == nil {
			t.Errorf("an envelope of %s holds no %s", f.method, foreign)
		}
	}
}
