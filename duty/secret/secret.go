package secret

import "strings"

// Shape says what kind of secret a text looks like.
type Shape uint8

// The shapes, from the certain to the likely.
const (
	None   Shape = iota // looks like no secret
	Bearer              // a named token, such as the relay's bearer (contract §5.1)
	JWT                 // header, payload and signature in base64url
	PEM                 // an armoured block; certificates are caught with the keys
	Hex                 // hexRun hexadecimal digits or more
	Mixed               // mixedRun characters of base64 or more that no word has
)

var names = [...]string{None: "none", Bearer: "bearer", JWT: "jwt", PEM: "pem", Hex: "hex-run", Mixed: "base64-run"}

// String returns the shape's name.
func (s Shape) String() string { return names[s] }

const (
	// hexRun is 128 bits in hexadecimal, the shortest secret in use around
	// the relay (a Corestore control token has at least 32 bytes). A UUID with
	// its dashes stays below it.
	hexRun = 32

	// mixedRun is what 240 bits take in base64. A key of 32 bytes takes 43
	// characters; names of nodes and methods end well below.
	mixedRun = 40

	// jwtPart is the least length of a JWT's header: eyJ and one member. The
	// shortest real one, {"alg":"none"}, has 20 characters.
	jwtPart = 8

	// bearerMark stands in every token that the platform names: the relay's
	// is clusterRelayToken_<id>_<64 hex>.
	bearerMark = "token_"
)

// Find returns the most certain shape that occurs anywhere in text.
func Find(text string) Shape {
	switch {
	case strings.Contains(text, "-----BEGIN"):
		return PEM
	case hasFold(text, bearerMark), hasAuthorization(text):
		return Bearer
	case hasJWT(text):
		return JWT
	}
	return longestRun(text)
}

// hasFold reports whether text contains mark, which is lower case, in any
// case of its letters.
func hasFold(text, mark string) bool {
	for i := 0; i+len(mark) <= len(text); i++ {
		if strings.EqualFold(text[i:i+len(mark)], mark) {
			return true
		}
	}
	return false
}

// hasAuthorization reports whether text contains the credentials of an
// Authorization header: a scheme, a space and at least one token character.
func hasAuthorization(text string) bool {
	for _, scheme := range [...]string{"bearer ", "basic "} {
		for i := 0; i+len(scheme) < len(text); i++ {
			if strings.EqualFold(text[i:i+len(scheme)], scheme) && isToken(text[i+len(scheme)]) {
				return true
			}
		}
	}
	return false
}

// hasJWT reports whether text contains three base64url parts of which the
// first is a JSON object's beginning.
func hasJWT(text string) bool {
	for rest := text; ; {
		at := strings.Index(rest, "eyJ")
		if at < 0 {
			return false
		}
		rest = rest[at:]
		header := tokenRun(rest)
		if header >= jwtPart && header < len(rest) && rest[header] == '.' {
			payload := tokenRun(rest[header+1:])
			end := header + 1 + payload
			// An unsigned one has an empty last part but keeps its dot.
			if payload > 0 && end < len(rest) && rest[end] == '.' {
				return true
			}
		}
		rest = rest[len("eyJ"):]
	}
}

// tokenRun returns how many base64url characters text begins with.
func tokenRun(text string) int {
	n := 0
	for n < len(text) && isToken(text[n]) {
		n++
	}
	return n
}

// longestRun looks for a run that is long enough to be key material: of
// hexadecimal digits; of letters and digits, with both in it; of base64's
// characters, mixed as no words are.
func longestRun(text string) Shape {
	var hex, alnum, base64 run
	found := None
	for i := range len(text) {
		c := text[i]
		hex.step(c, isHex(c))
		alnum.step(c, isAlnum(c))
		base64.step(c, isToken(c) || c == '+' || c == '/')
		if hex.n >= hexRun {
			return Hex
		}
		if alnum.n >= mixedRun && alnum.digits > 0 && alnum.upper+alnum.lower > 0 {
			found = Mixed
		}
		if base64.n >= mixedRun && base64.mixed() {
			found = Mixed
		}
	}
	return found
}

// run is the run of characters of one class that ends at the current one.
type run struct{ n, upper, lower, digits int }

// mixed reports whether the run has both cases and either a digit or as many
// capitals as words joined in camel case never have. The second half is for
// the one key in 1,300 that has no digit.
func (r *run) mixed() bool {
	return r.upper > 0 && r.lower > 0 && (r.digits > 0 || r.upper*4 >= r.n)
}

// step extends the run by c, or ends it when c is not of its class.
func (r *run) step(c byte, in bool) {
	if !in {
		*r = run{}
		return
	}
	r.n++
	switch {
	case c >= '0' && c <= '9':
		r.digits++
	case c >= 'a' && c <= 'z':
		r.lower++
	case c >= 'A' && c <= 'Z':
		r.upper++
	}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isToken(c byte) bool { return isAlnum(c) || c == '-' || c == '_' }
