package contract

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checkNetwork judges one network as it is and as it reads.
func checkNetwork(t *testing.T, name string, x VPNNetwork, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, x.Validate()); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
	_, err := readVPNNetworkAlone(x.AppendJSON(nil))
	if diff := cmp.Diff(want, reasonsIn(t, err)); diff != "" {
		t.Errorf("%s, read: %s", name, diff)
	}
}

// R57: each bound of a network is taken, and one past it is refused by name: 256 nodes,
// 128 prefixes, 4,096 grants, 917,504 bytes, 128 bytes of authority, a control prefix
// of /30.
func TestR57_NetworkBounds(t *testing.T) {
	authority := func(id string) VPNNetwork {
		x := vpnNetwork(1, 1)
		x.AuthorityID = id
		return x
	}
	control := func(prefix string) VPNNetwork {
		x := vpnNetwork(0, 0)
		x.ControlPrefix = prefix
		return x
	}
	notPrivate := []string{`controlPrefix: is not inside a private range`}
	notCIDR := []string{`controlPrefix: is not a canonical ipv4 cidr`}
	for name, tc := range map[string]struct {
		network VPNNetwork
		want    []string
	}{
		"256 nodes":                     {vpnNetwork(256, 0), nil},
		"257 nodes":                     {vpnNetwork(257, 0), []string{`nodes: has more than 256 nodes`}},
		"128 prefixes":                  {vpnNetwork(2, 128), nil},
		"129 prefixes":                  {vpnNetwork(1, 129), []string{`nodes[0].workloadPrefixes: has more than 128 prefixes`}},
		"4096 grants":                   {grantAll(vpnNetwork(3, 50), 4096), nil},
		"4097 grants":                   {grantAll(vpnNetwork(3, 50), 4097), []string{`grants: has more than 4096 grants`}},
		"917504 bytes":                  {fill(t, vpnNetwork(256, 68), 917504), nil},
		"917505 bytes":                  {fill(t, vpnNetwork(256, 68), 917505), []string{`body: has more than 917504 canonical bytes`}},
		"authority of 128 bytes":        {authority(strings.Repeat("a", 128)), nil},
		"authority of 129 bytes":        {authority(strings.Repeat("a", 129)), []string{`authorityId: has more than 128 utf-8 bytes`}},
		"authority of 128 other bytes":  {authority(strings.Repeat("ä", 64)), []string{`authorityId: is not a canonical identifier`}},
		"authority of 65 characters":    {authority(strings.Repeat("ä", 65)), []string{`authorityId: is not a canonical identifier`, `authorityId: has more than 128 utf-8 bytes`}},
		"/30":                           {control("10.0.0.0/30"), nil},
		"/31":                           {control("10.0.0.0/31"), []string{`controlPrefix: is longer than 30 bits`}},
		"/32":                           {control("10.0.0.0/32"), []string{`controlPrefix: is longer than 30 bits`}},
		"10/8":                          {control("10.0.0.0/8"), nil},
		"172.16/12":                     {control("172.16.0.0/12"), nil},
		"192.168/16":                    {control("192.168.0.0/16"), nil},
		"wider than private":            {control("10.0.0.0/7"), notPrivate},
		"wider than 172.16/12":          {control("172.0.0.0/11"), notPrivate},
		"beside 172.16/12":              {control("172.32.0.0/16"), notPrivate},
		"beside 192.168/16":             {control("192.169.0.0/24"), notPrivate},
		"shared address space":          {control("100.64.0.0/24"), notPrivate},
		"everything":                    {control("0.0.0.0/0"), notPrivate},
		"host bits":                     {control("10.0.0.1/24"), notCIDR},
		"zero padded":                   {control("10.0.0.0/08"), notCIDR},
		"ipv6":                          {control("fd00::/64"), notCIDR},
		"control prefix without length": {control("10.0.0.0"), notCIDR},
	} {
		checkNetwork(t, name, tc.network, tc.want)
	}
}

// R57: a revision is a counter from 1 to the largest safe integer.
func TestR57_RevisionIsACounter(t *testing.T) {
	x := vpnNetwork(0, 0)
	x.Revision = 0
	checkNetwork(t, "0", x, []string{`revision: is not a counter`})
	x.Revision = MaximumSafeInteger
	checkNetwork(t, "last", x, nil)
}

// R01: nodes of a network are named by the rule of nodes.
func TestR01_NetworkNodeID(t *testing.T) {
	for id, want := range nodeIDs {
		x := vpnNetwork(1, 1)
		x.Nodes[0].NodeID = id
		if want {
			checkNetwork(t, id, x, nil)
		} else {
			checkNetwork(t, id, x, []string{`nodes[0].nodeId: is not a node id`})
		}
	}
}

// R02: a network whose authority is no canonical identifier, such as :x or one of 201
// characters, is refused by name.
func TestR02_NetworkAuthorityID(t *testing.T) {
	for id, want := range map[string][]string{
		"a:b._-9":                nil,
		":x":                     {`authorityId: is not a canonical identifier`},
		"":                       {`authorityId: is not a canonical identifier`},
		strings.Repeat("a", 201): {`authorityId: is not a canonical identifier`, `authorityId: has more than 128 utf-8 bytes`},
	} {
		x := vpnNetwork(0, 0)
		x.AuthorityID = id
		checkNetwork(t, id, x, want)
	}
}

// R58: nodes, prefixes and grants that are not in order or not unique, and keys and
// addresses that repeat, are refused by their path.
func TestR58_NetworkIsSortedAndUnique(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(x *VPNNetwork)
		want   []string
	}{
		"nodes swapped": {func(x *VPNNetwork) { x.Nodes[0], x.Nodes[1] = x.Nodes[1], x.Nodes[0] },
			[]string{`nodes[1].nodeId: is not in sorted order`}},
		"node repeated": {func(x *VPNNetwork) { x.Nodes[1].NodeID = x.Nodes[0].NodeID },
			[]string{`nodes[1].nodeId: repeats the one before`}},
		"upper case sorts first": {func(x *VPNNetwork) { x.Nodes[0].NodeID = "Z" }, nil},
		"key repeated": {func(x *VPNNetwork) { x.Nodes[2].PublicKey = x.Nodes[0].PublicKey },
			[]string{`nodes[2].publicKey: is the key of another node`}},
		"address repeated": {func(x *VPNNetwork) { x.Nodes[2].ControlAddress = x.Nodes[0].ControlAddress },
			[]string{`nodes[2].controlAddress: is the address of another node`}},
		"prefixes swapped": {func(x *VPNNetwork) { p := x.Nodes[1].WorkloadPrefixes; p[0], p[1] = p[1], p[0] },
			[]string{`nodes[1].workloadPrefixes[1].cidr: is not in sorted order`}},
		"prefix repeated": {func(x *VPNNetwork) { p := x.Nodes[1].WorkloadPrefixes; p[1].CIDR = p[0].CIDR },
			[]string{`nodes[1].workloadPrefixes[1].cidr: repeats the one before`}},
		"sorted by text, not by number": {func(x *VPNNetwork) {
			p := x.Nodes[1].WorkloadPrefixes
			p[0].CIDR, p[1].CIDR = "10.1.0.10/32", "10.1.0.9/32"
		}, nil},
		"sorted by number, not by text": {func(x *VPNNetwork) {
			p := x.Nodes[1].WorkloadPrefixes
			p[0].CIDR, p[1].CIDR = "10.1.0.9/32", "10.1.0.10/32"
		}, []string{`nodes[1].workloadPrefixes[1].cidr: is not in sorted order`}},
		"grants swapped": {func(x *VPNNetwork) { x.Grants[0], x.Grants[1] = x.Grants[1], x.Grants[0] },
			[]string{`grants[1]: is not in sorted order`}},
		"grant repeated": {func(x *VPNNetwork) { x.Grants[1] = x.Grants[0] },
			[]string{`grants[1]: repeats the one before`}},
		"sources out of order": {func(x *VPNNetwork) { x.Grants = []VPNGrant{{"d1.0", "d0.0"}, {"d0.0", "d1.0"}} },
			[]string{`grants[1]: is not in sorted order`}},
		"both directions": {func(x *VPNNetwork) { x.Grants = []VPNGrant{{"d0.0", "d1.0"}, {"d1.0", "d0.0"}} }, nil},
	} {
		x := grantAll(vpnNetwork(3, 2), 3)
		tc.change(&x)
		checkNetwork(t, name, x, tc.want)
	}
}

// R58: a control address is inside the control prefix and neither its network, its
// broadcast nor the hub's; each other one is refused by name.
func TestR58_ControlAddresses(t *testing.T) {
	for address, want := range map[string][]string{
		"192.168.0.2":     nil,
		"192.168.3.254":   nil,
		"192.168.4.0":     {`nodes[0].controlAddress: is not inside the control prefix`},
		"192.167.255.255": {`nodes[0].controlAddress: is not inside the control prefix`},
		"192.168.0.0":     {`nodes[0].controlAddress: is the network address of the control prefix`},
		"192.168.0.1":     {`nodes[0].controlAddress: is the address of the hub`},
		"192.168.3.255":   {`nodes[0].controlAddress: is the broadcast address of the control prefix`},
		"192.168.0.02":    {`nodes[0].controlAddress: is not a canonical ipv4 literal`},
		"fd00::2":         {`nodes[0].controlAddress: is not a canonical ipv4 literal`},
		"":                {`nodes[0].controlAddress: is not a canonical ipv4 literal`},
	} {
		x := vpnNetwork(1, 1)
		x.Nodes[0].ControlAddress = address
		checkNetwork(t, address, x, want)
	}
}

// R58: of the four addresses of a /30 one is left for a node.
func TestR58_SmallestControlPrefix(t *testing.T) {
	for last, want := range []bool{false, false, true, false, false} {
		x := vpnNetwork(1, 1)
		x.ControlPrefix = "172.16.0.0/30"
		x.Nodes[0].ControlAddress = "172.16.0." + string(rune('0'+last))
		if got := x.Validate() == nil; got != want {
			t.Errorf("%s: %q", x.Nodes[0].ControlAddress, x.Validate())
		}
	}
}

// R58: a workload prefix that is not canonical, not in order, or overlaps the control
// prefix or another one is refused by name.
func TestR58_WorkloadPrefixes(t *testing.T) {
	const overlaps = `nodes[2].workloadPrefixes[1].cidr: overlaps the control prefix`
	for cidr, want := range map[string][]string{
		"10.9.0.0/16":     nil,
		"192.168.4.0/22":  nil,
		"192.168.0.0/22":  {overlaps},
		"192.168.3.7/32":  {overlaps},
		"192.168.0.0/16":  {overlaps},
		"192.0.0.0/8":     {overlaps},
		"192.168.9.1/31":  {`nodes[2].workloadPrefixes[1].cidr: is not a canonical ipv4 cidr`},
		"192.168.9.0":     {`nodes[2].workloadPrefixes[1].cidr: is not a canonical ipv4 cidr`},
		"10.2.0.0/32":     {`nodes[2].workloadPrefixes[1].cidr: repeats the one before`},
		"10.2.0.0/31":     {`nodes[2].workloadPrefixes[1].cidr: is not in sorted order`, `nodes[2].workloadPrefixes[0].cidr: overlaps another workload prefix`},
		"10.2.0.2/32":     nil,
		"20.0.0.0/8":      nil,
		"255.255.255.0/8": {`nodes[2].workloadPrefixes[1].cidr: is not a canonical ipv4 cidr`},
	} {
		x := vpnNetwork(3, 2)
		x.Nodes[2].WorkloadPrefixes[1].CIDR = cidr
		checkNetwork(t, cidr, x, want)
	}
}

// R58: a policy domain belongs to one node, and a grant names two domains of different
// nodes; each breach is refused by its path.
func TestR58_PolicyDomainsAndGrants(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(x *VPNNetwork)
		want   []string
	}{
		"domain on two nodes": {func(x *VPNNetwork) { x.Nodes[1].WorkloadPrefixes[0].PolicyDomain = "d0.0" },
			[]string{`nodes[1].workloadPrefixes[0].policyDomain: is a domain of another node`,
				`grants[0].destinationDomain: is not a domain of this network`}},
		"domain twice on one node": {func(x *VPNNetwork) { x.Nodes[1].WorkloadPrefixes[1].PolicyDomain = "d1.0" },
			[]string{`grants[1].destinationDomain: is not a domain of this network`}},
		"domain empty": {func(x *VPNNetwork) { x.Nodes[2].WorkloadPrefixes[0].PolicyDomain = "" },
			[]string{`nodes[2].workloadPrefixes[0].policyDomain: is not a policy domain`}},
		"domain of 256 characters": {func(x *VPNNetwork) { x.Nodes[2].WorkloadPrefixes[0].PolicyDomain = strings.Repeat("~", 256) }, nil},
		"domain of 257 characters": {func(x *VPNNetwork) { x.Nodes[2].WorkloadPrefixes[0].PolicyDomain = strings.Repeat("~", 257) },
			[]string{`nodes[2].workloadPrefixes[0].policyDomain: is not a policy domain`}},
		"domain not ascii": {func(x *VPNNetwork) { x.Nodes[2].WorkloadPrefixes[0].PolicyDomain = "dömäne" },
			[]string{`nodes[2].workloadPrefixes[0].policyDomain: is not a policy domain`}},
		"unknown source": {func(x *VPNNetwork) { x.Grants[0].SourceDomain = "c" },
			[]string{`grants[0].sourceDomain: is not a domain of this network`}},
		"unknown ends": {func(x *VPNNetwork) { x.Grants[1] = VPNGrant{"x", "y"} },
			[]string{`grants[1].sourceDomain: is not a domain of this network`, `grants[1].destinationDomain: is not a domain of this network`}},
		"one node": {func(x *VPNNetwork) { x.Grants[0] = VPNGrant{"d0.0", "d0.1"} },
			[]string{`grants[0]: joins two domains of one node`}},
		"one domain": {func(x *VPNNetwork) { x.Grants[0] = VPNGrant{"d0.0", "d0.0"} },
			[]string{`grants[0]: joins two domains of one node`}},
	} {
		x := grantAll(vpnNetwork(3, 2), 2)
		if want := []VPNGrant{{"d0.0", "d1.0"}, {"d0.0", "d1.1"}}; !slices.Equal(x.Grants, want) {
			t.Fatal(x.Grants)
		}
		tc.change(&x)
		checkNetwork(t, name, x, tc.want)
	}
}

// R58: a member's key and expiry are judged, each by its path.
func TestR58_MemberMembers(t *testing.T) {
	x := vpnNetwork(1, 0)
	x.Nodes[0].PublicKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg=="
	x.Nodes[0].ExpiresAt = -1
	checkNetwork(t, "key and expiry", x, []string{`nodes[0].publicKey: is not a canonical noise key`,
		`nodes[0].expiresAt: is not a time in unix milliseconds`})
}
