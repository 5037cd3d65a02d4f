package simulate

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"serve.zone/relay/contract"
)

// oneConn is an HTTP client over one connection.
func oneConn(conn net.Conn) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}}
}

func TestReadObject(t *testing.T) {
	for body, want := range map[string][]string{
		`{"a":"x","n":1,"l":["p","q"]}`:         nil,
		` {"n":1,"l":[],"a":"x"} `:              nil,
		`{"a":"x","n":1,"l":[],"o":null}`:       nil,
		`[]`:                                    {"body: is not an object"},
		``:                                      {"body: is not an object"},
		`{"a":"x","n":1,"l":[]} 1`:              {"body: has data after its value"},
		`{"a":"x","a":"x","n":1,"l":[]}`:        {"body: is not strict json"},
		`{"a":"x","\u0061":"x","n":1,"l":[]}`:   {"body: is not strict json"},
		"{\"a\":\"\xff\",\"n\":1,\"l\":[]}":     {"body: is not strict json"},
		`{"a":"\ud800","n":1,"l":[]}`:           {"body: is not strict json"},
		`{"a":"x","n":1,"l":[]`:                 {"body: is not strict json"},
		`{"a":"x","n":1,"l":[],}`:               {"body: is not strict json"},
		`{"n":1}`:                               {"a: is missing", "l: is missing"},
		`{"A":"x","n":1,"l":[]}`:                {"a: is missing", "body: has a member that is not known"},
		`{"a":"y","n":1,"l":[]}`:                {"a: is not x"},
		`{"a":1,"n":1,"l":[]}`:                  {"a: is not x"},
		`{"a":"x","n":0,"l":[]}`:                {"n: is not a counter"},
		`{"a":"x","n":1.0,"l":[]}`:              {"n: is not a counter"},
		`{"a":"x","n":9007199254740992,"l":[]}`: {"n: is not a counter"},
		`{"a":"x","n":"1","l":{}}`:              {"n: is not a counter", "l: is not an array"},
		`{"a":"x","n":1,"l":[1]}`:               {"l: is not an array of strings"},
	} {
		o := readObject("thing", []byte(body), []string{"a", "n", "l"}, "o")
		o.text("a", func(s string) bool { return s == "x" }, "is not x")
		o.counter("n")
		o.texts("l")
		var got []string
		var invalid *contract.InvalidError
		if errors.As(o.err(), &invalid) {
			got = invalid.Reasons
		}
		// A body that is not read whole has its members missing as well.
		if len(want) == 1 && strings.HasPrefix(want[0], "body: ") && len(got) > 1 {
			got = got[:1]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

// What the composer writes, the reader reads back.
func TestObjectRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		request := NodeRegistration{
			NodeID:      rapid.StringMatching(`[A-Za-z0-9_-]{1,128}`).Draw(t, "node"),
			Credential:  NodeCredential{rapid.Int64Range(1, contract.MaximumSafeInteger).Draw(t, "generation"), rapid.StringN(1, 50, -1).Draw(t, "token")},
			Nonce:       newNonce(),
			Authorities: rapid.SampledFrom([][]string{{}, {"network"}, {"network", "secrets", "storage"}}).Draw(t, "authorities"),
			Offer:       DefaultOffer(),
		}
		got, err := readNodeRegistration(request.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got.NodeID != request.NodeID || got.Credential != request.Credential || got.Nonce != request.Nonce ||
			!cmp.Equal(got.Authorities, request.Authorities) {
			t.Fatalf("got %+v, want %+v", got, request)
		}
	})
}

func TestSpread(t *testing.T) {
	for members, want := range map[string]string{`{}`: `{"a":1}`, ` { } `: `{"a":1}`, ` {"b":2} `: `{"a":1,"b":2}`} {
		if got := string(compose().integer("a", 1).spread([]byte(members)).end()); got != want {
			t.Errorf("%q: got %s, want %s", members, got, want)
		}
	}
	if got := string(compose().spread([]byte(`{"b":2}`)).end()); got != `{"b":2}` {
		t.Errorf("got %s", got)
	}
}

// A reader of a peer's bytes ends with a value or with reasons, never otherwise.
func FuzzReadPeersBodies(f *testing.F) {
	f.Add(registration("node-a", NodeCredential{1, "t"}, nonceA).AppendJSON(nil))
	f.Add(batch(1).AppendJSON(nil))
	f.Add([]byte(sessionAnswer(goodSession)))
	f.Add([]byte(`{"entries":[{"text":"\ud800"}],"final":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if x, err := readNodeRegistration(body); err == nil {
			again, err := readNodeRegistration(x.AppendJSON(nil))
			if err != nil && x.Offer != (contract.Offer{}) || err == nil && again.NodeID != x.NodeID {
				t.Errorf("a registration is not read back: %v", err)
			}
		}
		if b, err := readLogBatch(body); err == nil {
			if _, err := readLogBatch(b.AppendJSON(nil)); err != nil {
				t.Errorf("a batch is not read back: %v", err)
			}
		}
		readBinding(NodeRegistration{NodeID: "node-a"}, body, testScope())
		hasForeignMember(body)
		Frame{Text: body}.Message()
	})
}

func TestBackoff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.Float64Range(0, 0.999999).Draw(t, "random")
		b := backoff{first: time.Second, last: time.Minute, random: func() float64 { return r }}
		doubled := time.Second
		for i := range rapid.IntRange(1, 80).Draw(t, "failures") {
			whole := min(doubled, time.Minute)
			if got := b.next(); got < whole/2 || got > whole || got > time.Minute {
				t.Fatalf("failure %d: %s, want %s to %s", i, got, whole/2, whole)
			}
			doubled = min(2*doubled, time.Minute)
		}
		before := b.failures
		if b.stood(stableAfter - 1); b.failures != before {
			t.Fatal("a session that died at once resets the wait")
		}
		if b.stood(stableAfter); b.failures != 0 {
			t.Fatal("a session that stood does not reset the wait")
		}
	})
}
