package simulate

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
)

func ingressRegistration(node, bearer string) []byte {
	return contract.IngressRegistration{Bearer: contract.Secret(bearer), Version: "1.0.0", NodeID: node, Protocol: DefaultOffer()}.AppendJSON(nil)
}

// refusedIngress is the exact refusal of a reason.
func refusedIngress(name string, body []byte, reason contract.RefusalName, ms int64) wrong {
	return wrong{name, body, "cluster-ingress-registration-refused: " + string(reason),
		fmt.Sprintf(`{"code":"cluster-ingress-registration-refused","reason":%q,"retryAfterMs":%d}`, reason, ms)}
}

// R71: the simulated Cloudly gives each reason in the order in which they are judged:
// every step mends the reason before it, so that the next one shows although all that
// follow are there too.
func TestR71_IngressRegistrationsAreJudgedInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, func(cfg *CloudlyConfig) {
			cfg.Offer = contract.Offer{InterfacesVersion: "32.44.0", MinimumPeerVersion: "32.10.0"}
		})
		c := s.dial(nil)
		c.authenticate()
		s.SetIngressReady(false)
		bad := ingressRegistration("node-a", "wrong")
		refuses := func(w wrong) { t.Helper(); c.refuses(registerIngress, w) }

		_, noOffer := contract.ReadOffer([]byte(`{}`))
		offerless := refusedIngress("no offer, before anything else", []byte(`{}`), contract.IngressRegistrationInvalid, 300_000)
		offerless.text += ": " + noOffer.Error()
		refuses(offerless)
		old := contract.Offer{InterfacesVersion: "32.9.0", MinimumPeerVersion: "32.0.0"}
		r := contract.ProtocolRefusal{Reason: contract.PeerBelowMinimum, Refusing: s.cfg.Offer, Refused: old}
		refuses(wrong{"an old peer, before anything else", compose().value("protocol", old).end(), r.Text(), string(r.AppendData(nil))})

		refuses(refusedIngress("not ready", swap(t, bad, `"version"`, `"novel"`), contract.IngressNotReady, 5000))
		s.SetIngressReady(true)

		for name, body := range map[string][]byte{
			"unknown member": swap(t, bad, `"version"`, `"novel"`), "no node id": swap(t, bad, "node-a", "a.b"),
			"empty bearer": swap(t, bad, `"wrong"`, `""`),
		} {
			_, err := contract.ReadIngressRegistration(body)
			w := refusedIngress(name, body, contract.IngressRegistrationInvalid, 300_000)
			w.text += ": " + err.Error()
			refuses(w)
		}

		refuses(refusedIngress("on a socket that carries no relay", bad, contract.IngressRelayNotConnected, 5000))
		wantViolations(t, s.Violations(), repeated(BeforeRegistration, 7)...)
		c.must(register, facts(0).AppendJSON(nil))

		refuses(refusedIngress("none designated", bad, contract.IngressNotDesignated, 60_000))
		bearer, err := s.DesignateIngress("node-b", "node-x")
		if err != nil {
			t.Fatal(err)
		}

		refuses(refusedIngress("another node", bad, contract.IngressNodeMismatch, 300_000))
		refuses(refusedIngress("a node of another cluster", ingressRegistration("node-x", bearer), contract.IngressNodeMismatch, 300_000))
		if again, _ := s.DesignateIngress("node-a"); again != bearer {
			t.Error("a new placement has another bearer")
		}
		if err := s.StopIngress("node-a"); err != nil {
			t.Fatal(err)
		}

		refuses(refusedIngress("not running", bad, contract.IngressAssignmentNotRunning, 5000))
		if err := s.RunIngress("node-a"); err != nil {
			t.Fatal(err)
		}

		refuses(refusedIngress("another bearer", bad, contract.IngressBearerRefused, 300_000))
		good := ingressRegistration("node-a", bearer)
		if got := c.must(registerIngress, good); got != acceptedBy(s.cfg.Offer, "null") {
			t.Errorf("got %s", got)
		}
		var reasons []contract.RefusalName
		for _, refused := range s.IngressRefusals() {
			reasons = append(reasons, refused.Reason)
		}
		want := []contract.RefusalName{"registration-invalid", "not-ready", "registration-invalid", "registration-invalid", "registration-invalid",
			"relay-not-connected", "ingress-not-designated", "node-mismatch", "node-mismatch", "assignment-not-running", "bearer-refused"}
		if diff := cmp.Diff(want, reasons); diff != "" {
			t.Errorf("refused (-want +got):\n%s", diff)
		}
		if last := s.IngressRefusals()[10]; last.NodeID != "node-a" || last.Socket != 1 {
			t.Errorf("%+v", last)
		}
		wantViolations(t, s.Violations()[7:])
	})
}

func repeated(rule Rule, n int) []Rule {
	var list []Rule
	for range n {
		list = append(list, rule)
	}
	return list
}

func TestAcceptedIngresses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		bearer, err := s.DesignateIngress("node-a", "node-b")
		if err != nil {
			t.Fatal(err)
		}
		table := tableOf(t, 7)
		s.SetRouteTable(&table)
		for _, id := range []string{"node-a", "node-b"} {
			body := swap(t, ingressRegistration(id, bearer), `"protocol"`, `"capabilities":{"x":[1.5]},"protocol"`)
			if got := c.must(registerIngress, body); got != acceptedBy(DefaultOffer(), "7") {
				t.Errorf("got %s", got)
			}
		}
		want := AcceptedIngress{Socket: 1, At: s.clock.now(), NodeID: "node-b", Version: "1.0.0", Capabilities: contract.Raw(`{"x":[1.5]}`),
			Offer: DefaultOffer(), Revision: 7, number: 2}
		if got := s.IngressRegistrations(); len(got) != 2 || !cmp.Equal(got[1], want, cmp.AllowUnexported(AcceptedIngress{})) {
			t.Errorf("got %+v", got)
		}
		if strings.Contains(fmt.Sprintf("%+v %#v", s.IngressRegistrations(), s.IngressRefusals()), bearer) {
			t.Error("a bearer is kept")
		}
		wantViolations(t, s.Violations())
	})
}

// A new credential counts from the moment on at which the assignments run with it.
func TestIngressBearerRotation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		if _, err := s.RotateIngressBearer(); err == nil {
			t.Error("rotated without a designation")
		}
		old, err := s.DesignateIngress("node-a")
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := s.RotateIngressBearer()
		if err != nil || fresh == old {
			t.Fatalf("rotated: %v", err)
		}
		for _, bearer := range []string{old, fresh} {
			c.refuses(registerIngress, refusedIngress("before the restart", ingressRegistration("node-a", bearer), contract.IngressAssignmentNotRunning, 5000))
		}
		if err := s.RunIngress("node-a"); err != nil {
			t.Fatal(err)
		}
		if err := s.RunIngress("node-b"); err == nil {
			t.Error("it runs where it was not placed")
		}
		c.refuses(registerIngress, refusedIngress("the old one", ingressRegistration("node-a", old), contract.IngressBearerRefused, 300_000))
		c.must(registerIngress, ingressRegistration("node-a", fresh))
		if err := s.SetIngressBearer("marked"); err != nil {
			t.Fatal(err)
		}
		c.must(registerIngress, ingressRegistration("node-a", "marked"))
		if err := s.RemoveNode("node-a"); err != nil {
			t.Fatal(err)
		}
		c.refuses(registerIngress, refusedIngress("its node is gone", ingressRegistration("node-a", "marked"), contract.IngressNodeMismatch, 300_000))
		s.WithdrawIngress()
		c.refuses(registerIngress, refusedIngress("withdrawn", ingressRegistration("node-a", "marked"), contract.IngressNotDesignated, 60_000))
		if next, err := s.DesignateIngress("node-b"); err != nil || next == "marked" {
			t.Errorf("the next designation has the old bearer, %v", err)
		}
		if _, err := s.DesignateIngress("a.b"); err == nil {
			t.Error("designated on what is no node")
		}
	})
}

// What changes while an answer is kept back is a conflict, and no acceptance.
func TestIngressRegistrationConflicts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		bearer, err := s.DesignateIngress("node-a")
		if err != nil {
			t.Fatal(err)
		}
		body := ingressRegistration("node-a", bearer)
		for name, change := range map[string]func(){
			"designation": func() { s.DesignateIngress("node-a", "node-b") },
			"assignment":  func() { s.RunIngress("node-a") },
			"session":     func() { c.node("node-a", s.credential("node-a"), nonceA) },
		} {
			s.Script(registerIngress, Late(time.Second))
			type said struct {
				answer string
				err    error
			}
			got := make(chan said, 1)
			go func() {
				answer, err := c.ask(registerIngress, body)
				got <- said{answer, err}
			}()
			synctest.Wait()
			change()
			answer := <-got
			wantRefusal(t, refusedIngress(name, nil, contract.IngressConflict, 1000), answer.answer, answer.err)
		}
		if n := len(s.IngressRegistrations()); n != 0 {
			t.Errorf("%d were accepted", n)
		}
		s.Script(registerIngress, Late(time.Second))
		c.must(registerIngress, body)
		if n := len(s.IngressRegistrations()); n != 1 {
			t.Errorf("%d were accepted", n)
		}
	})
}

func TestScriptedIngressRefusal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		for _, reason := range contract.IngressRegistrationReasons().Names() {
			for _, ms := range []int64{1000, 300_000} {
				s.Script(registerIngress, RefuseIngress(reason, time.Duration(ms)*time.Millisecond))
				c.refuses(registerIngress, refusedIngress("scripted", []byte(`{}`), reason, ms))
			}
		}
	})
}

// A registration that a relay forwards when its custody has ended is a breach.
func TestIngressAfterCustody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		s.Script(register, RefuseNamed(contract.RelayNodeForeign, "x"))
		c.ask(register, facts(1).AppendJSON(nil))
		bearer, _ := s.DesignateIngress("node-a")
		body := ingressRegistration("node-a", bearer)
		c.refuses(registerIngress, refusedIngress("on its way", body, contract.IngressRelayNotConnected, 5000))
		wantViolations(t, s.Violations())
		time.Sleep(custodyGrace + time.Millisecond)
		c.refuses(registerIngress, refusedIngress("later", body, contract.IngressRelayNotConnected, 5000))
		wantViolations(t, s.Violations(), AfterCustody)
	})
}

func TestCloudlyComposesTables(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(answers{contract.MethodPushRouteTable: `{"appliedRevision":2}`})
		ports := []IngressPortRoute{{"tcp", 25, []contract.Destination{{Address: "10.0.0.1", Port: 2525}}}}
		first, err := s.NextRouteTable(nil, ports)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`{"revision":1,"issuedAt":%d,"routes":[],"portRoutes":[{"transport":"tcp","port":25,"destinations":[{"address":"10.0.0.1","port":2525}]}]}`,
			s.clock.now().UnixMilli())
		if got := c.must(contract.MethodGetRouteTable, []byte("{}")); got != `{"table":`+want+`}` || string(first.Encoded) != want {
			t.Errorf("got %s", got)
		}
		table, err := s.PublishRoutes(soon(t), []IngressRoute{{Hostname: "a.example"}}, nil)
		if err != nil || table.Revision != 2 {
			t.Errorf("published %d, %v", table.Revision, err)
		}
		if _, err := s.PublishRoutes(soon(t), []IngressRoute{{Hostname: ""}}, nil); err == nil {
			t.Error("a table that is none is published")
		}
		if sent := s.Frames().Sent(contract.MethodPushRouteTable); len(sent) != 1 || !strings.Contains(string(sent[0].Body), `"hostname":"a.example"`) {
			t.Errorf("%d pushes", len(sent))
		}
	})
}
