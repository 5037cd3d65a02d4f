package listener

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The paths of the registry (contract §15; design §4, O25).
const (
	registryPrefix = "/v2/"
	registryToken  = "/_relay/registry-token"
)

// answer is what a request is answered with.
type answer uint8

const (
	answerDotSegment     answer = iota // 404
	answerRegistry                     // handed on, or 404 without a registry
	answerRegistryMethod               // 405
	answerSpark                        // 404 (contract O33)
	answerSocket                       // 101, or what is wrong with the handshake
	answerPost                         // 405: no typed request over HTTP (R40)
	answerRoot                         // 426
	answerNothing                      // 404
	answers                            // how many there are
)

var answerNames = [answers]string{
	answerDotSegment: "dot-segment", answerRegistry: "registry", answerRegistryMethod: "registry-method",
	answerSpark: "spark", answerSocket: "socket", answerPost: "post", answerRoot: "root", answerNothing: "nothing",
}

// String returns the answer's name.
func (a answer) String() string { return answerNames[a] }

// classify decides on a request in the order of design §4, row §16. It is a
// pure function.
func classify(r *http.Request) answer {
	path := r.URL.Path
	switch {
	case hasDotSegment(r.URL.EscapedPath()):
		return answerDotSegment
	case isRegistryPath(path):
		switch {
		case !isRegistryPath(r.URL.EscapedPath()):
			return answerNothing // "/%762/": two readers might not agree whose it is
		case r.Method == http.MethodGet, r.Method == http.MethodHead && path != registryToken:
			return answerRegistry
		}
		return answerRegistryMethod
	case path == "/spark", strings.HasPrefix(path, "/spark/"):
		return answerSpark
	case isUpgrade(r):
		return answerSocket
	case r.Method == http.MethodPost:
		return answerPost
	case path == "/":
		return answerRoot
	}
	return answerNothing
}

func isRegistryPath(path string) bool {
	return path == registryToken || strings.HasPrefix(path, registryPrefix)
}

// serveHTTP serves every request of every connection.
func (l *Listener) serveHTTP(w http.ResponseWriter, r *http.Request) {
	a := classify(r)
	l.metrics.requests.Of(a).Inc()
	switch a {
	case answerSocket:
		l.upgrade(w, r)
	case answerRegistry:
		l.serveRegistry(w, r)
	case answerRegistryMethod:
		allow := "GET, HEAD"
		if r.URL.Path == registryToken {
			allow = "GET"
		}
		w.Header().Set("Allow", allow)
		say(w, r, http.StatusMethodNotAllowed, "this path is read only")
	case answerPost:
		w.Header().Set("Allow", "GET")
		say(w, r, http.StatusMethodNotAllowed, "typed requests are taken over a WebSocket, not over HTTP")
	case answerRoot:
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Connection", "Upgrade") // RFC 9110 §7.8
		say(w, r, http.StatusUpgradeRequired, "this is a cluster relay; it speaks typed requests over a WebSocket (RFC 6455)")
	default:
		say(w, r, http.StatusNotFound, "there is nothing here")
	}
}

// serveRegistry hands a request on to the registry.
func (l *Listener) serveRegistry(w http.ResponseWriter, r *http.Request) {
	if l.cfg.Registry == nil {
		say(w, r, http.StatusNotFound, "there is no registry here")
		return
	}
	if !l.beginPlain() {
		busy(w, r, "the relay is leaving")
		return
	}
	defer l.work.End()
	if hasBody(r) {
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWait))
	}
	l.cfg.Registry.ServeHTTP(w, r)
}

// beginPlain notes a plain request, if there is still time for one.
func (l *Listener) beginPlain() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= draining {
		return false
	}
	l.work.Begin()
	return true
}

func hasBody(r *http.Request) bool {
	return r.ContentLength != 0 || len(r.TransferEncoding) > 0
}

// say answers with a sentence of ours. The request's body is not read: the answer
// leaves before net/http looks at it, and the connection ends. All of that has a
// deadline.
func say(w http.ResponseWriter, r *http.Request, status int, sentence string) {
	h := w.Header()
	if hasBody(r) {
		h["Connection"] = append([]string{"close"}, h["Connection"]...)
	}
	now, c := time.Now(), http.NewResponseController(w)
	c.SetReadDeadline(now.Add(plainWait))
	c.SetWriteDeadline(now.Add(plainWait))
	sentence += "\n"
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(sentence)))
	w.WriteHeader(status)
	io.WriteString(w, sentence)
}

// busy refuses for the time being.
func busy(w http.ResponseWriter, r *http.Request, sentence string) {
	w.Header().Set("Retry-After", retryAfter)
	w.Header().Set("Connection", "close")
	say(w, r, http.StatusServiceUnavailable, sentence)
}
