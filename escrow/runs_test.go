package escrow

import (
	"fmt"
	"strings"
	"time"

	"serve.zone/relay/contract"
)

// Values that appear in what is held and must appear nowhere else.
const (
	markerSignature = "bWFya2VkLXNpZ25hdHVyZQ"
	markerAuthority = "marked-authority"
	markerSession   = "marked-session"
	markerDigest    = "sha256:abababababababababababababababababababababababababababababababab"
)

// The grid that Cloudly signs on.
const (
	slotEvery  = 10 * time.Minute
	slotWindow = 15 * time.Minute
)

// projection returns the reference of one version of a projection.
func projection(id string, generation int64) contract.Reference {
	return contract.Reference{ID: id, Generation: generation, Digest: markerDigest}
}

// spec says what is special about a run; the zero value is a plain one.
type spec struct {
	node, namespace, controller string
	projection                  contract.Reference
	sequence                    int64 // of the first renewal
	change                      func(i int, s *contract.SignedDNSLeaseRenewal)
	unsealed                    bool // digests are left as they are
}

func (s spec) withDefaults() spec {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&s.node, "node-a")
	set(&s.namespace, "ns:1")
	set(&s.controller, `{"kind":"cloudly","id":"c1"}`)
	if s.projection == (contract.Reference{}) {
		s.projection = projection("projection:1", 4)
	}
	if s.sequence == 0 {
		s.sequence = 1
	}
	return s
}

// windowsOf returns n windows of the grid, the first one opening at a time.
func windowsOf(first time.Time, n int) []contract.DNSWindow {
	var all []contract.DNSWindow
	for i := range n {
		open := first.Add(time.Duration(i) * slotEvery).UnixMilli()
		all = append(all, contract.DNSWindow{IssuedAt: open, NotBefore: open, ExpiresAt: open + slotWindow.Milliseconds()})
	}
	return all
}

// runOf composes a run of these windows, with records whose text no encoder writes
// again.
func runOf(s spec, windows []contract.DNSWindow) contract.HoldDNSLeaseRenewalsRequest {
	s = s.withDefaults()
	x := contract.HoldDNSLeaseRenewalsRequest{NodeID: s.node, Projection: s.projection, Renewals: []contract.SignedDNSLeaseRenewal{}}
	for i, w := range windows {
		r := contract.SignedDNSLeaseRenewal{
			Authority: contract.Raw(`{"id":"` + markerAuthority + `","generation":2}`),
			Signature: markerSignature,
			Renewal: contract.DNSLeaseRenewal{
				Controller: contract.Raw(s.controller), NodeID: s.node, RuntimeNamespace: s.namespace,
				Projection: s.projection, Sequence: s.sequence + int64(i), DNS: w, Digest: markerDigest,
			},
		}
		if s.change != nil {
			s.change(i, &r)
		}
		if !s.unsealed {
			digest, err := r.Renewal.ComputeDigest()
			if err != nil {
				panic(err)
			}
			r.Renewal.Digest = digest
		}
		r.Received = contract.Raw(strings.Replace(string(r.AppendJSON(nil)), `"signature":`, "\t\"sign\\u0061ture\" :  ", 1))
		x.Renewals = append(x.Renewals, r)
	}
	return x
}

// grid composes a run on the grid.
func grid(s spec, first time.Time, n int) contract.HoldDNSLeaseRenewalsRequest {
	return runOf(s, windowsOf(first, n))
}

// bodyOf is the request body of a run.
func bodyOf(x contract.HoldDNSLeaseRenewalsRequest) []byte { return x.AppendJSON(nil) }

// sessionOf is a session as Cloudly would issue it.
func sessionOf(node, namespace string, epoch int) contract.SessionBinding {
	text := fmt.Sprintf(`{ "nodeId":%q,"controller":{"id":"c1","kind" : "cloudly"},"clusterId":"cluster-a","runtimeNamespace":%q,`+
		`"credential":{"x":"%s"}, "sessionEpoch":%d}`, node, namespace, markerSession, epoch)
	s, err := contract.ReadSessionBinding([]byte(`{"session":`+text+`}`), node)
	if err != nil {
		panic(err)
	}
	return s
}

// bindingOf is a binding that a node obtained from the session that stands.
func bindingOf(node string, epoch int) Binding {
	return Binding{NodeID: node, Session: sessionOf(node, "ns:1", epoch), Confirmed: true}
}
