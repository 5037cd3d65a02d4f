package config

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/secret"
)

const (
	// keyBytes is the size of a Noise or X25519 private key.
	keyBytes = 32
	// bearerBegins is how the relay's own bearer begins (contract §5.1).
	bearerBegins = "clusterRelayToken_"
	// tokenMark stands in every bearer of the platform, and in harmless names.
	tokenMark = "token_"
)

// holdsSecret reports whether a value has the shape of a bearer, a JWT or a
// private key, which only a file of its own may hold (contract §18).
//
// Package secret casts a wider net, which would refuse the digest in a path and
// a node that is named by its machine id.
func holdsSecret(kind Kind, text string) bool {
	switch secret.Find(text) {
	case secret.JWT, secret.PEM:
		return true
	case secret.Bearer:
		return isBearer(text)
	}
	return isKey(kind, text)
}

// isBearer reports whether a text with the mark of a token holds one: the
// relay's, begun as such, or anything that is a secret without the mark. A path
// such as /run/secrets/relay_token_file is none.
func isBearer(text string) bool {
	if len(text) >= len(bearerBegins) && strings.EqualFold(text[:len(bearerBegins)], bearerBegins) {
		return true
	}
	for part := range strings.SplitSeq(text, "/") {
		if secret.Find(withoutMark(part)) != secret.None {
			return true
		}
	}
	return false
}

// withoutMark puts a dash in the place of every token mark.
func withoutMark(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		if end := i + len(tokenMark); end <= len(text) && strings.EqualFold(text[i:end], tokenMark) {
			b.WriteByte('-')
			i = end
			continue
		}
		b.WriteByte(text[i])
		i++
	}
	return b.String()
}

// isKey reports whether the whole text is one encoding of 32 bytes. Node ids and
// method names may be spelled like that by their grammars, but for the padding
// of base64.
func isKey(kind Kind, text string) bool {
	if contract.IsNoiseKey(text) {
		return true
	}
	if kind == KindNodeID || kind == KindMethod || kind == KindMethods {
		return false
	}
	if len(text) == hex.EncodedLen(keyBytes) {
		_, err := hex.DecodeString(text)
		return err == nil
	}
	if secret.Find(text) == secret.None || strings.HasPrefix(text, "/") {
		return false // words, or a path
	}
	for _, encoding := range []*base64.Encoding{base64.URLEncoding, base64.RawURLEncoding, base64.RawStdEncoding} {
		if key, err := encoding.Strict().DecodeString(text); err == nil && len(key) == keyBytes {
			return true
		}
	}
	return false
}

// JudgeArguments refuses a command line that holds a secret, before it is
// parsed: a parser quotes what it does not understand. args is os.Args without
// the program's name. The error is an *InvalidError that names flags or
// positions.
func JudgeArguments(args []string) error {
	kinds := map[string]Kind{}
	for _, s := range Settings() {
		kinds[s.Flag] = s.Kind
	}
	var f findings
	var before string // the flag that the argument may be the value of
	for i, arg := range args {
		name, text, isFlag := splitFlag(arg)
		if !isFlag {
			name, text = before, arg
		}
		before = ""
		if isFlag && text == "" {
			before = name
		}
		kind, known := kinds[strings.TrimLeft(name, "-")]
		if !known {
			kind = kindUnknown
		}
		if !holdsSecret(kind, text) && !(isFlag && holdsSecret(kindUnknown, arg)) {
			continue
		}
		place := Place{Source: FromFlag, Setting: name}
		if !isName(name) {
			place.Setting = "argument " + strconv.Itoa(i+1)
		}
		f.add(place, SecretArguments)
	}
	return f.err()
}

// splitFlag splits --name=value; the name keeps its dashes.
func splitFlag(arg string) (name, text string, isFlag bool) {
	if !strings.HasPrefix(arg, "-") || strings.Trim(arg, "-") == "" {
		return "", "", false
	}
	name, text, _ = strings.Cut(arg, "=")
	return name, text, true
}

// maximumName bounds a name that is repeated from a source. The longest setting
// is well below.
const maximumName = 64

// isName reports whether what stands in the place of a name can be shown: short,
// plain, and no secret itself.
func isName(s string) bool {
	if s == "" || len(s) > maximumName || secret.Find(s) != secret.None {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// shown returns the name if it can be shown, else nothing.
func shown(name string) string {
	if !isName(name) {
		return ""
	}
	return name
}
