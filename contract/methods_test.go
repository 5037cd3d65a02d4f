package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCatalogueIsConsistent(t *testing.T) {
	count := map[MethodClass]int{}
	seen := map[string]bool{}
	for _, m := range Methods() {
		if seen[m.Name] || !isMethodName(m.Name) {
			t.Errorf("%q stands twice or is no name", m.Name)
		}
		seen[m.Name] = true
		count[m.Class]++
		if got, ok := LookupMethod(m.Name); got != m || !ok {
			t.Errorf("LookupMethod(%q) = %+v, %t", m.Name, got, ok)
		}
		up, down := NodeToRelay|RelayToCloudly, CloudlyToRelay|RelayToNode
		switch {
		case m.Class == Forwarded && m.Hops != up && m.Hops != down:
			t.Errorf("%q is forwarded in no single direction", m.Name)
		case m.Class == NeverForwarded && m.Hops != 0, m.Class == Own && m.Hops == 0:
			t.Errorf("%q has class %d and hops %b", m.Name, m.Class, m.Hops)
		}
	}
	if count[Forwarded] != 16 {
		t.Errorf("%d forwarded methods, contract §8.1 and §8.2 name 12 and 4", count[Forwarded])
	}
	Methods()[0].Name = "changed"
	if Methods()[0].Name == "changed" {
		t.Error("the catalogue can be changed from outside")
	}
	if _, ok := LookupMethod("RegisterClusterRelay"); ok {
		t.Error("method names ignore case")
	}
}

// R38, R39: from the node listener each method that only Cloudly sends is refused by
// the name for it, each other one that does not pass by its own, and what nodes may
// send by none.
func TestR38_R39_ListenerRefusals(t *testing.T) {
	want := map[string]RefusalName{
		"holdRuntimeNetworkDnsLeaseRenewals": EscrowCloudlyOnly,
		"applyRuntimeAssignment":             RelayMethodNotForwarded,
		"applyRuntimeNetworkDnsLeaseRenewal": RelayMethodNotForwarded,
		"openRuntimeAssignmentExec":          RelayMethodNotForwarded,
		"enableClusterRelay":                 RelayMethodNotForwarded,
		"registerClusterRelay":               RelayMethodNotForwarded,
		"getClusterRouteTable":               RelayMethodNotForwarded,
		"unknownMethod":                      RelayMethodNotForwarded,
		"":                                   RelayMethodNotForwarded,
		"registerPalletRuntimeSession":       "",
		"reportRuntimeAssignmentLogs":        "",
		"registerClusterIngress":             "",
		"getClusterIngressRouteTable":        "",
	}
	for _, method := range []string{
		"applyClusterVpnNetwork", "pushClusterRouteTable", "getClusterTrafficStatistics", "pushClusterConfig",
		"backupClusterService", "restoreClusterService", "pruneClusterNodeArchive", "getClusterCorestoreInventory",
		"getClusterCorestoreLegacyResources", "prepareIsolatedRestoreOnNode", "stageIsolatedRestoreArchive",
		"getIsolatedRestoreProgressOnNode", "executeIsolatedRestoreOnNode", "cleanupIsolatedRestoreOnNode",
	} {
		want[method] = RelayCloudlyOnly
	}
	for method, name := range want {
		if got := ListenerRefusal(method); got != name {
			t.Errorf("ListenerRefusal(%q) = %q, want %q", method, got, name)
		}
	}
	for _, m := range Methods() {
		if name, named := want[m.Name]; m.Class == Own && m.Takes(CloudlyToRelay) && (!named || name == "") {
			t.Errorf("%q may arrive from Cloudly alone and is not covered", m.Name)
		}
	}
}

// R38: of Cloudly's methods those that go the other way, are never forwarded or are
// unknown are refused by name, and its own are not.
func TestR38_CloudlyRefusals(t *testing.T) {
	for method, want := range map[string]RefusalName{
		"applyRuntimeAssignment":             "",
		"holdRuntimeNetworkDnsLeaseRenewals": "",
		"getClusterTrafficStatistics":        "",
		"openRuntimeAssignmentExec":          RelayMethodNotForwarded,
		"writeRuntimeLocalVolumeArchive":     RelayMethodNotForwarded,
		"reportRuntimeAssignmentLogs":        RelayMethodNotForwarded,
		"registerClusterIngress":             RelayMethodNotForwarded,
		"registerClusterRelay":               RelayMethodNotForwarded,
		"unknownMethod":                      RelayMethodNotForwarded,
	} {
		if got := CloudlyRefusal(method); got != want {
			t.Errorf("CloudlyRefusal(%q) = %q, want %q", method, got, want)
		}
	}
}

func TestO14_ExtraMethods(t *testing.T) {
	for _, tc := range []struct {
		name     string
		up, down []string
		want     []string
	}{
		{"none", nil, nil, nil},
		{"new names", []string{"reportFleetCutover"}, []string{"pushSigningAuthority", "pushProjection"}, nil},
		{"already forwarded so", []string{"reportRuntimeAssignmentLogs"}, []string{"applyRuntimeAssignment"}, nil},
		{"never forwarded", []string{"openRuntimeAssignmentExec"}, []string{"x", "enableClusterRelay"}, []string{
			"nodeToCloudly[0]: is a method that never passes the relay", "cloudlyToNode[1]: is a method that never passes the relay"}},
		{"own", []string{"registerClusterRelay"}, []string{"pushClusterRouteTable"}, []string{
			"nodeToCloudly[0]: is a method of the relay itself", "cloudlyToNode[0]: is a method of the relay itself"}},
		{"other direction", []string{"applyRuntimeAssignment"}, []string{"reportRuntimeAssignmentLogs"}, []string{
			"nodeToCloudly[0]: is forwarded in the other direction", "cloudlyToNode[0]: is forwarded in the other direction"}},
		{"both directions", []string{"a", "b"}, []string{"c", "b"}, []string{"cloudlyToNode[1]: stands in both directions"}},
		{"no name", []string{"", "a b"}, []string{"a.b"}, []string{"nodeToCloudly[0]: is not a method name",
			"nodeToCloudly[1]: is not a method name", "cloudlyToNode[0]: is not a method name"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, JudgeExtraMethods(tc.up, tc.down)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
