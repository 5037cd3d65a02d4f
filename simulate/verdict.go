package simulate

import (
	"errors"

	"serve.zone/relay/contract"
)

// verdict is what a judge decided about a request: an answer, or a refusal when
// text is not empty.
type verdict struct {
	answer []byte
	text   string
	data   []byte // of a refusal; nil is written as {}
	// still, when set, gives the verdict that leaves in place of this one when it
	// leaves late: things may have changed while it was judged.
	still func() verdict
}

func accepted(answer appender) verdict { return verdict{answer: answer.AppendJSON(nil)} }

// refused refuses with the error's text, which is value-free, and with the data
// of a named refusal.
func refused(err error) verdict {
	var named *contract.Refusal
	if errors.As(err, &named) {
		return verdict{text: named.Text(), data: named.AppendData(nil)}
	}
	return verdict{text: err.Error()}
}

func refuseNamed(name contract.RefusalName, reason string) verdict {
	return refused(&contract.Refusal{Name: name, Reason: reason})
}

// refuseText refuses without a name: nothing of the vocabulary fits, and the
// client learns no more than that it failed.
func refuseText(text string) verdict { return verdict{text: text} }

// noSuchMethod is what a TypedRequest router without a handler answers
// (typedsocket.md §1.2).
func noSuchMethod() verdict {
	return verdict{text: "There is no available method for this call on the server side"}
}
