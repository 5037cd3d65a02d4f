package rig

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/coder/websocket"
)

// maxFrame bounds what a raw socket reads: more than any frame of the contract.
const maxFrame = 64 << 20

// Socket is a WebSocket of a test's own, for what no right peer would send.
type Socket struct {
	r    *Rig
	conn *websocket.Conn
}

// DialTLS opens a TLS connection to the node listener on which nothing was said.
// The test closes it.
func (r *Rig) DialTLS() *tls.Conn {
	r.t.Helper()
	conn, err := r.dialListener(r.Soon(), "", "")
	if err != nil {
		r.t.Fatal(err)
	}
	secured := tls.Client(conn, r.ClientTLS())
	if err := secured.HandshakeContext(r.Soon()); err != nil {
		conn.Close()
		r.t.Fatalf("dial the node listener: %v", err)
	}
	r.t.Cleanup(func() { secured.NetConn().Close() })
	return secured
}

// DialNode opens a WebSocket to the node listener, unbound as yet. The rig closes
// it.
func (r *Rig) DialNode() *Socket {
	r.t.Helper()
	conn, _, err := websocket.Dial(r.Soon(), r.NodeURL(), &websocket.DialOptions{HTTPClient: &http.Client{
		Transport: &http.Transport{DialContext: r.dialListener, TLSClientConfig: r.ClientTLS()},
	}})
	if err != nil {
		r.t.Fatalf("dial the node listener: %v", err)
	}
	conn.SetReadLimit(maxFrame)
	s := &Socket{r, conn}
	r.sockets = append(r.sockets, s)
	return s
}

// Send sends a text message, whatever it holds.
func (s *Socket) Send(text string) {
	s.r.t.Helper()
	s.write(websocket.MessageText, []byte(text))
}

// SendBinary sends a binary message.
func (s *Socket) SendBinary(content []byte) {
	s.r.t.Helper()
	s.write(websocket.MessageBinary, content)
}

func (s *Socket) write(kind websocket.MessageType, content []byte) {
	s.r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), DefaultWait)
	defer cancel()
	if err := s.conn.Write(ctx, kind, content); err != nil {
		s.r.t.Fatalf("send on a raw socket: %v", err)
	}
}

// Request sends a request, its body as it is spelled, and returns its correlation
// id.
func (s *Socket) Request(method, body string) (id string) {
	s.r.t.Helper()
	id = newID()
	s.Send(RequestText(method, id, body))
	return id
}

// newID returns a correlation id as TypedRequest makes them.
func newID() string {
	b := make([]byte, 12)
	rand.Read(b)
	return "uni_" + hex.EncodeToString(b)
}

// RequestText spells a request as TypedRequest 8 does, under an id of which its
// requestInstanceId is made as well.
func RequestText(method, id, body string) string {
	return fmt.Sprintf(`{"method":%s,"request":%s,"response":null,"requestInstanceId":%s,"correlation":{"id":%s,"phase":"request"}}`,
		strconv.Quote(method), body, strconv.Quote(id+"-i"), strconv.Quote(id))
}

// Receive returns the next message. The test fails when none comes or the socket
// ends.
func (s *Socket) Receive() (binary bool, content []byte) {
	s.r.t.Helper()
	kind, content, err := s.read()
	if err != nil {
		s.r.t.Fatalf("read a raw socket: %v", err)
	}
	return kind == websocket.MessageBinary, content
}

// WaitClose reads until the socket ends and returns its close code, -1 when there
// was none. Messages before it are passed over. The test fails when the socket
// does not end.
func (s *Socket) WaitClose() (code int, reason string) {
	s.r.t.Helper()
	for {
		_, _, err := s.read()
		if err == nil {
			continue
		}
		if errors.Is(err, context.DeadlineExceeded) {
			s.r.t.Fatalf("a raw socket has not ended within %s", DefaultWait)
		}
		var closed websocket.CloseError
		if errors.As(err, &closed) {
			return int(closed.Code), closed.Reason
		}
		return -1, ""
	}
}

// Close ends the socket with a code and waits some seconds for the answer.
func (s *Socket) Close(code int, reason string) {
	s.conn.Close(websocket.StatusCode(code), reason)
}

// Cut breaks the socket without a word.
func (s *Socket) Cut() { s.conn.CloseNow() }

func (s *Socket) read() (websocket.MessageType, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), DefaultWait)
	defer cancel()
	return s.conn.Read(ctx)
}
