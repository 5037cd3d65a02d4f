//go:build linux

package hub_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/appliance"
	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/escrow"
	"serve.zone/relay/forward"
	"serve.zone/relay/hub"
	"serve.zone/relay/ingress"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/listener"
	"serve.zone/relay/operator/client"
	"serve.zone/relay/simulate"
	origincert "serve.zone/relay/tls"
)

// sections are the types of the duties' sections, under the names that /status has them.
var sections = map[string]reflect.Type{
	"relay": reflect.TypeFor[appliance.Status](), "cloudly": reflect.TypeFor[cloudly.Status](), "forward": reflect.TypeFor[forward.Status](),
	"listener": reflect.TypeFor[listener.Status](), "escrow": reflect.TypeFor[escrow.Status](), "ingress": reflect.TypeFor[ingress.Status](),
	"hub": reflect.TypeFor[hub.Status](), "tls": reflect.TypeFor[origincert.Status](),
}

// membersOf lists the JSON members of a type, each by its path and with the kind of its
// value.
func membersOf(t reflect.Type, path string, into map[string]string) {
	switch t.Kind() {
	case reflect.Pointer:
		membersOf(t.Elem(), path, into)
		return
	case reflect.Slice:
		if t != reflect.TypeFor[json.RawMessage]() {
			membersOf(t.Elem(), path+"[]", into)
			return
		}
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			into[path] = "time"
			return
		}
		for field := range t.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "-" {
				membersOf(field.Type, strings.TrimPrefix(path+"."+name, "."), into)
			}
		}
		return
	}
	switch t.Kind() {
	case reflect.String:
		into[path] = "text"
	case reflect.Bool:
		into[path] = "yes or no"
	case reflect.Float64:
		into[path] = "number"
	case reflect.Slice:
		into[path] = "any"
	default:
		into[path] = "whole number"
	}
}

// pathsIn lists what stands in a document.
func pathsIn(value any, path string, into map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			pathsIn(v, strings.TrimPrefix(path+"."+name, "."), into)
		}
	case []any:
		for _, v := range value {
			pathsIn(v, path+"[]", into)
		}
	case nil:
		return
	}
	into[path] = true
}

// Every member of a section that is shown to a person is one that the duty has, of the
// same kind. Those that a well relay does not state are held by nothing else.
func TestStatusVerb_ShowsMembersThatThereAre(t *testing.T) {
	shown := map[string]string{}
	membersOf(reflect.TypeFor[client.Duties](), "", shown)
	for path, kind := range shown {
		duty, rest, _ := strings.Cut(path, ".")
		there := map[string]string{}
		membersOf(sections[duty], "", there)
		if there[rest] != kind {
			t.Errorf("%s is shown as a %s, and is a %q in the status of %s", path, kind, there[rest], duty)
		}
	}
	if len(shown) < 80 {
		t.Errorf("only %d members were looked at", len(shown))
	}
}

// unstated are the members that a relay with which all is well does not state.
var unstated = []string{
	"duties.cloudly.credentialFault", "duties.cloudly.lastRefusal.at", "duties.cloudly.lastRefusal.name", "duties.cloudly.lastRefusal.reason",
	"duties.cloudly.lastRefusal.standing", "duties.cloudly.lastTrouble", "duties.cloudly.nextAttemptAt",
	"duties.escrow.nodes[].acknowledged.sequence", "duties.forward.nodes[].lastRefusal",
	"duties.ingress.lastRefusal.at", "duties.ingress.lastRefusal.node", "duties.ingress.lastRefusal.reason",
	"duties.tls.refused", "duties.tls.refusedSince", "missing[].duty", "missing[].reason",
}

// lease hands the relay a run of one renewal for a node.
func (c *cluster) lease(p *simulate.Pallet, id string) {
	c.t.Helper()
	binding, ok := p.Binding()
	if !ok {
		c.t.Fatalf("%s has no session", id)
	}
	digest := sha256.Sum256([]byte(id))
	authority, now := simulate.NewSigningAuthority(1), time.Now()
	projection := simulate.Projection{
		Reference: contract.Reference{ID: "projection:1", Generation: 1, Digest: "sha256:" + hex.EncodeToString(digest[:])},
		Scope:     binding.Scope, Authority: authority.Reference(),
		DNS: contract.DNSWindow{IssuedAt: now.UnixMilli(), NotBefore: now.UnixMilli(), ExpiresAt: now.Add(10 * time.Minute).UnixMilli()},
	}
	p.Trust(authority.Authority)
	p.AdmitProjection(projection)
	opens := now.Add(5 * time.Minute)
	signed, err := authority.Sign(contract.DNSLeaseRenewal{
		Controller: binding.Scope.Controller, NodeID: id, RuntimeNamespace: binding.Scope.RuntimeNamespace, Projection: projection.Reference, Sequence: 1,
		DNS: contract.DNSWindow{IssuedAt: opens.UnixMilli(), NotBefore: opens.UnixMilli(), ExpiresAt: opens.Add(10 * time.Minute).UnixMilli()},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	run := contract.HoldDNSLeaseRenewalsRequest{NodeID: id, Projection: projection.Reference, Renewals: []contract.SignedDNSLeaseRenewal{signed}}
	if held, err := c.Cloudly.Hold(c.Soon(), run); err != nil || held != 1 {
		c.t.Fatalf("%d renewals are held for %s, %v", held, id, err)
	}
}

// whole is a relay with something in each of its duties: a node with a run, an ingress
// with a table, and two members of the hub of which one has sent what it may not.
func whole(t *testing.T) *cluster {
	c := start(t)
	c.lease(c.Node(name(0)), name(0))
	table, err := contract.ReadRouteTable([]byte(`{"revision":7,"issuedAt":1767225600000,"routes":[],"portRoutes":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	bearer := c.DesignateIngress(name(0))
	if _, err := c.Cloudly.PushRouteTable(c.Soon(), table); err != nil {
		t.Fatal(err)
	}
	if err := c.Ingress(name(0), bearer).WaitRevision(c.Soon(), 7); err != nil {
		t.Fatal(err)
	}
	c.admit()
	c.admit()
	c.push()
	sender := c.joined(0)
	c.joined(1)
	c.datagrams(sender, 1, "drops without a grant", c.more("no-grant"))
	return c
}

// asked runs `relay status`, which must end with this exit code, and returns what it
// says on standard output.
func (c *cluster) asked(code int, flags ...string) string {
	c.t.Helper()
	p := c.run(append([]string{"status", "--operator=" + c.OperatorAddress()}, flags...)...)
	p.exits(code)
	if p.stderr.String() != "" {
		c.t.Errorf("relay status %v says %q", flags, p.stderr.String())
	}
	return p.stdout.String()
}

// A running relay is shown whole: every member of its status that is shown to a person
// stands in it under that name.
func TestStatusVerb_AgainstARealRelay(t *testing.T) {
	c := whole(t)
	var document any
	text := c.asked(0, "--json")
	if err := json.Unmarshal([]byte(text), &document); err != nil || !strings.HasPrefix(text, `{"schema":1,`) || !strings.HasSuffix(text, "}\n") {
		t.Fatalf("%v: %.200s", err, text)
	}
	there, shown := map[string]bool{}, map[string]string{}
	pathsIn(document, "", there)
	membersOf(reflect.TypeFor[client.Document](), "", shown)
	var missing []string
	for _, path := range slices.Sorted(maps.Keys(shown)) {
		if !there[path] && !slices.Contains(unstated, path) {
			missing = append(missing, path)
		}
	}
	if diff := cmp.Diff([]string(nil), missing); diff != "" {
		t.Errorf("shown, and not in the status of a relay: %s", diff)
	}
	for _, path := range unstated {
		if shown[path] == "" {
			t.Errorf("%s is not shown", path)
		}
	}

	screen := c.asked(0)
	for _, part := range []string{
		" on " + rig.RelayNode + " is ready\n", "advice       hub-key failing for ", "Name a file in hub-key-file.",
		"Cloudly      registered for ", " as " + c.Origin() + "\n", "Nodes        1 registered\n", "Escrow       1 renewal held for 1 node, ",
		"names of 1 node last without Cloudly for 14m at least", "Ingress      route table 7, pushed ", "node-a registered for ", ", has pulled table 7\n",
		", network 1 is in force, pushed ", "2 members, 2 connected; ", " no-grant\n", "Certificate  that of " + rig.OriginHost + ", 127.0.0.1 is valid for another ",
	} {
		if !strings.Contains(screen, part) {
			t.Errorf("the screen does not say %q", part)
		}
	}
	if t.Failed() {
		t.Log(screen)
	}
}

// Health checks are answered by the exit code, and by what is wrong.
func TestStatusVerb_Checks(t *testing.T) {
	c := start(t)
	if got := c.asked(0, "--check=live"); got != "live\n" {
		t.Errorf("%q", got)
	}
	if got := c.asked(0, "--check=ready"); got != "ready\n" {
		t.Errorf("%q", got)
	}
	c.Upstream.Outage()
	c.WaitCheck(cloudly.Name, cloudly.CheckSession, "failing")
	if got := c.asked(0, "--check=live"); got != "live\n" {
		t.Errorf("%q", got)
	}
	got := c.asked(1, "--check=ready")
	if !strings.HasPrefix(got, "not ready\nWRONG        cloudly-session failing for ") || !strings.Contains(got, "The relay tries again by") || strings.Contains(got, "hub-key") {
		t.Errorf("%q", got)
	}
	if got := c.asked(0); !strings.Contains(got, " is NOT READY\n") || !strings.Contains(got, "Cloudly      no session for ") {
		t.Errorf("%s", got)
	}
	p := c.run("status", "--operator="+c.ListenAddress())
	p.exits(2)
	if want := "relay: ask the relay for /status: what answers there is no operator endpoint (400)\n"; p.stderr.String() != want {
		t.Errorf("where nodes dial: %q", p.stderr.String())
	}
	if code := c.Stop(); code != 0 {
		t.Fatalf("the relay ended with %d", code)
	}
	for _, check := range []string{"live", "ready"} {
		p := c.run("status", "--check="+check, "--operator="+c.OperatorAddress())
		p.exits(2)
		if got := p.stdout.String() + p.stderr.String(); !strings.HasPrefix(got, "relay: ask the relay for /") || !strings.HasSuffix(got, "\nrelay: Is it running, and is --operator where it has its operator endpoint?\n") {
			t.Errorf("%s: %q", check, got)
		}
	}
}

// A watch goes on as long as nobody ends it, also without a relay.
func TestStatusVerb_Watch(t *testing.T) {
	c := start(t)
	p := c.run("status", "--watch", "--operator="+c.OperatorAddress())
	c.Eventually("two looks", func() error {
		if n := strings.Count(p.stdout.String(), " is ready\n"); n < 2 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	if code := c.Stop(); code != 0 {
		t.Fatalf("the relay ended with %d", code)
	}
	c.Eventually("a look without a relay, and one more", func() error {
		if !strings.Contains(p.stdout.String(), "The relay cannot be asked for ") {
			return errors.New("it does not say that the relay cannot be asked")
		}
		return nil
	})
	p.signal(syscall.SIGINT)
	p.exits(0)
	if p.stderr.String() != "" || strings.Contains(p.stdout.String(), "\x1b") {
		t.Errorf("%q, %q", p.stdout.String(), p.stderr.String())
	}
}
