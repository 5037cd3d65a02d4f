package listener

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// refusal is why a handshake was not taken.
type refusal uint8

const (
	refusedFull      refusal = iota // 503: as many sockets as there may be
	refusedDraining                 // 503
	refusedVersion                  // 426: another version of the protocol
	refusedHandshake                // 400
	refusals                        // how many there are
)

var refusalNames = [refusals]string{
	refusedFull: "full", refusedDraining: "draining", refusedVersion: "version", refusedHandshake: "handshake",
}

// String returns the refusal's name.
func (r refusal) String() string { return refusalNames[r] }

// isUpgrade reports whether a request asks for a WebSocket (RFC 6455 §4.1).
// HTTP/1.0 has no upgrades (RFC 9110 §7.8).
func isUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && r.ProtoAtLeast(1, 1) &&
		hasToken(r.Header["Connection"], "upgrade") && hasToken(r.Header["Upgrade"], "websocket")
}

// hasToken reports whether a header of comma-separated tokens has one of this
// name, in any case of its letters.
func hasToken(values []string, name string) bool {
	for _, value := range values {
		for token := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.Trim(token, " \t"), name) {
				return true
			}
		}
	}
	return false
}

// judgeHandshake returns what keeps a handshake from being taken (RFC 6455
// §4.2.1). It is judged here, so that nothing of the peer's is quoted back.
func judgeHandshake(r *http.Request) (why refusal, sentence string, ok bool) {
	keys := r.Header["Sec-Websocket-Key"]
	switch {
	case len(r.Header["Sec-Websocket-Version"]) != 1 || r.Header["Sec-Websocket-Version"][0] != "13":
		return refusedVersion, "version 13 of the WebSocket protocol is spoken here", false
	case len(keys) != 1 || !isKey(keys[0]):
		return refusedHandshake, "Sec-WebSocket-Key must be one value of 16 bytes in base64", false
	case hasBody(r):
		return refusedHandshake, "a WebSocket handshake has no body", false
	}
	return 0, "", true
}

func isKey(s string) bool {
	key, err := base64.StdEncoding.DecodeString(s)
	return err == nil && len(key) == 16
}

// upgrade makes a socket of a connection.
func (l *Listener) upgrade(w http.ResponseWriter, r *http.Request) {
	why, sentence, ok := judgeHandshake(r)
	if ok {
		why, sentence, ok = l.reserve()
	}
	if !ok {
		l.refuseUpgrade(w, r, why, sentence)
		return
	}
	held := false
	defer func() {
		if !held {
			l.release(nil)
		}
	}()
	c := newConn(l, r.RemoteAddr)
	sock, err := typedsocket.Accept(w, r, c.socketConfig())
	if err != nil {
		l.metrics.refusedUpgrades.Of(refusedHandshake).Inc()
		return
	}
	held = true
	l.hold(c, sock)
}

func (l *Listener) refuseUpgrade(w http.ResponseWriter, r *http.Request, why refusal, sentence string) {
	l.metrics.refusedUpgrades.Of(why).Inc()
	switch why {
	case refusedVersion:
		w.Header().Set("Sec-WebSocket-Version", "13") // RFC 6455 §4.4
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Connection", "Upgrade")
		say(w, r, http.StatusUpgradeRequired, sentence)
	case refusedHandshake:
		w.Header().Set("Connection", "close")
		say(w, r, http.StatusBadRequest, sentence)
	default:
		busy(w, r, sentence)
	}
}

// reserve takes a place for a socket before anything is upgraded.
func (l *Listener) reserve() (why refusal, sentence string, ok bool) {
	l.mu.Lock()
	s, full := l.state, l.slots >= maxSockets
	if s < draining && !full {
		l.takePlaces(1)
		l.work.Begin()
	}
	l.mu.Unlock()
	switch {
	case s >= draining:
		return refusedDraining, "the relay is leaving", false
	case full:
		l.sayFull(EventSocketsFull, field.Limit(maxSockets))
		return refusedFull, "no socket is free", false
	}
	return 0, "", true
}

// hold makes a reserved place that of a socket.
func (l *Listener) hold(c *Conn, sock *typedsocket.Socket) {
	c.sock, c.timer = sock, time.AfterFunc(registrationWait, c.expire)
	l.mu.Lock()
	l.conns[c] = struct{}{}
	late := l.state >= draining
	l.mu.Unlock()
	l.metrics.accepted.Inc()
	l.metrics.sockets.Of(unbound).Add(1)
	close(c.ready) // from here on it is served, can be bound, and ends
	if late {
		c.restart()
	}
}

// release gives a place back; c is nil when it never became a socket.
func (l *Listener) release(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c != nil {
		l.gone.Add(c.sock.Stats())
	}
	delete(l.conns, c)
	l.takePlaces(-1)
	l.work.End()
}

// takePlaces takes places for sockets, or gives them back. The caller holds mu.
func (l *Listener) takePlaces(n int) {
	was := l.slots >= maxSockets
	l.slots += n
	if is := l.slots >= maxSockets; is != was {
		l.slotsSince = time.Now()
	}
}
