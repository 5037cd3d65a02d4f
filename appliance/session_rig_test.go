package appliance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
)

// Names that these tests use often.
const (
	exchangeCall  = contract.DefaultMethodExchangeIdentity
	sessionCall   = contract.MethodRegisterCloudlyClientSession
	relayCall     = contract.MethodRegisterClusterRelay
	configPull    = contract.DefaultMethodGetConfiguration
	protection    = "reportRuntimeNetworkProtection"
	assignment    = "applyRuntimeAssignment"
	elsewhere     = "https://other.serve.zone:8443" // has a certificate of its own
	hold          = 300_000 * time.Millisecond      // contract §4, §6.1
	cloudlyDialed = cloudlyHost + ":443"
)

// finding is a check as the operator endpoint shows it.
type finding struct {
	Duty, Check, State, Reason string
	Advice                     bool
}

// findings asks /readyz for all checks, and checks that the answer's status is
// what they say.
func (r *rig) findings() []finding {
	r.t.Helper()
	status, text := r.get("/readyz?verbose&format=json")
	var answer struct {
		Ready    bool
		Findings []finding
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		r.t.Fatalf("%v: %s", err, text)
	}
	if want := map[bool]int{true: 200, false: 503}[answer.Ready]; status != want {
		r.t.Errorf("readiness %v was answered with %d", answer.Ready, status)
	}
	return answer.Findings
}

// wantAgainst checks what keeps the relay from being ready, as "check: reason";
// nothing means that it is ready.
func (r *rig) wantAgainst(want ...string) {
	r.t.Helper()
	got := []string{}
	for _, f := range r.findings() {
		if !f.Advice && f.State != "ok" {
			got = append(got, f.Check+": "+f.Reason)
		}
	}
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		r.t.Errorf("against readiness (-want +got):\n%s", diff)
	}
}

// wantAdvice checks how one check stands that makes nothing not ready.
func (r *rig) wantAdvice(check, want string) {
	r.t.Helper()
	for _, f := range r.findings() {
		if f.Check == check {
			if got := strings.TrimSpace(f.State + " " + f.Reason); got != want || !f.Advice {
				r.t.Errorf("check %s: %s, advice %v; want %s", check, got, f.Advice, want)
			}
			return
		}
	}
	r.t.Errorf("there is no check %s", check)
}

// says returns what the events of one type say under one key.
func (r *rig) says(kind duty.EventType, key string) []string {
	said := []string{}
	for _, e := range r.events(kind) {
		text := ""
		for _, f := range e.Fields {
			if f.Key().String() == key {
				text = f.String()
			}
		}
		said = append(said, text)
	}
	return said
}

// wantHeard checks what the recorder was told since it was last asked.
func (r *rig) wantHeard(want ...string) {
	r.t.Helper()
	got := slices.CompactFunc(r.rec.take(), func(a, b string) bool {
		return a == b && strings.HasPrefix(a, "dropped ") // a drop may be told twice (cloudly.Hooks)
	})
	if diff := cmp.Diff(append([]string{}, want...), append([]string{}, got...)); diff != "" {
		r.t.Errorf("the duties were told (-want +got):\n%s", diff)
	}
}

// wantSequences checks the registration numbers that Cloudly was sent, refused
// ones too.
func (r *rig) wantSequences(want ...int64) {
	r.t.Helper()
	got := []int64{}
	for _, m := range r.upstream(relayCall) {
		request, err := contract.ReadRelayRegistrationRequest(m.Body)
		if err != nil {
			r.t.Fatalf("%v: %s", err, m.Body)
		}
		got = append(got, request.RegistrationSequence)
	}
	if diff := cmp.Diff(append([]int64{}, want...), got); diff != "" {
		r.t.Errorf("registrations (-want +got):\n%s", diff)
	}
}

// wantDials checks how often Cloudly was dialled since the start.
func (r *rig) wantDials(want int) {
	r.t.Helper()
	if got := r.net.dialled(cloudlyDialed); got != want {
		r.t.Errorf("cloudly was dialled %d times, want %d", got, want)
	}
}

// after lets time pass and everything that is due in it happen.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// documentOf is a cluster configuration with this text as its relay member,
// none when it is empty.
func documentOf(relay string) []byte {
	if relay != "" {
		relay = `"relay":` + relay + `,`
	}
	return []byte(`{"configData":{"id":"cluster-a","data":{` + relay + `"name":"cluster-a","nodes":[]}}}`)
}

func blockOf(origin string) string { return `{"origin":"` + origin + `"}` }

// push has Cloudly push a configuration, and state it in pulls from now on.
func (r *rig) push(body []byte) error {
	r.t.Helper()
	r.cloudly.SetConfigurationBody(body)
	err := r.cloudly.PushConfiguration(r.soon())
	synctest.Wait()
	return err
}

// again makes the relay register once more on the socket that stands: the
// configuration states another origin than before.
func (r *rig) again() {
	r.t.Helper()
	err := r.push(documentOf(blockOf(elsewhere)))
	if err != nil && !errors.Is(err, typedsocket.ErrClosed) { // the end of custody may come before the answer
		r.t.Fatal(err)
	}
}

// shown is everything that the relay shows or writes.
func (r *rig) shown() string {
	r.t.Helper()
	all := r.log.String()
	for _, path := range []string{"/status", "/readyz?verbose", "/events", "/metrics", "/"} {
		status, text := r.get(path)
		if status != 200 && status != 503 {
			r.t.Errorf("%s: %d", path, status)
		}
		all += text
	}
	return all
}

// wantSecret checks that nothing of what is shown holds any of these texts.
func (r *rig) wantSecret(secrets ...string) {
	r.t.Helper()
	all := r.shown()
	for i, secret := range secrets {
		if len(secret) < 16 {
			r.t.Fatalf("secret %d is too short to look for", i)
		}
		if strings.Contains(all, secret) {
			r.t.Errorf("secret %d is shown", i)
		}
	}
}

// nameOf returns the name that a call was refused with, by text and by data.
func nameOf(err error) contract.RefusalName {
	var remote *typedsocket.RemoteError
	if !errors.As(err, &remote) {
		return ""
	}
	name, _, _ := strings.Cut(remote.Text, ":")
	if string(remote.Data) != fmt.Sprintf(`{"code":%q}`, name) {
		return contract.RefusalName("no code beside " + name)
	}
	return contract.RefusalName(name)
}

// sentTo sends a push for the node on a socket of Cloudly's, whatever Cloudly
// thinks of it, and returns how it was answered.
func (r *rig) sentTo(w *wire, socket int) error {
	r.t.Helper()
	_, err := r.cloudly.CallSocket(r.soon(), socket, assignment, []byte(w.under()))
	return err
}

// methodsOn returns the requests that Cloudly received on a socket, in order.
func (r *rig) methodsOn(socket int) []string {
	methods := []string{}
	for _, m := range r.cloudly.Frames().Messages() {
		if m.Request && !m.Sent && m.Socket == socket {
			methods = append(methods, m.Method)
		}
	}
	return methods
}

// restart ends the process and begins another one, that holds nothing.
func (r *rig) restart() {
	r.t.Helper()
	if err := r.halt(); err != nil {
		r.t.Fatal(err)
	}
	r.rec = &recorder{}
	r.build(change{})
	r.start()
}

// eachName runs a subtest for each name.
func eachName[T ~string](t *testing.T, names []T, f func(t *testing.T, name T)) {
	for _, name := range names {
		t.Run(string(name), func(t *testing.T) { f(t, name) })
	}
}
