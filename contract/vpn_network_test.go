package contract

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func readVPNNetworkAlone(body []byte) (VPNNetwork, error) {
	return readAs[VPNNetwork]("vpn network", body, 0)
}

const networkText = `{"authorityId":"a","controlPrefix":"10.0.0.0/29","revision":1,"nodes":[` +
	`{"nodeId":"-a","publicKey":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=","controlAddress":"10.0.0.2","expiresAt":0,` +
	`"workloadPrefixes":[{"cidr":"10.1.0.1/32","policyDomain":"d1"}]},` +
	`{"nodeId":"b","publicKey":"AQECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=","controlAddress":"10.0.0.6","expiresAt":1,` +
	`"workloadPrefixes":[{"cidr":"10.1.0.2/32","policyDomain":"d2"}]}],"grants":[{"sourceDomain":"d1","destinationDomain":"d2"}]}`

// R04: a member more is refused at every level of a network, with its path.
func TestR04_VPNNetwork(t *testing.T) {
	checkExactKeys(t, networkText, nil, errorOf(readVPNNetworkAlone))
}

func TestVPNNetwork_Shape(t *testing.T) {
	checkBodies(t, readVPNNetworkAlone, []bodyCase{
		{"whole", networkText, nil},
		{"least", `{"authorityId":"a","controlPrefix":"10.0.0.0/8","revision":1,"nodes":[],"grants":[]}`, nil},
		{"missing", `{}`, []string{`authorityId: is missing`, `controlPrefix: is missing`, `revision: is missing`,
			`nodes: is missing`, `grants: is missing`}},
		{"missing inside", `{"authorityId":"a","controlPrefix":"10.0.0.0/8","revision":1,"nodes":[{}],"grants":[{}]}`, []string{
			`nodes[0].nodeId: is missing`, `nodes[0].publicKey: is missing`, `nodes[0].controlAddress: is missing`,
			`nodes[0].expiresAt: is missing`, `nodes[0].workloadPrefixes: is missing`,
			`grants[0].sourceDomain: is missing`, `grants[0].destinationDomain: is missing`}},
		{"missing in a prefix", with(t, networkText, `{"cidr":"10.1.0.2/32","policyDomain":"d2"}`, `{}`), []string{
			`nodes[1].workloadPrefixes[0].cidr: is missing`, `nodes[1].workloadPrefixes[0].policyDomain: is missing`}},
		{"kinds", `{"authorityId":null,"controlPrefix":8,"revision":"1","nodes":{},"grants":null}`, []string{
			`authorityId: is not a string`, `controlPrefix: is not a string`, `revision: is not a number`,
			`nodes: is not an array`, `grants: is not an array`}},
		{"twice", with(t, networkText, `"revision":1`, `"revision":1,"r\u0065vision":1`), []string{`revision: is given twice`}},
		{"fraction", with(t, networkText, `"revision":1`, `"revision":1.0`), []string{`revision: is not a plain safe integer`}},
	})
	checkWritten(t, drawVPNNetwork, readVPNNetworkAlone)
}

func TestVPNNetwork_CanonicalLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawVPNNetwork(t)
		x.AuthorityID = rapid.String().Draw(t, "any authority")
		want, err := CanonicalLength(x.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got := x.CanonicalLength(); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	})
}

// R59: two networks are the same when every member of them is; another value anywhere
// makes them differ.
func TestR59_VPNNetworkEqualByContent(t *testing.T) {
	x, y := grantAll(vpnNetwork(3, 2), 4), grantAll(vpnNetwork(3, 2), 4)
	if !x.Equal(y) {
		t.Error("equal networks differ")
	}
	for name, change := range map[string]func(x *VPNNetwork){
		"authority": func(x *VPNNetwork) { x.AuthorityID = "b" },
		"prefix":    func(x *VPNNetwork) { x.ControlPrefix = "192.168.0.0/21" },
		"revision":  func(x *VPNNetwork) { x.Revision++ },
		"node":      func(x *VPNNetwork) { x.Nodes = x.Nodes[:2] },
		"node id":   func(x *VPNNetwork) { x.Nodes[1].NodeID += "x" },
		"key":       func(x *VPNNetwork) { x.Nodes[1].PublicKey = keyText },
		"address":   func(x *VPNNetwork) { x.Nodes[1].ControlAddress = "192.168.0.9" },
		"expiry":    func(x *VPNNetwork) { x.Nodes[1].ExpiresAt++ },
		"cidr":      func(x *VPNNetwork) { x.Nodes[1].WorkloadPrefixes[1].CIDR = "10.1.0.9/32" },
		"domain":    func(x *VPNNetwork) { x.Nodes[1].WorkloadPrefixes[1].PolicyDomain += "x" },
		"grant":     func(x *VPNNetwork) { x.Grants[3].DestinationDomain += "x" },
		"grants":    func(x *VPNNetwork) { x.Grants = x.Grants[:3] },
	} {
		y := grantAll(vpnNetwork(3, 2), 4)
		change(&y)
		if x.Equal(y) || y.Equal(x) {
			t.Errorf("another %s is equal", name)
		}
		if EqualCanonical(x.AppendJSON(nil), y.AppendJSON(nil)) {
			t.Errorf("another %s is equal canonically", name)
		}
	}
}

func FuzzReadVPNNetwork(f *testing.F) {
	fuzzReader(f, readVPNNetworkAlone, networkText, strings.Replace(networkText, `"d2"}]}]`, `"d1"}]}]`, 1),
		string(grantAll(vpnNetwork(4, 2), 6).AppendJSON(nil)), `{"nodes":[{"workloadPrefixes":[{}]}],"grants":[{}]}`)
}

// What it costs to read and judge the largest networks, by prefixes and by
// grants, as a multiple of putting the same bytes into canonical form.
func BenchmarkReadLargestVPNNetwork(b *testing.B) {
	for name, x := range map[string]VPNNetwork{
		"prefixes": largestNetwork(b),
		"grants":   grantAll(vpnNetwork(MaximumVPNNodes, 4), MaximumVPNGrants),
	} {
		body := x.AppendJSON(nil)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			var read, canonical time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := readVPNNetworkAlone(body); err != nil {
					b.Fatal(err)
				}
				middle := time.Now()
				if _, err := Canonical(body); err != nil {
					b.Fatal(err)
				}
				read, canonical = read+middle.Sub(start), canonical+time.Since(middle)
			}
			b.ReportMetric(float64(read.Microseconds())/float64(b.N), "µs/read")
			b.ReportMetric(float64(read)/float64(canonical), "read/canonical")
		})
	}
}

func TestVPNNetwork_LargestReadsWhole(t *testing.T) {
	want := largestNetwork(t)
	got, err := readVPNNetworkAlone(want.AppendJSON(nil))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
}
