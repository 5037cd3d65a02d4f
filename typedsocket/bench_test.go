package typedsocket

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"testing"
)

// BenchmarkForwardAllocations forwards a request of 500 bytes and its answer
// between two peers that allocate nothing, so that what is counted is the
// carrier's own. Ratios against another implementation are in integration/bench.
func BenchmarkForwardAllocations(b *testing.B) {
	cloudConn, up := bare(b, Config{Peer: "cloudly"})
	nodeConn, down := bare(b, Config{Peer: "node", Handler: HandlerFunc(func(r *Request) {
		if err := r.Forward(up, Forward{Method: "report", Flow: "node-a", AnswerFlow: "cloudly"}); err != nil {
			b.Error(err)
		}
	})})
	go answerAll(cloudConn)
	request := masked([]byte(`{"method":"report","request":{"x":"` + string(bytes.Repeat([]byte("x"), 330)) +
		`"},"response":null,"requestInstanceId":"uni_00112233445566778899aabb","correlation":{"id":"uni_a0a1a2a3a4a5a6a7a8a9aaab","phase":"request"}}`))
	answer := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nodeConn.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := readFrame(nodeConn, answer); err != nil {
			b.Fatal(err)
		}
	}
	nodeConn.Close()
	cloudConn.Close()
	<-up.Done()
	<-down.Done()
}

// bare serves one socket over TCP and returns the bare connection to it.
func bare(b *testing.B, cfg Config) (net.Conn, *Socket) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	accepted := make(chan *Socket, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s, err := Accept(w, r, cfg); err == nil {
			accepted <- s
		}
	})}
	go server.Serve(listener)
	b.Cleanup(func() { server.Close() })
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	io.WriteString(conn, upgradeRequest)
	one, head := make([]byte, 1), []byte(nil)
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		if _, err := conn.Read(one); err != nil {
			b.Fatal(err)
		}
		head = append(head, one...)
	}
	return conn, <-accepted
}

// masked is a text message of a client, masked with zeros.
func masked(text []byte) []byte {
	return append(appendHeader(nil, finBit|opText, len(text), new([4]byte)), text...)
}

// readFrame reads one short unmasked message into p.
func readFrame(conn net.Conn, p []byte) ([]byte, error) {
	if _, err := io.ReadFull(conn, p[:4]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(p[2:]))
	_, err := io.ReadFull(conn, p[:n])
	return p[:n], err
}

// answerAll answers each forwarded request with a canned answer into which it
// copies the two ids.
func answerAll(conn net.Conn) {
	const instance, id = `"requestInstanceId":"`, `"correlation":{"id":"`
	answer := masked([]byte(`{"method":"report","request":null,"response":{"x":"` + string(bytes.Repeat([]byte("y"), 330)) +
		`"},"requestInstanceId":"uni_00112233445566778899aabb","correlation":{"id":"uni_a0a1a2a3a4a5a6a7a8a9aaab","phase":"response"}}`))
	p := make([]byte, 4096)
	for {
		request, err := readFrame(conn, p)
		if err != nil {
			return
		}
		for _, name := range []string{instance, id} {
			from := bytes.Index(request, []byte(name)) + len(name)
			to := bytes.Index(answer, []byte(name)) + len(name)
			copy(answer[to:to+28], request[from:from+28])
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}
