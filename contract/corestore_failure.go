package contract

// CorestoreFailure is the body with which Corestore refuses a call. Its form is
// stated for one refusal (contract §12.6) and read wherever one comes: whatever
// it says is for a person.
type CorestoreFailure struct {
	Code string // empty when absent
	Text string // of the member error
}

// ReadCorestoreFailure reads the body of a refused call. It reports false for
// anything but an object with ok false and a text error; members beyond those
// are ignored.
func ReadCorestoreFailure(body []byte) (CorestoreFailure, bool) {
	x, err := readAs[corestoreFailureBody]("corestore failure", body, 0)
	return x.CorestoreFailure, err == nil
}

// corestoreFailureBody is a failure as it came.
type corestoreFailureBody struct {
	ok bool
	CorestoreFailure
}

func (x *corestoreFailureBody) shape() valueReader {
	return openObject(
		required("ok", boolean(&x.ok)),
		required("error", text(&x.Text)),
		optional("code", text(&x.Code)),
	)
}

func (x corestoreFailureBody) Validate() []string {
	return reasonsOf(func(v *verdict) { v.require(!x.ok, "ok", "is not false") })
}

// AppendJSON appends the body.
func (x CorestoreFailure) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.boolean("ok", false)
	w.text("error", x.Text)
	if x.Code != "" {
		w.text("code", x.Code)
	}
	return w.end()
}
