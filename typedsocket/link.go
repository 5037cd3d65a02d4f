package typedsocket

import (
	"bufio"
	"net"
	"net/http"
	"sync/atomic"
)

// link stands between the WebSocket library and the connection. The library
// does the handshake and reads; every frame leaves through our own writer. So
// after the handshake what the library would write (its echo of a close frame,
// its complaint about a bad one) is discarded here, and the writer sends ours:
// two writers on one connection would cut into each other's frames.
type link struct {
	net.Conn
	silent atomic.Bool   // after the handshake
	ended  atomic.Bool   // a read has met the end of the connection, or an error
	heard  func(n int)   // called for bytes that arrived; set before silent
	reader *bufio.Reader // the library's, on a server; nil on a client
}

func (l *link) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if n > 0 {
		if l.silent.Load() {
			l.heard(n)
		}
		return n, nil // an error beside bytes is met again
	}
	if err != nil {
		l.ended.Store(true)
	}
	return 0, err
}

func (l *link) Write(p []byte) (int, error) {
	if l.silent.Load() {
		return len(p), nil
	}
	return l.Conn.Write(p)
}

// Close, when the library calls it on receipt of a close frame or of a broken
// one, ends its reading alone: the writer still has an answer to send, and
// closes the connection itself.
func (l *link) Close() error {
	if l.silent.Load() {
		return l.Conn.SetReadDeadline(longAgo)
	}
	return l.Conn.Close()
}

// takeover ends the handshake: from now on reads are noted and writes dropped.
func (l *link) takeover(heard func(n int)) {
	l.heard = heard
	l.silent.Store(true)
}

// wipe zeroes what the library's read buffer still holds of the last message,
// which may have been a registration (contract §7.1). It must be called
// between two messages, or after the last, by the goroutine that reads. On a
// client the buffer is the library's own and out of reach, and so is that of
// crypto/tls below it, which keeps its last record until the next arrives.
func (l *link) wipe(last bool) {
	if l.reader == nil || l.reader.Buffered() > 0 && !last {
		return
	}
	l.reader.Reset(l)
	if empty, err := l.reader.Peek(0); err == nil {
		clear(empty[:cap(empty)])
	}
}

// hijacker hands the WebSocket library a link in place of the connection that
// the HTTP server gives up, and remembers it.
type hijacker struct {
	http.ResponseWriter
	link *link
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.link = &link{Conn: conn, reader: rw.Reader}
	// The server's own writer goes past the link; this one does not, and it
	// needs no memory, since nothing it is given leaves.
	return h.link, bufio.NewReadWriter(rw.Reader, bufio.NewWriterSize(h.link, 16)), nil
}
