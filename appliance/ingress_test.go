package appliance

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// markedTable is a route table with a key in it that must be seen by the ingress
// alone.
func markedTable(t *testing.T, revision int64) contract.RouteTable {
	t.Helper()
	route := contract.Raw(fmt.Sprintf(`{"hostname":"app.example","destinations":[{"address":"10.0.4.9","port":8080}],"certificate":{"privateKey":"marked-key-%d"}}`, revision))
	table, err := contract.NewRouteTable(revision, time.Now().UnixMilli(), []contract.Raw{route}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

const ingressRegistration = `{"bearer":"marked-ingress-bearer","version":"1.2.3","nodeId":"node-a","protocol":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}}`

// withIngress returns a relay that holds a table and carries an ingress.
func withIngress(t *testing.T) (*rig, *wire) {
	t.Helper()
	r := newRig(t, change{idle: true})
	first := markedTable(t, 5)
	r.cloudly.SetRouteTable(&first)
	r.cloudly.Handle(contract.MethodRegisterIngress, func(string, []byte) ([]byte, error) {
		return []byte(`{"accepted":true,"revision":5,"protocol":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}}`), nil
	})
	r.start()
	r.registered(0)
	w := r.dialled("node-a")
	if _, err := w.call(contract.MethodRegisterIngress, ingressRegistration); err != nil {
		t.Fatalf("the ingress: %v\n%s", err, r.log)
	}
	return r, w
}

// table asks for the table, and returns what was refused instead.
func (w *wire) table() (string, error) {
	body, err := w.call(contract.MethodGetIngressRouteTable, `{"knownRevision":null}`)
	return string(body), err
}

// R68, R72, R73: the table is pulled and pushed, its ingress hears of it and gets it,
// nobody else does, and it is served while Cloudly is away.
func TestR68_R72_R73_TheTableReachesItsIngressAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, w := withIngress(t)
		if got, err := w.table(); err != nil || !strings.Contains(got, "marked-key-5") {
			t.Errorf("the table that was pulled: %s, %v", got, err)
		}
		if revision, err := r.cloudly.PushRouteTable(r.soon(), markedTable(t, 7)); err != nil || revision != 7 {
			t.Errorf("push: %d, %v", revision, err)
		}
		synctest.Wait()
		w.mu.Lock()
		hints := strings.Join(w.pushed, " ")
		w.mu.Unlock()
		if hints != contract.MethodPushIngressRouteTableChanged {
			t.Errorf("the ingress heard %q", hints)
		}
		node := r.wired("node-b")
		if _, err := node.table(); refusedBy(err) != contract.ClusterIngressNotRegistered {
			t.Errorf("a node asks for the table: %v", err)
		}
		if _, err := w.call(protection, `{"session":{"nodeId":"node-a"}}`); refusedBy(err) == "" {
			t.Error("an ingress reports as a node")
		}
		r.cloudly.Outage()
		time.Sleep(time.Hour)
		if got, err := w.table(); err != nil || !strings.Contains(got, "marked-key-7") {
			t.Errorf("during an outage: %s, %v", got, err)
		}
		r.wantUnmarked()
	})
}

// R21: with custody, ended by relay-node-foreign, the table and the role are gone,
// and the socket is closed.
func TestR21_TheTableGoesWithCustody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, w := withIngress(t)
		r.cloudly.Script(relayCall, simulate.RefuseNamed(contract.RelayNodeForeign, "moved"))
		r.again()
		after(0)
		w.wantClosed(4002)
		s := r.section("ingress")
		if text := fmt.Sprint(s); strings.Contains(text, "node-a") {
			t.Errorf("the role is still shown: %s", text)
		}
		if s["table"] != nil {
			t.Errorf("a table is still held: %v", s)
		}
		r.wantUnmarked()
	})
}

// wantUnmarked checks that no key and no bearer of the ingress is shown anywhere.
func (r *rig) wantUnmarked() {
	r.t.Helper()
	shown := r.log.String()
	for _, path := range []string{"/status", "/events", "/metrics", "/readyz?verbose"} {
		_, text := r.get(path)
		shown += text
	}
	for _, marker := range []string{"marked-key", "marked-ingress-bearer"} {
		if strings.Contains(shown, marker) {
			r.t.Errorf("%s is shown", marker)
		}
	}
}

// R20, R68: in an outage a name that ends custody is read on a socket that no
// session stands on yet. From then the table is not handed out, although the drop
// may have to wait for its turn; and it is again when no drop follows.
func TestR20_R68_NoTableLeavesAfterANameWasReadInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, w := withIngress(t)
		r.cloudly.Outage()
		time.Sleep(time.Minute)
		if _, err := w.table(); err != nil {
			t.Fatalf("in the outage: %v", err)
		}
		r.relay.custodyHeard(nil)
		if got, err := w.table(); refusedBy(err) != contract.RelayNotReady {
			t.Errorf("the table left after the name was read: %s, %v", got, err)
		}
		time.Sleep(10 * time.Second)
		if _, err := w.table(); err != nil {
			t.Errorf("no drop followed: %v", err)
		}
		r.cloudly.Script(relayCall, simulate.RefuseNamed(contract.RelayNodeForeign, "moved"))
		r.cloudly.Return()
		time.Sleep(time.Minute)
		w.wantClosed(4002)
		if s := r.section("ingress"); s["table"] != nil {
			t.Errorf("after the end of custody: %v", s)
		}
		r.wantUnmarked()
	})
}
