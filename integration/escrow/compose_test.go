package escrow_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"serve.zone/relay/contract"
)

// Bounds of contract §9.2, written out here once more so that a changed one shows.
const (
	maximumRenewals = 32
	maximumWindow   = 900_000 * time.Millisecond
	maximumHorizon  = 14_400_000 * time.Millisecond
)

// window is one of a run, from the time on at which the run is composed.
type window struct{ issued, opens, ends time.Duration }

// at is the window as a renewal has it.
func (w window) at(now time.Time) contract.DNSWindow {
	ms := func(d time.Duration) int64 { return now.Add(d).UnixMilli() }
	return contract.DNSWindow{IssuedAt: ms(w.issued), NotBefore: ms(w.opens), ExpiresAt: ms(w.ends)}
}

// current is a window that is open for minutes.
var current = window{-time.Minute, -time.Minute, 10 * time.Minute}

// opening is a window that opens after a while. It extends current, and each that opens
// earlier.
func opening(after time.Duration) window {
	return window{after, after, after + 12*time.Minute}
}

// grid are windows of fifteen minutes, one every ten, of which the first is current.
func grid(n int) []window {
	var all []window
	for i := range n {
		at := -time.Minute + time.Duration(i)*10*time.Minute
		all = append(all, window{at, at, at + maximumWindow})
	}
	return all
}

// run says what to compose. Zero fields take what a right Cloudly of this test says.
type run struct {
	node       string
	namespace  string // default that of every session
	controller string // in canonical form; default that of every session
	projection contract.Reference
	first      int64 // sequence of the first renewal, default 1
	windows    []window
	// change spoils one renewal before its digest is made.
	change func(i int, s *contract.SignedDNSLeaseRenewal)
}

// compose makes the request that hands the run over. Digests are made by hand;
// signatures are good as long as the renewal is one that could be signed.
func (c *cluster) compose(x run) contract.HoldDNSLeaseRenewalsRequest {
	c.t.Helper()
	if x.namespace == "" {
		x.namespace = "default"
	}
	if x.controller == "" {
		x.controller = `{"kind":"cloudly"}`
	}
	if x.projection.ID == "" {
		x.projection = projectionOf(x.node, 1)
	}
	now := time.Now()
	request := contract.HoldDNSLeaseRenewalsRequest{NodeID: x.node, Projection: x.projection, Renewals: []contract.SignedDNSLeaseRenewal{}}
	for i, w := range x.windows {
		s := contract.SignedDNSLeaseRenewal{
			Authority: c.authority.Authority.AppendJSON(nil),
			Renewal: contract.DNSLeaseRenewal{
				Controller: contract.Raw(x.controller), NodeID: x.node, RuntimeNamespace: x.namespace,
				Projection: x.projection, Sequence: max(x.first, 1) + int64(i), DNS: w.at(now),
			},
		}
		if x.change != nil {
			x.change(i, &s)
		}
		c.sign(&s)
		request.Renewals = append(request.Renewals, s)
	}
	return request
}

// sign gives a record its digest, and a signature unless it has one.
func (c *cluster) sign(s *contract.SignedDNSLeaseRenewal) {
	c.t.Helper()
	if s.Renewal.Digest == "" {
		s.Renewal.Digest = digestOf(s.Renewal, string(s.Renewal.Controller))
	}
	if s.Signature != "" {
		return
	}
	if signed, err := c.authority.Sign(s.Renewal); err != nil {
		s.Signature = c.Marker("a signature")
	} else {
		s.Signature = signed.Signature
	}
	c.signed = append(c.signed, s.Signature)
	if len(c.signed) == 1 {
		// One will do: of many the search would take its time.
		c.AddSecret("a signature", []byte(s.Signature))
	}
}

// digestOf is the digest of a renewal, its canonical form written out by hand
// (contract §3, O6): names in order, no white space. The controller is given in
// canonical form, everything else needs no escape.
func digestOf(x contract.DNSLeaseRenewal, controller string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, `{"domain":"serve.zone/runtime-network-dns-lease-renewal","renewal":{"controller":%s,`+
		`"dns":{"expiresAt":%d,"issuedAt":%d,"notBefore":%d},"nodeId":"%s",`+
		`"projection":{"digest":"%s","generation":%d,"id":"%s"},"runtimeNamespace":"%s","sequence":%d}}`,
		controller, x.DNS.ExpiresAt, x.DNS.IssuedAt, x.DNS.NotBefore, x.NodeID,
		x.Projection.Digest, x.Projection.Generation, x.Projection.ID, x.RuntimeNamespace, x.Sequence))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// projectionOf is the reference of a node's projection.
func projectionOf(id string, generation int64) contract.Reference {
	sum := sha256.Sum256(fmt.Appendf(nil, "projection %d of %s", generation, id))
	return contract.Reference{ID: "projection:1", Generation: generation, Digest: "sha256:" + hex.EncodeToString(sum[:])}
}

// loosely spells a JSON text as no encoder does: white space wherever it may stand, and
// the first letter of every text, also of names, as an escape.
func loosely(text string) string {
	var out strings.Builder
	inText := false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '"' && !inText && i+1 < len(text) && strings.IndexByte(`"\\`, text[i+1]) < 0 && text[i+1] < 0x80:
			fmt.Fprintf(&out, `"\u%04X`, text[i+1])
			i++
			inText = true
		case b == '"':
			out.WriteByte(b)
			inText = !inText
		case b == '\\' && inText:
			out.WriteString(text[i : i+2])
			i++
		case !inText && strings.IndexByte("{}[]:,", b) >= 0:
			out.WriteString(" " + string(b) + "\r\n\t")
		default:
			out.WriteByte(b)
		}
	}
	return strings.TrimSpace(out.String())
}
