package startup_test

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/appliance"
	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// elsewhere is an origin that the relay does not serve.
const elsewhere = "https://relay.elsewhere.example"

// documentOf is a cluster document with the relay block as it is spelled, without one
// for "".
func documentOf(relay string) []byte {
	if relay != "" {
		relay = `"relay":` + relay + `,`
	}
	return []byte(`{"configData":{"id":"cluster-a","data":{` + relay + `"nodes":[]}},"services":[]}`)
}

func blockOf(origin string) string { return fmt.Sprintf(`{"origin":%q}`, origin) }

// waitConfigured waits until the relay is ready and has read a configuration. A pushed
// origin is compared with that of the document before (design §4, O11).
func waitConfigured(r *rig.Rig) {
	r.WaitReady()
	r.WaitCheck(cloudly.Name, cloudly.CheckConfiguration, "ok")
}

// sequences are the numbers of the registrations that Cloudly received, in order.
func sequences(r *rig.Rig) []int64 {
	var numbers []int64
	for _, m := range r.Cloudly.Frames().Received(register) {
		request, err := contract.ReadLoopbackRelayRegistrationRequest(m.Body)
		if err != nil {
			return nil
		}
		numbers = append(numbers, request.RegistrationSequence)
	}
	return numbers
}

// waitSequences waits until Cloudly has received registrations with these numbers.
func waitSequences(t *testing.T, r *rig.Rig, want ...int64) {
	t.Helper()
	if err := r.Cloudly.WaitReceived(r.Soon(), register, len(want)); err != nil {
		t.Fatal(err)
	}
	if got := sequences(r); !slices.Equal(got, want) {
		t.Fatalf("registrations %v, want %v", got, want)
	}
}

// R12: on a new socket nothing precedes the authentication but the exchange of the
// bearer, and nothing is sent before what came before it was answered. All of it
// travels over the one WebSocket.
func TestR12_OrderOnANewSocket(t *testing.T) {
	t.Parallel()
	// Each answer is late, so that what does not wait for it would be seen before it.
	late := simulate.Late(50 * time.Millisecond)
	r := rig.New(t, rig.Before(func(r *rig.Rig) {
		for _, method := range []string{exchange, openSession, register} {
			r.Cloudly.ScriptAlways(method, late)
		}
	}))
	for socket := 1; socket <= 2; socket++ {
		if err := r.Cloudly.WaitReceived(r.Soon(), pull, socket); err != nil {
			t.Fatal(err)
		}
		r.Upstream.Cut()
	}
	for socket := 1; socket <= 2; socket++ {
		var order []string
		for _, m := range r.Cloudly.Frames().Messages() {
			if m.Socket == socket && len(order) < 6 {
				order = append(order, map[bool]string{true: "asked ", false: "answered "}[m.Request]+m.Method)
			}
		}
		want := []string{
			"asked " + exchange, "answered " + exchange, "asked " + openSession, "answered " + openSession,
			"asked " + register, "answered " + register,
		}
		if !slices.Equal(order, want) {
			t.Errorf("on socket %d: %q", socket, order)
		}
	}
	if sockets, connections := r.Cloudly.Opened(), r.Upstream.Accepted(); sockets != connections {
		t.Errorf("%d sockets over %d connections", sockets, connections)
	}
}

// R13, R15: the registration is exact, states the port that the kernel gave, and has
// no hub in it, also when a hub was switched off by hand. What it states is what
// listens.
func TestR13_R15_RegistersWhatWasBound(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.AnyPort(), rig.Arguments("--hub-listen="))
	r.WaitReady()
	version, _ := r.Status().At("build", "version").(string)
	want := fmt.Sprintf(`{"protocol":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"},`+
		`"relay":{"version":%q,"nodeId":%q,"listenAddress":"127.0.0.1","listenPort":%d},"registrationSequence":0}`,
		version, rig.RelayNode, r.ListenPort())
	if got := r.Cloudly.Frames().Received(register)[0].Body; string(got) != want {
		t.Errorf("registered\n%s\nwant\n%s", got, want)
	}
	if version == "" || r.ListenPort() == 0 {
		t.Errorf("version %q, port %d", version, r.ListenPort())
	}
	tcp, udp := listening(t, r.PID())
	if bound := []string{r.ListenAddress(), r.OperatorAddress()}; !equalSets(tcp, bound) || len(udp) != 0 {
		t.Errorf("the process listens on %q by TCP and %q by UDP, want %q alone", tcp, udp, bound)
	}
	// Exactly the address, and no wildcard: another one of this host is not served.
	if conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.2:%d", r.ListenPort())); err == nil {
		conn.Close()
		t.Error("the node listener answers on another address")
	}
}

// R16: the first number is 0. A refused registration does not use its number, the next
// one is one above, and another process begins anew.
func TestR16_Sequence(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Before(func(r *rig.Rig) {
		r.Cloudly.Script(register, simulate.Refuse("the records are being restored", nil))
	}))
	waitSequences(t, r, 0, 0)
	waitConfigured(r)
	r.Configure(documentOf(blockOf(elsewhere)))
	waitSequences(t, r, 0, 0, 1)
	if sockets := r.Cloudly.Opened(); sockets != 2 {
		t.Errorf("%d sockets, want the refused one and the next", sockets)
	}
	if code := r.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	r.Cloudly.SetConfigurationBody(nil)
	r.Start()
	waitSequences(t, r, 0, 0, 1, 0)
	r.WaitReady()
}

// R17: an answer that was lost leaves open whether its number was used, so the next one
// is. Once the answer never comes and the line breaks, once the line breaks in its place.
func TestR17_LostAnswer(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Before(func(r *rig.Rig) {
		r.Cloudly.Script(register, simulate.Swallow(), simulate.CutOff())
	}))
	waitSequences(t, r, 0)
	r.Upstream.Cut()
	waitSequences(t, r, 0, 1, 2)
	r.WaitReady()
	if sockets := r.Cloudly.Opened(); sockets != 3 {
		t.Errorf("%d sockets, want one for each registration", sockets)
	}
	if got := rig.SectionOf[cloudly.Status](r, cloudly.Name); got.NextSequence != 3 || got.AcceptedRegistrations != 1 {
		t.Errorf("next number %d after %d accepted registrations", got.NextSequence, got.AcceptedRegistrations)
	}
}

// R18: the origin that Cloudly answers is compared with the certificate's name and with
// the port that is bound. A difference is named and ends nothing.
func TestR18_Origin(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	waitConfigured(r)
	node := r.Node("node-a")
	socket, _ := node.Registered()
	otherHost := fmt.Sprintf("%s:%d", elsewhere, r.ListenPort())
	otherPort := fmt.Sprintf("https://%s:%d", rig.OriginHost, r.ListenPort()+1)
	for i, origin := range []string{otherHost, r.Origin(), otherPort, r.Origin()} {
		from := r.NextSeq()
		if err := r.Cloudly.EnableRelay(origin); err != nil {
			t.Fatal(err)
		}
		if err := r.Cloudly.PushConfiguration(r.Soon()); err != nil {
			t.Fatal(err)
		}
		waitRegistrations(t, r, i+2)
		if origin == r.Origin() {
			r.WaitEvent(string(appliance.EventOriginMatches), from)
			r.WaitReady()
			continue
		}
		if told := r.WaitEvent(string(appliance.EventOriginMismatch), from); told.Text("origin") != origin {
			t.Errorf("the event says %v", told.Fields)
		}
		if against := r.Readiness().Against(); len(against) != 1 || against[0] != "origin/origin: failing origin-mismatch" {
			t.Errorf("against readiness stands %q", against)
		}
		if page := r.Get("/readyz"); page.Code != 503 || !strings.Contains(string(page.Body), "origin-mismatch") {
			t.Errorf("/readyz answers %d %s", page.Code, page.Body)
		}
		if status := rig.SectionOf[appliance.OriginStatus](r, "origin"); status.Matches || status.Reason != "origin-mismatch" || status.Origin != origin {
			t.Errorf("/status says %+v", status)
		}
	}
	if still, ok := node.Registered(); !ok || still != socket {
		t.Error("the node lost its socket over it")
	}
	if _, err := node.Send(r.Soon(), report, member); err != nil {
		t.Errorf("a report: %v", err)
	}
}

// waitRegistrations waits until Cloudly has accepted so many.
func waitRegistrations(t *testing.T, r *rig.Rig, n int) {
	t.Helper()
	if err := r.Cloudly.Wait(r.Soon(), fmt.Sprint(n, " registrations"), func() bool { return len(r.Cloudly.Registrations()) >= n }); err != nil {
		t.Fatal(err)
	}
}

// R19: the references of the acceptance are shown, with nothing beside id, generation
// and digest, and so is each that follows.
func TestR19_References(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	for n := 1; n <= 2; n++ {
		waitRegistrations(t, r, n)
		accepted := r.Cloudly.Registrations()[n-1]
		r.Eventually("the references in the status", func() error {
			duty := r.Status()
			for member, want := range map[string]contract.Reference{
				"credential": accepted.Credential, "acceptedRegistration": accepted.Reference,
			} {
				got := fmt.Sprint(duty.At("duties", cloudly.Name, member))
				shown := fmt.Sprint(map[string]any{"id": want.ID, "generation": want.Generation, "digest": want.Digest})
				if got != shown {
					return fmt.Errorf("%s is %s, want %s", member, got, shown)
				}
			}
			return nil
		})
		if n == 1 {
			waitConfigured(r)
			r.Configure(documentOf(blockOf(elsewhere)))
		}
	}
	if bearer := []byte("clusterRelayToken"); bytes.Contains(r.Get("/status").Body, bearer) || bytes.Contains(r.Output(), bearer) {
		t.Error("the bearer is shown")
	}
}
