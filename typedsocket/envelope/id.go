package envelope

import (
	"crypto/rand"
	"encoding/hex"
)

// NewID appends a fresh id in the form TypedRequest mints them: "uni_" and 24
// lowercase hexadecimal digits, here of 96 bits that nobody can guess.
func NewID(dst []byte) []byte {
	var random [12]byte
	rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	dst = append(dst, "uni_"...)
	return hex.AppendEncode(dst, random[:])
}
