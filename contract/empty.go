package contract

// Empty is the body of a request or an answer that says nothing: exactly {}
// (contract §8.4).
type Empty struct{}

func (x *Empty) shape() valueReader { return object() }

// Validate returns nil: an empty body has no rules.
func (x Empty) Validate() []string { return nil }

// AppendJSON appends {}.
func (x Empty) AppendJSON(dst []byte) []byte { return append(dst, "{}"...) }

// ReadEmpty reads a body that must be exactly {}. What names the message.
func ReadEmpty(what string, body []byte) (Empty, error) {
	return readAs[Empty](what, body, 0)
}
