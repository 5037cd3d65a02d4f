package duty

import (
	"crypto/tls"
	"log/slog"
	"strings"

	"serve.zone/relay/duty/field"
)

// foreignClass is what a line of a foreign logger was recognised as. Its name
// is the message that is written in the line's place.
type foreignClass uint8

const (
	foreignLine foreignClass = iota // not recognised
	tlsHandshakeError
	httpPanic
	httpAcceptError
	httpHandlerMisuse
	httpLine
	http2Line
	httpUnsolicited
	httpProxyError
	udpBufferSmall
	foreignClasses // how many there are
)

var foreignNames = [foreignClasses]string{
	foreignLine:       "foreign-line",
	tlsHandshakeError: "tls-handshake-error",
	httpPanic:         "http-panic",
	httpAcceptError:   "http-accept-error",
	httpHandlerMisuse: "http-handler-misuse",
	httpLine:          "http-line",
	http2Line:         "http2-line",
	httpUnsolicited:   "http-unsolicited-response",
	httpProxyError:    "http-proxy-error",
	udpBufferSmall:    "udp-buffer-small",
}

// String returns the class's name.
func (c foreignClass) String() string { return foreignNames[c] }

// foreignLevels are the levels of lines that come without one. A failed
// handshake is what any scanner causes; a panic is ours to mend.
var foreignLevels = [foreignClasses]slog.Level{
	httpPanic:         slog.LevelError,
	httpAcceptError:   slog.LevelWarn,
	httpHandlerMisuse: slog.LevelWarn,
	udpBufferSmall:    slog.LevelWarn,
}

// foreignPrefixes are the beginnings of the lines that the standard library
// and the libraries of design §10 write, the longer before the shorter.
// addressed lines go on with the peer's address and a colon.
var foreignPrefixes = [...]struct {
	prefix    string
	class     foreignClass
	addressed bool
}{
	{"http: TLS handshake error from ", tlsHandshakeError, true},
	{"http: panic serving ", httpPanic, true},
	{"http2: panic serving ", httpPanic, true},
	{"http: Accept error: ", httpAcceptError, false},
	{"http: proxy error: ", httpProxyError, false},
	{"httputil: ReverseProxy", httpProxyError, false},
	{"http: superfluous response.WriteHeader", httpHandlerMisuse, false},
	{"http: response.Write", httpHandlerMisuse, false},
	{"http: WriteHeader called", httpHandlerMisuse, false},
	{"http: invalid Content-Length", httpHandlerMisuse, false},
	{"http: ", httpLine, false},
	{"net/http: ", httpLine, false},
	{"http2: server connection error from ", http2Line, true},
	{"http2: ", http2Line, false},
	{"protocol error: received ", http2Line, false},
	{"Unsolicited response received on idle HTTP channel", httpUnsolicited, false},
	{"failed to sufficiently increase receive buffer size", udpBufferSmall, false},
	{"failed to sufficiently increase send buffer size", udpBufferSmall, false},
}

// verdict is all that is kept of a foreign line.
type verdict struct {
	class   foreignClass
	address field.Field // the peer's, if the line has one that parses
	reason  field.Field // why, if the line ends in a known way
}

// classify recognises a foreign line. Nothing of its text is kept but an
// address that parses.
func classify(text string) verdict {
	for _, known := range foreignPrefixes {
		rest, ok := strings.CutPrefix(text, known.prefix)
		if !ok {
			continue
		}
		v := verdict{class: known.class}
		if known.addressed {
			address, why, _ := strings.Cut(rest, ": ")
			v.address, _ = field.AddressText(address)
			rest = why
		}
		if v.class == tlsHandshakeError || v.class == httpAcceptError {
			v.reason = foreignReason(rest)
		}
		return v
	}
	return verdict{class: foreignLine}
}

// foreignReason recognises how a line ends.
func foreignReason(why string) field.Field {
	if alert, ok := strings.CutPrefix(why, "remote error: "); ok {
		return field.Reason(alertReasons[alert])
	}
	for _, known := range foreignReasons {
		if strings.Contains(why, known.text) {
			return field.Reason(known.reason)
		}
	}
	return field.Field{}
}

var foreignReasons = [...]struct{ text, reason string }{
	{"tls: first record does not look like a TLS handshake", "not-tls"},
	{"tls: client offered only unsupported versions", "unsupported-versions"},
	{"tls: no cipher suite supported by both client and server", "no-common-cipher"},
	{"tls: client requested unsupported application protocols", "no-common-protocol"},
	{"tls: no certificates configured", "no-certificate"},
	{"client sent an HTTP request to an HTTPS server", "http-to-https"},
	{"connection reset by peer", "connection-reset"},
	{"broken pipe", "broken-pipe"},
	{"i/o timeout", "timeout"},
	{"too many open files", "too-many-open-files"},
	{"cannot allocate memory", "no-memory"},
	{"EOF", "eof"},
}

// alertReasons names the alerts of RFC 8446 §6, by the words that crypto/tls
// has for them.
var alertReasons = func() map[string]string {
	reasons := map[string]string{}
	for code := range 256 {
		words := tls.AlertError(code).Error()
		if name, ok := strings.CutPrefix(words, "tls: "); ok && !strings.HasPrefix(name, "alert(") {
			reasons[words] = "alert-" + strings.ToLower(strings.ReplaceAll(name, " ", "-"))
		}
	}
	return reasons
}()
