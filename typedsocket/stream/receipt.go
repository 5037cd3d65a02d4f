package stream

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Receipt is the receiver's word that it has the bytes and stored them.
type Receipt struct {
	// Raw is the receipt as the receiver wrote it, a JSON object.
	Raw []byte
	// Integrity is what was moved, by this side's own count and hash. The
	// receipt does not contradict it.
	Integrity
}

// appendReceipt appends the receipt that we give: what Accept sends.
func appendReceipt(dst []byte, streamID string, moved Integrity) []byte {
	dst = append(dst, `{"streamId":`...)
	dst = appendString(dst, streamID)
	dst = append(dst, `,"algorithm":"sha256","byteLength":`...)
	dst = strconv.AppendInt(dst, moved.ByteLength, 10)
	dst = append(dst, `,"digest":"`+moved.Digest+`"}`...)
	return dst
}

// readReceipt checks a peer's receipt against what was sent. Only byteLength
// and digest are read, and only when present: their absence is no fault
// (typedsocket.md §4.2). The JSON must be one strict object. The returned
// receipt keeps a copy of raw. Its error is a ReceiptError.
func readReceipt(raw []byte, sent Integrity) (Receipt, error) {
	if len(raw) > MaxReceipt {
		return Receipt{}, &ReceiptError{Rule: "longer than " + strconv.Itoa(MaxReceipt) + " bytes"}
	}
	wrong := ""
	err := eachMember(raw, func(name string, value jsontext.Value) *DescriptorError {
		switch name {
		case "byteLength":
			if integerOf(value) != sent.ByteLength {
				wrong = name
			}
		case "digest":
			if text, ok := stringOf(value); !ok || text != sent.Digest {
				wrong = name
			}
		}
		return nil
	})
	if err != nil {
		return Receipt{}, &ReceiptError{Rule: "not one strict JSON object"}
	}
	if wrong != "" {
		return Receipt{}, &ReceiptError{Rule: wrong + " is not that of the bytes sent"}
	}
	return Receipt{Raw: append([]byte(nil), raw...), Integrity: sent}, nil
}
