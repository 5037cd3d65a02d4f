package startup_test

import (
	"bufio"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"serve.zone/relay/integration/rig"
)

// impostor stands where Cloudly should and says what a test tells it to: each
// connection gets the next part of its script. It knows no more of WebSocket than the
// handshake and the head of a frame, so that it can break both.
type impostor struct {
	listener net.Listener
	work     sync.WaitGroup
	turns    chan func(net.Conn)
}

// pose starts an impostor, over TLS with a configuration.
func pose(t *testing.T, config *tls.Config) *impostor {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	i := &impostor{listener: listener, turns: make(chan func(net.Conn))}
	i.work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.SetDeadline(time.Now().Add(rig.DefaultWait))
			if config != nil {
				conn = tls.Server(conn, config)
			}
			if turn, ok := <-i.turns; ok {
				turn(conn)
			}
			conn.Close()
		}
	})
	t.Cleanup(func() {
		listener.Close()
		close(i.turns)
		i.work.Wait()
	})
	return i
}

// take gives the connection that comes next its part.
func (i *impostor) take(t *testing.T, turn func(net.Conn)) {
	t.Helper()
	select {
	case i.turns <- turn:
	case <-time.After(rig.DefaultWait):
		t.Fatal("the relay does not dial")
	}
}

// replies reads one request and answers with a text, and waits for the relay to leave.
func replies(text string) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			io.WriteString(conn, text)
		}
	}
}

// upgrades takes the handshake, with more header lines, and sends frames.
func upgrades(header string, frames ...[]byte) func(net.Conn) {
	return func(conn net.Conn) {
		request, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		sum := sha1.Sum([]byte(request.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455 §4.2.2
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n%s\r\n",
			base64.StdEncoding.EncodeToString(sum[:]), header)
		for _, f := range frames {
			conn.Write(f)
		}
		// When the relay has said something, or has left, there is nothing more to
		// come; of a handshake alone it waits for a body. What it still says is read,
		// so that nothing is reset.
		if len(frames) > 0 {
			conn.Read(make([]byte, 1))
		}
		conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, conn)
	}
}

// The opcodes of RFC 6455 §5.2 that are used here.
const (
	textFrame   = 1
	binaryFrame = 2
	closeFrame  = 8
	pingFrame   = 9
)

// frame is a WebSocket frame as a server sends it.
func frame(opcode byte, payload string) []byte {
	head := []byte{0x80 | opcode}
	if len(payload) < 126 {
		return append(append(head, byte(len(payload))), payload...)
	}
	return append(binary.BigEndian.AppendUint16(append(head, 126), uint16(len(payload))), payload...)
}

// closing is the payload of a close frame.
func closing(code uint16, reason string) string {
	return string(binary.BigEndian.AppendUint16(nil, code)) + reason
}

// R94: whatever stands where Cloudly should, before and instead of any typed request,
// shows up nowhere: status lines, headers, bodies, redirects, handshakes, frames and
// close reasons.
func TestR94_WhateverCloudlyIs(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.NotStarted(), rig.Without("cloudly-ca-file"))
	i := pose(t, nil)
	r.Set("cloudly-url", "http://"+i.listener.Addr().String())
	failures := 0
	for where, turn := range map[string]func(marker string) func(net.Conn){
		"status line": func(m string) func(net.Conn) { return replies("HTTP/1.1 403 " + m + "\r\nContent-Length: 0\r\n\r\n") },
		"headers": func(m string) func(net.Conn) {
			return replies("HTTP/1.1 401 no\r\nWWW-Authenticate: " + m + "\r\nServer: " + m + "\r\n" + m + ": x\r\nContent-Length: 0\r\n\r\n")
		},
		"body": func(m string) func(net.Conn) {
			return replies("HTTP/1.1 500 no\r\nContent-Length: 64\r\n\r\n" + m)
		},
		"redirect": func(m string) func(net.Conn) {
			return replies("HTTP/1.1 302 Found\r\nLocation: http://" + m + ".example/" + m + "\r\nContent-Length: 0\r\n\r\n")
		},
		"no HTTP":      func(m string) func(net.Conn) { return replies(m + " " + m + "\r\n\r\n") },
		"a bad header": func(m string) func(net.Conn) { return replies("HTTP/1.1 200 OK\r\n" + m + "\r\n\r\n") },
		"first words":  func(m string) func(net.Conn) { return func(conn net.Conn) { io.WriteString(conn, m+"\r\n\r\n") } },
		"accept key": func(m string) func(net.Conn) {
			return replies("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + m + "\r\n\r\n")
		},
		"upgrade": func(m string) func(net.Conn) {
			return replies("HTTP/1.1 101 Switching Protocols\r\nUpgrade: " + m + "\r\nConnection: " + m + "\r\n\r\n")
		},
		"subprotocol": func(m string) func(net.Conn) { return upgrades("Sec-WebSocket-Protocol: " + m + "\r\n") },
		"extension": func(m string) func(net.Conn) {
			return upgrades("Sec-WebSocket-Extensions: " + m + "; " + m + "=" + m + "\r\n")
		},
		"close reason": func(m string) func(net.Conn) {
			return upgrades("", frame(closeFrame, closing(4321, m)))
		},
		"close reason of a bad code": func(m string) func(net.Conn) {
			return upgrades("", frame(closeFrame, closing(999, m)))
		},
		"frames, then an end": func(m string) func(net.Conn) {
			return upgrades("", frame(pingFrame, m), frame(textFrame, `{"method":"`+m), frame(textFrame, `{"`+m+`":1}`),
				frame(textFrame, "\xff"+m), frame(binaryFrame, m), frame(textFrame, strings.Repeat(m, 100)), frame(closeFrame, closing(1011, m)))
		},
		"a reserved opcode": func(m string) func(net.Conn) { return upgrades("", frame(0x3, m)) },
		"a masked frame":    func(m string) func(net.Conn) { return upgrades("", []byte("\x81\xc0"+m)) },
	} {
		act := turn(r.Marker("instead of Cloudly, " + where))
		if failures == 0 {
			r.Start()
		} else {
			afresh(r)
		}
		i.take(t, act)
		failures++
		waitFailures(r, failures)
	}
	wantNoPanic(t, r)
}

// R94: nothing is shown of the certificates of what stands where Cloudly should: their
// names are a peer's bytes too.
func TestR94_CertificatesOfAnImpostor(t *testing.T) {
	t.Parallel()
	for where, c := range map[string]struct {
		host    string // as the relay is told it
		trusted bool
		change  func(*rig.Leaf)
	}{
		"another name": {"localhost", true, func(*rig.Leaf) {}},
		"no address":   {"127.0.0.1", true, func(*rig.Leaf) {}},
		"expired": {"localhost", true, func(l *rig.Leaf) {
			l.NotBefore, l.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
		}},
		"a foreign issuer": {"localhost", false, func(*rig.Leaf) {}},
	} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, rig.NotStarted())
			authority := r.Authority
			if !c.trusted {
				var err error
				if authority, err = rig.NewAuthority(); err != nil {
					t.Fatal(err)
				}
			}
			leaf := rig.Leaf{Names: []string{r.Marker("name in a certificate")[:60] + ".example"}}
			c.change(&leaf)
			pair, err := authority.Issue(leaf)
			if err != nil {
				t.Fatal(err)
			}
			certificate, err := pair.TLS()
			if err != nil {
				t.Fatal(err)
			}
			i := pose(t, &tls.Config{Certificates: []tls.Certificate{certificate}})
			_, port, _ := net.SplitHostPort(i.listener.Addr().String())
			r.Set("cloudly-url", "https://"+net.JoinHostPort(c.host, port))
			r.Start()
			i.take(t, replies(""))
			waitFailures(r, 1)
			told := r.WaitEvent("cloudly-attempt-failed", 0)
			if !strings.HasPrefix(told.Text("error"), "tls: certificate not verified: ") {
				t.Errorf("the event says %v", told.Fields)
			}
		})
	}
}
