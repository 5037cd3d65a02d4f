package contract

// MaximumJWTBytes bounds the token of an identity. OWN: the seeds state none.
// A token with a few dozen claims stays far below it.
const MaximumJWTBytes = 16 << 10

// IdentityCredential is IIdentityCredential: it holds the JWT and nothing else
// (contract §5.2). It stands in a request as the member "identity".
type IdentityCredential struct {
	JWT Secret // token text of RFC 6750 §2.1, at most MaximumJWTBytes
}

func readIdentityCredential(x *IdentityCredential) valueReader { return x.shape() }

func (x *IdentityCredential) shape() valueReader {
	return object(required("jwt", secretText(&x.JWT)))
}

// Validate returns one named reason for each violation.
func (x IdentityCredential) Validate() []string { return reasonsOf(x.judge) }

func (x IdentityCredential) judge(v *verdict) { v.jwt("jwt", x.JWT) }

// AppendJSON appends the credential, which is secret.
func (x IdentityCredential) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.secret("jwt", x.JWT)
	return w.end()
}

// jwt judges the text of a token, never its claims: those are Cloudly's, and
// the relay holds no key to believe them by.
func (v *verdict) jwt(member string, token Secret) {
	v.require(len(token) <= MaximumJWTBytes, member, "has more than 16384 bytes")
	v.require(isTokenText(token), member, "is not a token")
}

// isTokenText reports whether s is a b64token of RFC 6750 §2.1, of which every
// JWT is one.
func isTokenText(s []byte) bool {
	end := len(s)
	for end > 0 && s[end-1] == '=' {
		end--
	}
	for _, c := range s[:end] {
		switch {
		case isAlphanumeric(c), c == '-', c == '.', c == '_', c == '~', c == '+', c == '/':
		default:
			return false
		}
	}
	return end > 0
}
