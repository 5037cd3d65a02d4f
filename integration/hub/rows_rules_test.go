package hub_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network/networktest"
)

// grid is a network of so many nodes with so many prefixes each. Of any number of them
// there is room.
func grid(nodes, prefixes int) contract.VPNNetwork {
	x := networktest.Grid(nodes, prefixes)
	for i := range x.Nodes {
		if prefixes > 255 {
			panic("networks of tests have at most 255 prefixes a node")
		}
		x.Nodes[i].ExpiresAt = time.Now().Add(time.Hour).UnixMilli()
	}
	return x
}

// granted adds so many grants, from the prefixes of each node to those of all others.
func granted(x contract.VPNNetwork, count int) contract.VPNNetwork {
	for i := range x.Nodes {
		for j := range x.Nodes {
			for _, source := range x.Nodes[i].WorkloadPrefixes {
				for _, destination := range x.Nodes[j].WorkloadPrefixes {
					if i != j && len(x.Grants) < count {
						x.Grants = append(x.Grants, contract.VPNGrant{SourceDomain: source.PolicyDomain, DestinationDomain: destination.PolicyDomain})
					}
				}
			}
		}
	}
	slices.SortFunc(x.Grants, func(a, b contract.VPNGrant) int {
		return cmp.Or(cmp.Compare(a.SourceDomain, b.SourceDomain), cmp.Compare(a.DestinationDomain, b.DestinationDomain))
	})
	return x
}

// filled lengthens policy domains until the network has so many canonical bytes.
func filled(t *testing.T, x contract.VPNNetwork, size int) contract.VPNNetwork {
	t.Helper()
	rest := size - x.CanonicalLength()
	for i := range x.Nodes {
		for j := range x.Nodes[i].WorkloadPrefixes {
			domain := &x.Nodes[i].WorkloadPrefixes[j].PolicyDomain
			if n := min(rest, 256-len(*domain)); n > 0 {
				*domain += strings.Repeat("x", n)
				rest -= n
			}
		}
	}
	if got := x.CanonicalLength(); got != size {
		t.Fatalf("built a network of %d canonical bytes, not %d", got, size)
	}
	return x
}

// rule is a change of a network that is right, and the reasons for which it is refused
// then, "network" left out at their beginning; none where it is right still.
type rule struct {
	what    string
	network contract.VPNNetwork
	reasons []string
}

// wantRules pushes networks one after the other.
func (c *cluster) wantRules(rules []rule) {
	c.t.Helper()
	for _, x := range rules {
		x.network.Revision += c.holds()
		if len(x.reasons) == 0 {
			c.applied(x.what, x.network, x.network.Revision)
			if s := c.shown(); s.Network == nil || s.Network.Revision != x.network.Revision || len(s.Members) != len(x.network.Nodes) {
				c.t.Errorf("%s: shown %+v", x.what, s.Network)
			}
			continue
		}
		for i := range x.reasons {
			x.reasons[i] = "network" + x.reasons[i]
		}
		c.refused(x.what, body(x.network), x.reasons...)
	}
}

// R57: each bound of a network is met to the last one, and the first beyond it is refused
// by name and changes nothing.
func TestR57_BoundsOfANetwork(t *testing.T) {
	c := beginHub(t)
	c.wantRules([]rule{
		{"no node", grid(0, 0), nil},
		{"256 nodes", grid(256, 0), nil},
		{"257 nodes", grid(257, 0), []string{".nodes: has more than 256 nodes"}},
		{"128 prefixes", grid(2, 128), nil},
		{"129 prefixes", grid(1, 129), []string{".nodes[0].workloadPrefixes: has more than 128 prefixes"}},
		{"4096 grants", granted(grid(3, 50), 4096), nil},
		{"4097 grants", granted(grid(3, 50), 4097), []string{".grants: has more than 4096 grants"}},
		{"917504 bytes", filled(t, grid(256, 68), 917_504), nil},
		{"917505 bytes", filled(t, grid(256, 68), 917_505), []string{": has more than 917504 canonical bytes"}},
		{"another large one", granted(grid(256, 4), 4096), nil},
		{"a domain of 256 characters", domainOf(strings.Repeat("~", 256)), nil},
		{"a domain of 257 characters", domainOf(strings.Repeat("~", 257)), []string{".nodes[0].workloadPrefixes[0].policyDomain: is not a policy domain"}},
		{"no domain", domainOf(""), []string{".nodes[0].workloadPrefixes[0].policyDomain: is not a policy domain"}},
		{"a domain beyond ascii", domainOf("dömäne"), []string{".nodes[0].workloadPrefixes[0].policyDomain: is not a policy domain"}},
	})
	x := grid(1, 1)
	x.Revision = 0
	c.refused("revision 0", body(x), "network.revision: is not a counter")
	x.Revision = contract.MaximumSafeInteger
	c.applied("the last revision", x, contract.MaximumSafeInteger)
	c.refused("a revision beyond it", strings.Replace(body(x), `"revision":9007199254740991`, `"revision":9007199254740992`, 1),
		"network.revision: is not a plain safe integer")
}

func domainOf(domain string) contract.VPNNetwork {
	x := grid(2, 1)
	x.Nodes[0].WorkloadPrefixes[0].PolicyDomain = domain
	return x
}

// R57: what a hub that holds a network would refuse anyway is judged by one that holds
// none: the control prefix.
func TestR57_ControlPrefixes(t *testing.T) {
	c := beginHub(t)
	const notPrivate, notCIDR, long = ": is not inside a private range", ": is not a canonical ipv4 cidr", ": is longer than 30 bits"
	for prefix, reason := range map[string]string{
		"10.0.0.0/30": "", "10.0.0.0/8": "", "172.16.0.0/12": "", "192.168.0.0/16": "", "172.31.255.252/30": "",
		"10.0.0.0/31": long, "10.0.0.0/32": long,
		"10.0.0.0/7": notPrivate, "172.0.0.0/11": notPrivate, "172.32.0.0/16": notPrivate, "192.169.0.0/24": notPrivate,
		"100.64.0.0/24": notPrivate, "0.0.0.0/0": notPrivate, "127.0.0.0/24": notPrivate,
		"10.0.0.1/24": notCIDR, "10.0.0.0/08": notCIDR, "010.0.0.0/8": notCIDR, "fd00::/64": notCIDR, "10.0.0.0": notCIDR, "": notCIDR,
	} {
		x := grid(0, 0)
		x.ControlPrefix = prefix
		if reason != "" {
			c.refused(prefix, body(x), "network.controlPrefix"+reason)
			continue
		}
		c.applied(prefix, x, 1)
		if n := c.shown().Network; n == nil || n.ControlPrefix != prefix {
			t.Errorf("%s: shown %+v", prefix, n)
		}
		c.empty()
	}
}

// R02, R57: authority ids follow the rule of identifiers and end at 128 bytes.
func TestR02_R57_AuthorityIDs(t *testing.T) {
	c := beginHub(t)
	const notCanonical, long = "network.authorityId: is not a canonical identifier", "network.authorityId: has more than 128 utf-8 bytes"
	for id, reasons := range map[string][]string{
		"a:b._-9": nil, "9": nil, "Z": nil, strings.Repeat("a", 128): nil,
		":x": {notCanonical}, "": {notCanonical}, "a b": {notCanonical}, "a/b": {notCanonical}, "-a": {notCanonical},
		strings.Repeat("a", 129): {long},
		strings.Repeat("a", 200): {long},
		strings.Repeat("a", 201): {notCanonical, long},
		strings.Repeat("ä", 64):  {notCanonical},
		strings.Repeat("ä", 65):  {notCanonical, long}, // of 130 bytes, and fewer characters
	} {
		x := grid(1, 1)
		x.AuthorityID = id
		if reasons != nil {
			c.refused(id, body(x), reasons...)
			continue
		}
		c.applied(id, x, 1)
		if n := c.shown().Network; n == nil || n.AuthorityID != id {
			t.Errorf("%s: shown %+v", id, n)
		}
		c.empty()
	}
}

// R58: lists are sorted and unique, keys and addresses one node's alone, addresses lie
// inside the control prefix and workloads beside it, and grants join what is there.
func TestR58_OrderAndUniqueness(t *testing.T) {
	c := beginHub(t)
	c.applied("the one that is held", grid(3, 2), 1)
	rules := []rule{}
	changed := func(what string, change func(x *contract.VPNNetwork), reasons ...string) {
		x := granted(grid(3, 2), 3)
		change(&x)
		rules = append(rules, rule{what, x, reasons})
	}
	node := func(i int, rule string) string { return fmt.Sprintf(".nodes[%d].%s", i, rule) }
	prefix := func(i, j int, rule string) string {
		return fmt.Sprintf(".nodes[%d].workloadPrefixes[%d].%s", i, j, rule)
	}
	grant := func(i int, rule string) string { return fmt.Sprintf(".grants[%d]%s", i, rule) }

	changed("nodes swapped", func(x *contract.VPNNetwork) { x.Nodes[0], x.Nodes[1] = x.Nodes[1], x.Nodes[0] }, node(1, "nodeId: is not in sorted order"))
	changed("a node repeated", func(x *contract.VPNNetwork) { x.Nodes[1].NodeID = x.Nodes[0].NodeID }, node(1, "nodeId: repeats the one before"))
	changed("a key repeated", func(x *contract.VPNNetwork) { x.Nodes[2].PublicKey = x.Nodes[0].PublicKey }, node(2, "publicKey: is the key of another node"))
	changed("an address repeated", func(x *contract.VPNNetwork) { x.Nodes[2].ControlAddress = x.Nodes[0].ControlAddress }, node(2, "controlAddress: is the address of another node"))
	changed("prefixes swapped", func(x *contract.VPNNetwork) { p := x.Nodes[1].WorkloadPrefixes; p[0], p[1] = p[1], p[0] }, prefix(1, 1, "cidr: is not in sorted order"))
	changed("a prefix repeated", func(x *contract.VPNNetwork) { p := x.Nodes[1].WorkloadPrefixes; p[1].CIDR = p[0].CIDR }, prefix(1, 1, "cidr: repeats the one before"))
	changed("grants swapped", func(x *contract.VPNNetwork) { x.Grants[0], x.Grants[1] = x.Grants[1], x.Grants[0] }, grant(1, ": is not in sorted order"))
	changed("a grant repeated", func(x *contract.VPNNetwork) { x.Grants[1] = x.Grants[0] }, grant(1, ": repeats the one before"))
	changed("upper case first", func(x *contract.VPNNetwork) { x.Nodes[0].NodeID = "Z" })
	changed("prefixes by number, not by text", func(x *contract.VPNNetwork) {
		p := x.Nodes[1].WorkloadPrefixes
		p[0].CIDR, p[1].CIDR = "10.1.9.0/24", "10.1.10.0/24"
	}, prefix(1, 1, "cidr: is not in sorted order"))

	for address, rule := range map[string]string{
		"192.168.3.254": "", "192.168.0.5": "", "192.168.4.0": "is not inside the control prefix", "10.90.0.1": "is not inside the control prefix",
		"192.168.0.0": "is the network address of the control prefix", "192.168.3.255": "is the broadcast address of the control prefix",
		"192.168.0.1": "is the address of the hub", "192.168.0.07": "is not a canonical ipv4 literal", "fd00::2": "is not a canonical ipv4 literal", "": "is not a canonical ipv4 literal",
	} {
		var reasons []string
		if rule != "" {
			reasons = []string{node(0, "controlAddress: "+rule)}
		}
		changed("control address "+address, func(x *contract.VPNNetwork) { x.Nodes[0].ControlAddress = address }, reasons...)
	}
	for cidr, rule := range map[string]string{
		"20.0.0.0/8": "", "192.168.4.0/22": "",
		"192.168.0.0/22": "overlaps the control prefix", "192.168.3.7/32": "overlaps the control prefix", "192.168.0.0/16": "overlaps the control prefix",
		"192.168.9.1/24": "is not a canonical ipv4 cidr", "192.168.9.0": "is not a canonical ipv4 cidr", "20.0.0.0/33": "is not a canonical ipv4 cidr",
	} {
		var reasons []string
		if rule != "" {
			reasons = []string{prefix(2, 1, "cidr: "+rule)}
		}
		changed("prefix "+cidr, func(x *contract.VPNNetwork) { x.Nodes[2].WorkloadPrefixes[1].CIDR = cidr }, reasons...)
	}
	changed("a prefix inside another node's", func(x *contract.VPNNetwork) { x.Nodes[2].WorkloadPrefixes[0].CIDR = "10.1.0.128/25" },
		prefix(2, 0, "cidr: overlaps another workload prefix"))
	changed("a prefix over one of its own node's", func(x *contract.VPNNetwork) { x.Nodes[2].WorkloadPrefixes[0].CIDR = "10.2.0.0/16" },
		prefix(2, 1, "cidr: overlaps another workload prefix"))
	changed("a domain on two nodes", func(x *contract.VPNNetwork) { x.Nodes[2].WorkloadPrefixes[1].PolicyDomain = "d0.0" },
		prefix(2, 1, "policyDomain: is a domain of another node"))
	changed("an unknown source", func(x *contract.VPNNetwork) { x.Grants[0].SourceDomain = "a" }, grant(0, ".sourceDomain: is not a domain of this network"))
	changed("an unknown destination", func(x *contract.VPNNetwork) { x.Grants[0].DestinationDomain = "a" }, grant(0, ".destinationDomain: is not a domain of this network"))
	changed("two domains of one node", func(x *contract.VPNNetwork) { x.Grants[0].DestinationDomain = "d0.1" }, grant(0, ": joins two domains of one node"))
	changed("one domain", func(x *contract.VPNNetwork) { x.Grants[0].DestinationDomain = "d0.0" }, grant(0, ": joins two domains of one node"))
	changed("a key of 31 bytes", func(x *contract.VPNNetwork) { x.Nodes[0].PublicKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==" }, node(0, "publicKey: is not a canonical noise key"))
	changed("a key with other last bits", func(x *contract.VPNNetwork) { x.Nodes[0].PublicKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=" }, node(0, "publicKey: is not a canonical noise key"))
	changed("a time before all", func(x *contract.VPNNetwork) { x.Nodes[0].ExpiresAt = -1 }, node(0, "expiresAt: is not a time in unix milliseconds"))
	changed("several of them", func(x *contract.VPNNetwork) {
		x.AuthorityID, x.Nodes[0].NodeID, x.Grants[2].SourceDomain = ":", "node:0", "a"
	}, ".authorityId: is not a canonical identifier", node(0, "nodeId: is not a node id"), node(1, "nodeId: is not in sorted order"),
		grant(2, ": is not in sorted order"), grant(2, ".sourceDomain: is not a domain of this network"))

	c.wantRules(rules)
	right := len(slices.DeleteFunc(slices.Clone(rules), func(x rule) bool { return len(x.reasons) > 0 }))
	if got, want := c.counted("relay_hub_received_networks_total", "origin", "pushed", "outcome", "invalid"), float64(len(rules)-right); got != want {
		t.Errorf("%v networks are counted as invalid, want %v", got, want)
	}
}

// R58: of the four addresses of a /30 one is left for a node.
func TestR58_TheSmallestControlPrefix(t *testing.T) {
	c := beginHub(t)
	for last, rule := range []string{"is the network address of the control prefix", "is the address of the hub", "",
		"is the broadcast address of the control prefix", "is not inside the control prefix"} {
		x := grid(1, 1)
		x.ControlPrefix, x.Nodes[0].ControlAddress = "172.16.0.0/30", fmt.Sprint("172.16.0.", last)
		if rule == "" {
			c.applied(x.Nodes[0].ControlAddress, x, 1)
			c.empty()
		} else {
			c.refused(x.Nodes[0].ControlAddress, body(x), "network.nodes[0].controlAddress: "+rule)
		}
	}
}

// R01: members are named by the rule of nodes, not by that of identifiers, and connect
// under such names.
func TestR01_MembersAreNamedByTheRuleOfNodes(t *testing.T) {
	c := beginHub(t)
	c.admit()
	long := strings.Repeat("a", 128)
	for _, id := range []string{"-abc", "_abc", long, "A-0_z", "-", "_", "7"} {
		c.network.Nodes[0].NodeID = id
		c.push()
		p := c.dial(0)
		if m := c.shown().Members; len(m) != 1 || m[0].Node != id || m[0].Session == nil {
			t.Errorf("%s: shown %+v", id, m)
		}
		p.close()
		c.Eventually("the end of the session", func() error {
			if s := c.shown().Members[0].Session; s != nil {
				return fmt.Errorf("shown %+v", s)
			}
			return nil
		})
	}
	for _, id := range []string{"a.b", long + "a", "a:b", "", " ", "a b", "a/b", "é", "-abc ", "a\n", "a\x00"} {
		x := c.network
		x.Nodes = slices.Clone(x.Nodes)
		x.Nodes[0].NodeID = id
		x.Revision++
		c.refused(id, body(x), "network.nodes[0].nodeId: is not a node id")
	}
	c.dial(0)
	if got := c.handshakes("confirmed"); got != 8 {
		t.Errorf("%v handshakes were confirmed", got)
	}
}
