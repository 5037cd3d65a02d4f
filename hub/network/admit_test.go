package network

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network/networktest"
)

// with is a grid of two nodes after some changes.
func with(changes ...func(*contract.VPNNetwork)) contract.VPNNetwork {
	x := networktest.Grant(networktest.Grid(2, 1), "d0.0", "d1.0")
	x.Revision = 7
	for _, change := range changes {
		change(&x)
	}
	return x
}

func revision(n int64) func(*contract.VPNNetwork) {
	return func(x *contract.VPNNetwork) { x.Revision = n }
}

func authority(id string) func(*contract.VPNNetwork) {
	return func(x *contract.VPNNetwork) { x.AuthorityID = id }
}

func controlPrefix(p string) func(*contract.VPNNetwork) {
	return func(x *contract.VPNNetwork) { x.ControlPrefix = p }
}

func noGrants(x *contract.VPNNetwork) { x.Grants = []contract.VPNGrant{} }

// R59: a network is accepted, a replay, stale or of a foreign authority by its
// authority, control prefix, revision and content alone.
func TestR59_Admission(t *testing.T) {
	const (
		stale   = contract.VPNNetworkRevisionStale
		foreign = contract.VPNNetworkAuthorityForeign
	)
	for name, tc := range map[string]struct {
		next contract.VPNNetwork
		want Decision
		name contract.RefusalName
	}{
		"higher":                                {with(revision(8)), Accepted, ""},
		"higher by far":                         {with(revision(contract.MaximumSafeInteger)), Accepted, ""},
		"higher, other content":                 {with(revision(8), noGrants), Accepted, ""},
		"same":                                  {with(), Replay, ""},
		"same revision, other content":          {with(noGrants), RevisionReused, stale},
		"lower":                                 {with(revision(6)), RevisionLower, stale},
		"lower, other content":                  {with(revision(1), noGrants), RevisionLower, stale},
		"other authority":                       {with(authority("authority:2")), AuthorityForeign, foreign},
		"other authority, higher":               {with(authority("authority:2"), revision(8)), AuthorityForeign, foreign},
		"other authority, lower":                {with(authority("authority:2"), revision(6)), AuthorityForeign, foreign},
		"authority in other letters":            {with(authority("Authority:1"), revision(8)), AuthorityForeign, foreign},
		"moved prefix":                          {with(controlPrefix("192.168.4.0/22"), revision(8)), PrefixMoved, foreign},
		"moved prefix, same revision":           {with(controlPrefix("192.168.4.0/22")), PrefixMoved, foreign},
		"moved prefix, lower":                   {with(controlPrefix("192.168.4.0/22"), revision(6)), PrefixMoved, foreign},
		"wider prefix":                          {with(controlPrefix("192.168.0.0/21"), revision(8)), PrefixMoved, foreign},
		"other authority and prefix, the first": {with(authority("b"), controlPrefix("192.168.0.0/21")), AuthorityForeign, foreign},
	} {
		t.Run(name, func(t *testing.T) {
			held := with()
			got := Admit(&held, tc.next)
			if got != tc.want {
				t.Errorf("against what is held: %v, want %v", got, tc.want)
			}
			if refusal, _ := got.Refusal(); refusal.Name != tc.name {
				t.Errorf("refused with %q, want %q", refusal.Name, tc.name)
			}
			if got := AdmitPulled(&held, &tc.next); got != tc.want {
				t.Errorf("pulled: %v, want %v", got, tc.want)
			}
			if got := Admit(nil, tc.next); got != Accepted {
				t.Errorf("into an empty hub: %v", got)
			}
		})
	}
}

// R59: a pull that is answered with no network empties the hub, whatever it held
// (contract O23).
func TestR59_PullWithoutANetwork(t *testing.T) {
	held := with()
	for name, held := range map[string]*contract.VPNNetwork{"held": &held, "nothing held": nil} {
		if got := AdmitPulled(held, nil); got != Emptied || !got.Takes() {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Every decision has a name, and either takes, or repeats, or refuses by one of
// the two names of the contract, with a reason that quotes nothing.
func TestDecisions(t *testing.T) {
	takes := []Decision{Accepted, Emptied}
	var names []string
	for d := range Decisions {
		if d.String() == "" || slices.Contains(names, d.String()) {
			t.Errorf("decision %d has no name of its own", d)
		}
		names = append(names, d.String())
		if d.Takes() != slices.Contains(takes, d) {
			t.Errorf("%v: takes is %v", d, d.Takes())
		}
		refusal, refused := d.Refusal()
		if refused == (slices.Contains(takes, d) || d == Replay) {
			t.Errorf("%v: refused is %v", d, refused)
		}
		if refused && (!contract.ApplyVPNNetworkRefusals().Contains(refusal.Name) || refusal.Reason == "") {
			t.Errorf("%v: refused with %q", d, refusal.Error())
		}
	}
	if zero := Decision(0); zero.Takes() {
		t.Error("the zero value takes")
	}
}

// model holds what a hub holds as bytes, and says of contract §10.3 what a reader
// of it would.
type model struct {
	content   string // empty for nothing held
	authority string
	prefix    string
	revision  int64
}

func (m *model) admit(x contract.VPNNetwork) (taken bool, answer string) {
	content := string(x.AppendJSON(nil))
	same := m.authority == x.AuthorityID && m.prefix == x.ControlPrefix
	if m.content == "" || same && x.Revision > m.revision {
		*m = model{content, x.AuthorityID, x.ControlPrefix, x.Revision}
		return true, "accepted"
	}
	if !same {
		return false, "vpn-network-authority-foreign"
	}
	if content == m.content {
		return false, "replay"
	}
	return false, "vpn-network-revision-stale"
}

// answerOf is a decision in the words of the contract.
func answerOf(d Decision) string {
	if refusal, refused := d.Refusal(); refused {
		return string(refusal.Name)
	}
	return d.String()
}

// R59: over any sequence of networks of every kind, pushed and pulled, a hub holds what
// a model holds.
func TestR59_AdmissionAgreesWithAModel(t *testing.T) {
	authorities := []string{"a", "b", "authority:1"}
	prefixes := []string{"192.168.0.0/22", "192.168.0.0/21", "192.168.64.0/22"}
	rapid.Check(t, func(t *rapid.T) {
		var held *contract.VPNNetwork
		var m model
		highest := int64(0) // since it was empty
		draw := func(t *rapid.T) contract.VPNNetwork {
			x := with(
				revision(rapid.Int64Range(0, 6).Draw(t, "revision")),
				authority(rapid.SampledFrom(authorities).Draw(t, "authority")),
				controlPrefix(rapid.SampledFrom(prefixes).Draw(t, "control prefix")),
			)
			if rapid.Bool().Draw(t, "no grants") {
				noGrants(&x)
			}
			return x
		}
		check := func(t *rapid.T, x contract.VPNNetwork, got Decision) {
			taken, want := m.admit(x)
			if got.Takes() != taken || answerOf(got) != want {
				t.Fatalf("%v, want %s", got, want)
			}
			if got.Takes() {
				if x.Revision <= highest {
					t.Fatalf("revision %d was taken after %d", x.Revision, highest)
				}
				highest, held = x.Revision, &x
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				body := contract.ApplyVPNNetworkRequest{Network: draw(t)}.AppendJSON(nil)
				if request, err := contract.ReadApplyVPNNetworkRequest(body); err == nil {
					check(t, request.Network, Admit(held, request.Network))
				}
			},
			"pull": func(t *rapid.T) {
				x := draw(t)
				body := contract.GetVPNNetworkAnswer{Network: &x}.AppendJSON(nil)
				if answer, err := contract.ReadGetVPNNetworkAnswer(body); err == nil {
					check(t, *answer.Network, AdmitPulled(held, answer.Network))
				}
			},
			"pull nothing": func(t *rapid.T) {
				if got := AdmitPulled(held, nil); got != Emptied {
					t.Fatal(got)
				}
				held, m, highest = nil, model{}, 0
			},
			"drop": func(t *rapid.T) { held, m, highest = nil, model{}, 0 },
			"": func(t *rapid.T) {
				if held == nil != (m.content == "") || held != nil && string(held.AppendJSON(nil)) != m.content {
					t.Fatal("what is held is not what the model holds")
				}
			},
		})
	})
}

// B101: a network that is written, read and written again any number of times stays the
// network that is held.
func TestB101_ReadAgainIsAReplay(t *testing.T) {
	held := networktest.Grant(networktest.Grid(4, 3), "d0.0", "d1.0", "d1.0", "d0.0")
	next := held
	for i := range 20 {
		request, err := contract.ReadApplyVPNNetworkRequest(contract.ApplyVPNNetworkRequest{Network: next}.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		next = request.Network
		if got := Admit(&held, next); got != Replay {
			t.Fatalf("time %d: %v", i, got)
		}
	}
	for i, change := range everyChange(held) {
		if got := Admit(&held, change); got.Takes() || got == Replay {
			t.Errorf("change %d: %v", i, got)
		}
	}
}

// everyChange returns networks that differ from one in one member each, and not in
// their revision.
func everyChange(x contract.VPNNetwork) []contract.VPNNetwork {
	var changed []contract.VPNNetwork
	change := func(f func(*contract.VPNNetwork)) {
		y := x
		y.Nodes, y.Grants = slices.Clone(x.Nodes), slices.Clone(x.Grants)
		for i := range y.Nodes {
			y.Nodes[i].WorkloadPrefixes = slices.Clone(y.Nodes[i].WorkloadPrefixes)
		}
		f(&y)
		changed = append(changed, y)
	}
	change(func(y *contract.VPNNetwork) { y.AuthorityID = "authority:2" })
	change(func(y *contract.VPNNetwork) { y.ControlPrefix = "192.168.0.0/21" })
	change(func(y *contract.VPNNetwork) { y.Nodes = y.Nodes[1:] })
	change(func(y *contract.VPNNetwork) { y.Nodes[3].NodeID = "node-004" })
	change(func(y *contract.VPNNetwork) { y.Nodes[0].PublicKey = networktest.Key(99).String() })
	change(func(y *contract.VPNNetwork) { y.Nodes[0].ControlAddress = "192.168.0.99" })
	change(func(y *contract.VPNNetwork) { y.Nodes[0].ExpiresAt++ })
	change(func(y *contract.VPNNetwork) { y.Nodes[0].WorkloadPrefixes = y.Nodes[0].WorkloadPrefixes[1:] })
	change(func(y *contract.VPNNetwork) { y.Nodes[0].WorkloadPrefixes[0].CIDR = "10.0.0.0/25" })
	change(func(y *contract.VPNNetwork) { y.Nodes[0].WorkloadPrefixes[0].PolicyDomain = "d0.1" })
	change(func(y *contract.VPNNetwork) { y.Grants = y.Grants[1:] })
	change(func(y *contract.VPNNetwork) { y.Grants[0].DestinationDomain = "d1.1" })
	for i, y := range changed {
		if string(y.AppendJSON(nil)) == string(x.AppendJSON(nil)) {
			panic(fmt.Sprintf("change %d changes nothing", i))
		}
	}
	return changed
}
