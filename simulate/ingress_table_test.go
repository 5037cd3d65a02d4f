package simulate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

var backend = contract.Destination{Address: "10.0.4.9", Port: 8080}

func (c *client) hint(revision int64) {
	c.t.Helper()
	if got := c.must(hintTable, contract.RouteTableChanged{Revision: revision}.AppendJSON(nil)); got != `{}` {
		c.t.Errorf("a hint is answered %s", got)
	}
	synctest.Wait()
}

func outcomes(i *Ingress) string {
	var list []string
	for _, j := range i.Tables() {
		list = append(list, fmt.Sprintf("%s %d", j.Outcome, j.Revision))
	}
	return strings.Join(list, ", ")
}

// R68, R73: at a simulated ingress the greatest revision stays, null is a fact, and a
// hint that is not newer costs nothing.
func TestR68_TheGreatestRevisionStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ca, says := authority(t), answers{}
		a := ca.route(t, "a.example", backend)
		i, _, c := ingressAlone(t, says, nil)
		says[pullTable] = tableAnswer(tableOf(t, 5, a))
		c.hint(5)
		c.hint(5)
		c.hint(4)
		if held, ok := i.Table(); !ok || held.Revision != 5 || i.Revision() != 5 || len(held.Routes) != 1 {
			t.Errorf("it holds %d", i.Revision())
		}
		if _, err := i.Pull(soon(t)); err != nil {
			t.Error(err)
		}
		says[pullTable] = tableAnswer(tableOf(t, 7))
		c.hint(6)
		if err := i.WaitRevision(soon(t), 7); err != nil {
			t.Error(err)
		}
		if got, want := outcomes(i), "none 0, applied 5, stale 5, applied 7"; got != want {
			t.Errorf("decided %s, want %s", got, want)
		}
		var known []string
		for _, m := range i.Frames().Sent(pullTable) {
			known = append(known, string(m.Body))
		}
		if diff := cmp.Diff([]string{`{"knownRevision":null}`, `{"knownRevision":null}`, `{"knownRevision":5}`, `{"knownRevision":5}`}, known); diff != "" {
			t.Error(diff)
		}
		wantViolations(t, i.Violations())
	})
}

// Each answer that goes back on what the relay has said on one socket is noted.
func TestTablesThatContradictTheRelay(t *testing.T) {
	ca := authority(t)
	a, b := ca.route(t, "a.example", backend), ca.route(t, "b.example", backend)
	for _, test := range []struct {
		name  string
		hint  int64
		table string
		rules []Rule
		want  TableOutcome
	}{
		{"older", 0, tableAnswer(tableOf(t, 4, a)), []Rule{TableWentBack}, TableStale},
		{"none any more", 0, `{"table":null}`, []Rule{TableWentBack}, TableNone},
		{"other content", 0, tableAnswer(tableOf(t, 5, b)), []Rule{TableChanged}, TableStale},
		{"behind its hint", 7, tableAnswer(tableOf(t, 6, a)), []Rule{TableBehindHint}, TableApplied},
		{"not newer than before its hint", 6, tableAnswer(tableOf(t, 5, a)), []Rule{TableBehindHint}, TableStale},
		{"newer than its hint", 6, tableAnswer(tableOf(t, 7, a)), nil, TableApplied},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				says := answers{pullTable: tableAnswer(tableOf(t, 5, a))}
				i, _, c := ingressAlone(t, says, nil)
				says[pullTable] = test.table
				if test.hint > 0 {
					c.hint(test.hint)
				} else if _, err := i.Pull(soon(t)); err != nil {
					t.Error(err)
				}
				all := i.Tables()
				if last := all[len(all)-1]; last.Outcome != test.want || len(all) != 2 {
					t.Errorf("decided %s", outcomes(i))
				}
				wantViolations(t, i.Violations(), test.rules...)
				// On a new socket the relay has said nothing yet.
				i.Reconnect()
				if _, err := i.WaitRegistered(soon(t), 1); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				wantViolations(t, i.Violations(), test.rules...)
			})
		})
	}
}

// R69: each wrong table is refused whole by the simulated ingress, with reasons that
// quote nothing, and the one that is held stays.
func TestR69_WrongTablesAreRefused(t *testing.T) {
	ca := authority(t)
	a, b := ca.route(t, "a.example", backend), ca.route(t, "b.example", backend)
	b.BasicAuth = &BasicAuth{"marked-user", "marked-password"}
	good := string(tableOf(t, 6, a, b).Encoded)
	change := func(old, new string) string { return replace(t, good, old, new) }
	quoted := func(s string) string { return string(appendText(nil, s)) }
	key, chain := quoted(b.Certificate.PrivateKey), quoted(b.Certificate.Chain)
	for _, test := range []struct {
		name, table string
		rule        Rule
		want        string
	}{
		{"revision 0", change(`"revision":6`, `"revision":0`), TableAnswer, "table.revision: is not a counter"},
		{"one hostname twice", change(`"b.example"`, `"A.example"`), TableAnswer, "table.routes[1].hostname: repeats the hostname of an earlier route"},
		{"a foreign address", change(`10.0.4.9`, `224.0.0.1`), TableAnswer, "table.routes[0].destinations[0].address: is not a unicast ipv4 literal"},
		{"another member of the table", change(`"routes"`, `"novel":1,"routes"`), TableAnswer, "table: unknown member"},
		{"a wildcard", change(`"b.example"`, `"*.example"`), TableContent, "routes[1].hostname: is not a dns name"},
		{"no certificate", change(`"certificate":{"chain":`+chain, `"novel":{"chain":`+chain), TableContent, "routes[1].certificate: is missing"},
		{"a rule that is not known", change(`"hostname":"b.example"`, `"path":"/x","hostname":"b.example"`), TableContent, "routes[1]: has a member that is not known"},
		{"a certificate that is none", change(chain, `"marked"`), TableContent, "routes[1].certificate: is no certificate with its private key"},
		{"a key that is none", change(key, `"marked"`), TableContent, "routes[1].certificate: is no certificate with its private key"},
		{"another's key", change(key, quoted(a.Certificate.PrivateKey)), TableContent, "routes[1].certificate: is no certificate with its private key"},
		{"another's certificate", change(`"b.example"`, `"c.example"`), TableContent, "routes[1].certificate.chain: does not name the hostname"},
		{"a chain that is no text", change(chain, `[1]`), TableContent, "routes[1].certificate.chain: is not a text"},
		{"a certificate with more", change(`"certificate":{"chain":`+chain, `"certificate":{"ocsp":1,"chain":`+chain), TableContent, "routes[1].certificate: has a member that is not known"},
		{"a user with a colon", change("marked-user", "marked:user"), TableContent, "routes[1].basicAuth.user: is not a user without a colon"},
		{"no password", change("marked-password", ""), TableContent, "routes[1].basicAuth.password: is not a text"},
		{"authentication that is none", change(`{"user":"marked-user","password":"marked-password"}`, `"marked"`), TableContent, "routes[1].basicAuth: is not an object"},
		{"a port route without members", change(`"portRoutes":[`, `"portRoutes":[{}`), TableContent, "portRoutes[0].transport: is missing"},
		{"a port route with more", change(`"portRoutes":[`, `"portRoutes":[{"transport":"tcp","port":1,"destinations":[],"tls":true}`), TableContent, "portRoutes[0]: has a member that is not known"},
		{"a member twice, deep inside", change(`"user":"marked-user"`, `"user":"marked-user","user":"marked-user"`), TableContent, "body: is not strict json"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				says := answers{pullTable: tableAnswer(tableOf(t, 5, a))}
				i, _, _ := ingressAlone(t, says, nil)
				says[pullTable] = `{"table":` + test.table + `}`
				j, err := i.Pull(soon(t))
				var invalid *contract.InvalidError
				if !errors.As(err, &invalid) || invalid.Reasons[0] != test.want {
					t.Fatalf("got %v, want %s", err, test.want)
				}
				if j.Outcome != TableRefused || j.Err != err || i.Revision() != 5 {
					t.Errorf("decided %s, holds %d", j.Outcome, i.Revision())
				}
				wantViolations(t, i.Violations(), test.rule)
				if all := strings.Join(invalid.Reasons, " "); strings.Contains(all, "marked") || strings.Contains(all, "PRIVATE") {
					t.Errorf("a secret is quoted: %s", all)
				}
			})
		})
	}
}

func TestTableAnswersAreExact(t *testing.T) {
	for _, body := range []string{`{}`, `{"table":null,"novel":1}`, `null`, `{"table":[]}`} {
		if table, err := readServedTable([]byte(body)); err == nil || table != nil {
			t.Errorf("%s is read", body)
		}
	}
}

// UDP is not forwarded, and that is said.
func TestUDPPortRoutesAreNotServed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		table, err := contract.NewRouteTable(3, 1, nil, raws([]IngressPortRoute{{"tcp", 53, destinations{backend}}, {"udp", 53, destinations{backend}}}))
		if err != nil {
			t.Fatal(err)
		}
		i, _, _ := ingressAlone(t, answers{pullTable: tableAnswer(table)}, nil)
		want := []string{"portRoutes[1]: udp is not forwarded by a simulated ingress"}
		if j := i.Tables()[0]; j.Outcome != TableApplied || !cmp.Equal(j.Unserved, want) {
			t.Errorf("%+v", j)
		}
	})
}

// R73: a hint with anything else in it is refused, noted and not followed by the
// simulated ingress.
func TestR73_HintsCarryTheRevisionAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		says := answers{}
		i, _, c := ingressAlone(t, says, nil)
		says[pullTable] = tableAnswer(tableOf(t, 5))
		bodies := []string{`{"revision":5,"table":{}}`, `{"revision":5,"routes":[]}`, `{}`, `{"revision":"5"}`, `{"revision":0}`, `[5]`}
		for _, body := range bodies {
			c.refuses(hintTable, unread(t, body, contract.ReadRouteTableChanged, []byte(body)))
		}
		synctest.Wait()
		wantViolations(t, i.Violations(), repeated(HintBody, len(bodies))...)
		if i.Revision() != 0 {
			t.Error("it was followed")
		}
	})
}

// A pull that fails is tried again; one that says that this is no ingress any more
// leads to a new registration; one that is answered wrongly waits for a hint.
func TestPullsAreTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		i, h, c := ingressAlone(t, answers{}, nil)
		var came []time.Duration
		began := time.Now()
		h.answer(pullTable, func(r *typedsocket.Request) {
			came = append(came, time.Since(began))
			r.Refuse("relay-not-ready", nil)
		})
		c.hint(5)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if got := fmt.Sprint(rounded(came)); got != "[0s 1s 3s 7s 15s]" {
			t.Errorf("pulled at %s", got)
		}
		h.answer(pullTable, func(r *typedsocket.Request) {
			r.Refuse("cluster-ingress-not-registered: x", nil)
			h.answer(pullTable, func(r *typedsocket.Request) { r.Answer([]byte(`{}`)) })
		})
		if _, err := i.WaitRegistered(soon(t), 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		(&client{t: t, socket: h.last()}).hint(6)
		n := len(i.Tables())
		time.Sleep(time.Hour)
		if len(i.Tables()) != n {
			t.Error("what was answered wrongly is asked again and again")
		}
	})
}

// What comes before the acceptance, or is no business of an ingress.
func TestRequestsToAnIngressAreJudged(t *testing.T) {
	const none = "There is no available method for this call on the server side"
	bubble(t, func(t *testing.T) {
		i, h, c := ingressAlone(t, answers{}, nil)
		for _, method := range []string{contract.MethodPushRouteTable, "applyRuntimeAssignment", registerIngress, "anything"} {
			c.refuses(method, wrong{method, []byte(`{}`), none, ""})
		}
		wantViolations(t, i.Violations(), repeated(NotForIngress, 4)...)
		h.answer(registerIngress, func(r *typedsocket.Request) { r.Refuse("no", nil) })
		i.Reconnect()
		time.Sleep(1100 * time.Millisecond)
		c.socket = h.last()
		const early = "the ingress is not registered on this socket"
		c.refuses(hintTable, wrong{"hint", []byte(`{"revision":1}`), early, ""})
		c.refuses(askTraffic, wrong{"question", []byte(`{}`), early, ""})
		wantViolations(t, i.Violations()[4:], BeforeAcceptance, BeforeAcceptance)
	})
}

// A hint that overtakes the acceptance is no breach.
func TestHintRightBeforeTheAcceptance(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHop(t)
		h.answer(pullTable, func(r *typedsocket.Request) { r.Answer([]byte(`{"table":null}`)) })
		hinted := make(chan error, 1)
		h.answer(registerIngress, func(r *typedsocket.Request) {
			s := r.Socket()
			go func() {
				answer, err := s.Call(t.Context(), hintTable, []byte(`{"revision":1}`), typedsocket.CallOptions{})
				if err == nil {
					answer.Release()
				}
				hinted <- err
			}()
			synctest.Wait()
			r.Answer([]byte(acceptedBy(relayOffer(), "null")))
		})
		i := h.ingress(nil)
		if err := <-hinted; err != nil {
			t.Errorf("the hint: %v", explain(err))
		}
		for _, v := range i.Violations() {
			if v.Rule != TableBehindHint {
				t.Errorf("%v", v)
			}
		}
	})
}

func TestIngressScripts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		i, _, c := ingressAlone(t, answers{}, nil)
		i.Script(askTraffic, Refuse("busy", nil), Respond([]byte(`{"statistics":[{}]}`)))
		c.refuses(askTraffic, wrong{"scripted", []byte(`{}`), "busy", ""})
		if got := c.must(askTraffic, question(day1, day1, 1, "")); got != `{"statistics":[{}]}` {
			t.Errorf("got %s", got)
		}
		i.Script(hintTable, CutOff())
		if _, err := c.ask(hintTable, []byte(`{"revision":1}`)); !errors.Is(err, typedsocket.ErrClosed) {
			t.Errorf("cut: %v", err)
		}
	})
}
