package contract

// SignedDNSLeaseRenewal is ISignedRuntimeNetworkDnsLeaseRenewal. The relay never
// verifies the signature: it holds no key and no trust (contract §9.2).
type SignedDNSLeaseRenewal struct {
	Authority Raw // the exact signing-authority revision, opaque and not null
	Renewal   DNSLeaseRenewal
	Signature string // 1 to MaximumSignatureLength bytes
	// Received is the whole record as it came; the node is given these bytes. It
	// is nil in a record that this program composed.
	Received Raw
}

func readSignedDNSLeaseRenewal(x *SignedDNSLeaseRenewal) valueReader { return x.shape() }

func (x *SignedDNSLeaseRenewal) shape() valueReader {
	return kept(&x.Received, object(
		required("authority", raw(&x.Authority)),
		required("renewal", readDNSLeaseRenewal(&x.Renewal)),
		required("signature", text(&x.Signature)),
	))
}

// Validate returns one named reason for each violation.
func (x SignedDNSLeaseRenewal) Validate() []string { return reasonsOf(x.judge) }

func (x SignedDNSLeaseRenewal) judge(v *verdict) {
	v.require(!x.Authority.IsNull(), "authority", "is null")
	v.canonical("authority", x.Authority)
	v.in("renewal", x.Renewal)
	v.require(x.Signature != "", "signature", "is empty")
	v.require(len(x.Signature) <= MaximumSignatureLength, "signature", "has more than 128 bytes")
}

// AppendJSON appends the record as it came, or composes it.
func (x SignedDNSLeaseRenewal) AppendJSON(dst []byte) []byte {
	if len(x.Received) > 0 {
		return append(dst, x.Received...)
	}
	w := beginObject(dst)
	w.value("authority", x.Authority)
	w.value("renewal", x.Renewal)
	w.text("signature", x.Signature)
	return w.end()
}
