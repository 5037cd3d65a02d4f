package contract

import "bytes"

const controlTokenPlaintextName = "corestore control token plaintext"

// longestEscape is what one byte of a JSON string grows to at most, as \u00xx.
const longestEscape = 6

// controlTokenPlaintext is what is sealed for the relay: exactly the JSON bytes
// of { token } (contract §13). OWN: the seeds say that the bytes are exact and
// name the member only where an administrator sets the token.
type controlTokenPlaintext struct{ token Secret }

func (x *controlTokenPlaintext) shape() valueReader {
	return object(required("token", secretText(&x.token)))
}

func (x controlTokenPlaintext) Validate() []string {
	return reasonsOf(func(v *verdict) {
		v.require(IsControlToken(x.token), "token", "is not 32 to 4096 bytes of utf-8 without whitespace")
	})
}

// ReadControlTokenPlaintext reads the opened material and returns the token,
// which its holder wipes. The bytes must be exactly those that
// AppendControlTokenPlaintext writes. What was read of a refused plaintext is
// wiped here; the plaintext itself is the caller's to wipe.
func ReadControlTokenPlaintext(plaintext []byte) (Secret, error) {
	var x controlTokenPlaintext
	reasons := readShape(plaintext, secretBearing, x.shape())
	if len(reasons) == 0 {
		reasons = x.Validate()
	}
	if len(reasons) == 0 && !isExactPlaintext(plaintext, x.token) {
		reasons = []string{"body: is not the exact plaintext of its token"}
	}
	if len(reasons) > 0 {
		x.token.Zero()
		return nil, &InvalidError{What: controlTokenPlaintextName, Reasons: reasons}
	}
	return x.token, nil
}

func isExactPlaintext(plaintext []byte, token Secret) bool {
	// Large enough never to grow, so that no copy of the token is left behind.
	exact := AppendControlTokenPlaintext(make([]byte, 0, longestEscape*len(token)+16), token)
	defer clear(exact)
	return bytes.Equal(plaintext, exact)
}

// AppendControlTokenPlaintext appends the exact plaintext of a token.
func AppendControlTokenPlaintext(dst []byte, token Secret) []byte {
	w := beginObject(dst)
	w.secret("token", token)
	return w.end()
}
