package contract

// Reference names one version of a record: exactly { id, generation, digest }
// (contract, "reference").
type Reference struct {
	ID         string // canonical identifier
	Generation int64  // counter
	Digest     string // digest of the record
}

func readReference(x *Reference) valueReader { return x.shape() }

func (x *Reference) shape() valueReader {
	return object(
		required("id", text(&x.ID)),
		required("generation", integer(&x.Generation)),
		required("digest", text(&x.Digest)),
	)
}

// Validate returns one named reason for each violation.
func (x Reference) Validate() []string { return reasonsOf(x.judge) }

func (x Reference) judge(v *verdict) {
	v.identifier("id", x.ID)
	v.counter("generation", x.Generation)
	v.digest("digest", x.Digest)
}

// AppendJSON appends the reference in contract order.
func (x Reference) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("id", x.ID)
	w.integer("generation", x.Generation)
	w.text("digest", x.Digest)
	return w.end()
}
