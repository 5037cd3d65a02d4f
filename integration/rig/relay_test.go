package rig

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/listener"
	"serve.zone/relay/simulate"
)

// Whatever a relay is started with, it registers what it has bound and is ready.
func TestEveryWayToStart(t *testing.T) {
	for name, options := range map[string][]Option{
		"environment":   {From(Environment)},
		"file":          {From(File), Document("protocol:\n  socketPath: /socket\n")},
		"plain cloudly": {PlainCloudly()},
		"any port":      {AnyPort()},
		"log as text":   {With("log-format", "text"), With("log-level", "error")},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(t, options...)
			r.WaitReady()
			r.Node("node-a")
			registered := r.Cloudly.Registrations()[0].Relay
			request := r.Cloudly.Frames().Received(contract.MethodRegisterClusterRelay)[0]
			if answer, _ := r.Cloudly.Frames().Answer(request); !strings.Contains(string(answer.Body), `"`+r.Origin()+`"`) {
				t.Errorf("the first registration was answered %s", answer.Body)
			}
			if registered.ListenPort != r.ListenPort() {
				t.Errorf("registered port %d, bound %d", registered.ListenPort, r.ListenPort())
			}
			if want := fmt.Sprintf("https://%s:%d", OriginHost, r.ListenPort()); r.Origin() != want {
				t.Errorf("origin %s, want %s", r.Origin(), want)
			}
		})
	}
}

func TestOperatorPages(t *testing.T) {
	r := New(t)
	r.WaitReady()
	from := r.NextSeq()
	r.Nodes(3)
	if !r.Ready() {
		t.Error("not ready")
	}
	if got := r.Readiness().Against(); len(got) != 0 {
		t.Errorf("ready, and against it speak %q", got)
	}
	session := SectionOf[cloudly.Status](r, "cloudly")
	if session.State != "registered" || session.Origin != r.Origin() {
		t.Errorf("session %+v", session)
	}
	if got := r.Status().At("duties", "cloudly", "state"); got != "registered" {
		t.Errorf("state %v", got)
	}
	if got := r.Status().At("duties", "cloudly", "state", "deeper"); got != nil {
		t.Errorf("below a text stands %v", got)
	}
	bound := SectionOf[listener.Status](r, "listener").Bound
	if len(bound) != 3 || bound[0].Node != "node-1" {
		t.Errorf("bound %+v", bound)
	}
	if value, ok := r.Metrics().Value("relay_cloudly_registered_sessions"); !ok || value != 1 {
		t.Errorf("registered sessions %v, %t", value, ok)
	}
	all := r.Events(0)
	if !slices.ContainsFunc(all, func(e Event) bool { return e.Type == "cloudly-registered" && e.Text("origin") == r.Origin() }) {
		t.Errorf("no registration among the events %+v", all)
	}
	if all[0].Seq != 1 || uint64(len(all)) != all[len(all)-1].Seq || r.Events(from)[0].Seq != from {
		t.Errorf("events from %d to %d", all[0].Seq, all[len(all)-1].Seq)
	}
}

func TestRestartKeepsAddresses(t *testing.T) {
	r := New(t)
	r.WaitReady()
	a := r.Node("node-a")
	socket, _ := a.Registered()
	before := r.ListenAddress() + r.OperatorAddress()
	r.Restart()
	r.WaitReady()
	if got := r.ListenAddress() + r.OperatorAddress(); got != before {
		t.Errorf("addresses %s, before %s", got, before)
	}
	if _, err := a.WaitRegistered(r.Soon(), socket); err != nil {
		t.Error(err)
	}
}

func TestOutageAndReturn(t *testing.T) {
	r := New(t)
	r.WaitReady()
	a := r.Node("node-a")
	socket, _ := a.Registered()
	from := r.NextSeq()
	r.Upstream.Outage()
	r.WaitEvent("cloudly-session-lost", from)
	r.WaitCheck("cloudly", cloudly.CheckSession, "failing")
	if r.Ready() {
		t.Error("ready without Cloudly")
	}
	if err := r.Upstream.Resume(); err != nil {
		t.Fatal(err)
	}
	r.WaitReady()
	if _, err := a.WaitRegistered(r.Soon(), socket); err != nil {
		t.Error(err)
	}
}

func TestRefusedStart(t *testing.T) {
	r := New(t, NotStarted(), Without("node-id"))
	if code := r.Run(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(string(r.Stderr()), "node-id") {
		t.Errorf("standard error %s", r.Stderr())
	}
}

// What Before does is there when the relay comes.
func TestBefore(t *testing.T) {
	r := New(t, Before(func(r *Rig) {
		r.Cloudly.Script(contract.MethodRegisterClusterRelay, simulate.RefuseNamed(contract.RelayNodeUnknown, "scripted"))
	}))
	if got := r.WaitEvent("cloudly-custody-ended", 0); got.Text("refusal") != string(contract.RelayNodeUnknown) {
		t.Errorf("event %+v", got)
	}
}

func TestRawAccess(t *testing.T) {
	r := New(t)
	r.WaitReady()
	s := r.DialNode()
	id := s.Request("unknownMethod", `{}`)
	if binary, answer := s.Receive(); binary || !strings.Contains(string(answer), `"`+id+`"`) {
		t.Errorf("answer %s", answer)
	}
	s.Send("no envelope")
	if code, _ := s.WaitClose(); code != 1007 {
		t.Errorf("closed with %d", code)
	}
	s = r.DialNode()
	s.SendBinary([]byte{1})
	if code, _ := s.WaitClose(); code != 1003 {
		t.Errorf("closed with %d", code)
	}
	response, err := r.NodeHTTP().Get(r.Origin() + "/")
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, response.Body)
	response.Body.Close()
	if response.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("status %d", response.StatusCode)
	}
	conn := r.DialTLS()
	if got := conn.ConnectionState().PeerCertificates[0].DNSNames; !slices.Equal(got, []string{OriginHost}) {
		t.Errorf("certificate for %v", got)
	}
}

// Secrets of all kinds are looked for, and a new credential is one of them.
func TestSecretsAreKnown(t *testing.T) {
	r := New(t)
	r.WaitReady()
	bearer := r.NewBearer()
	if err := r.Cloudly.RotateCredentialTo(bearer); err != nil {
		t.Fatal(err)
	}
	r.InstallCredential(bearer)
	r.Upstream.Cut()
	r.Eventually("a registration with the new credential", func() error {
		if got := r.Cloudly.Registrations(); got[len(got)-1].Credential.Generation != 2 {
			return fmt.Errorf("%d registrations", len(got))
		}
		return nil
	})
	node := r.Node("node-a")
	first := r.Enroll("node-a")
	token := r.RotateNode("node-a")
	if err := node.Rotate(r.Soon(), token); err != nil {
		t.Fatal(err)
	}
	pair := r.Issue(Leaf{})
	r.InstallCertificate(pair)
	r.AssertNoMarkers()
	exchanged := r.Cloudly.Frames().Received(contract.DefaultMethodExchangeIdentity)
	answer, _ := r.Cloudly.Frames().Answer(exchanged[0])
	for name, text := range map[string]string{
		"bearer": bearer, "first token": first.Token, "token": token.Token, "marker": r.Marker("x"), "key": string(pair.Key), "jwt": string(answer.Body),
	} {
		if len(r.secrets.find("here", []byte(text))) == 0 {
			t.Errorf("%s: not found in %s", name, text)
		}
	}
}
