package bench

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/coder/websocket"

	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/buffer"
)

// The process under measurement is this test binary again, in one of these
// roles: so its CPU time, its allocations and nothing else are counted.
const roleVariable = "RELAY_BENCH_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		code := m.Run()
		os.RemoveAll(builtRelay.dir)
		os.Exit(code)
	case proxyRole:
		serveProxy(os.Getenv("RELAY_BENCH_UPSTREAM"))
	case bareRole:
		serveBare(0)
	case reservedRole:
		serveBare(reservedBytes)
	default:
		serve(role, os.Getenv("RELAY_BENCH_UPSTREAM"))
	}
}

// serve runs a role until its standard input ends. It prints its address, and
// after each line on standard input its allocations so far.
func serve(role, upstream string) {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"http/1.1"}})
	if err != nil {
		panic(err)
	}
	handler := map[string]func(string) http.HandlerFunc{
		"forward": forwardRole, "echo": echoRole, "stream-echo": streamEchoRole, "sink": sinkRole,
	}[role](upstream)
	go http.Serve(listener, handler)
	fmt.Println(listener.Addr())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println(m.Mallocs, m.TotalAlloc, buffer.Moved())
	}
}

// forwardRole is the carrier as the relay uses it: every request of a node
// goes on over one upstream socket, in the node's own flow.
func forwardRole(upstream string) http.HandlerFunc {
	up, err := typedsocket.Connect(context.Background(), typedsocket.Dial{URL: "wss://" + upstream + "/",
		TLS: &tls.Config{InsecureSkipVerify: true}, Config: typedsocket.Config{Peer: "cloudly", Limits: typedsocket.Limits{Frame: 16 << 20}}})
	if err != nil {
		panic(err)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		flow := r.URL.Path
		typedsocket.Accept(w, r, typedsocket.Config{Peer: "node", Handler: typedsocket.HandlerFunc(func(r *typedsocket.Request) {
			if err := r.Forward(up, typedsocket.Forward{Method: "report", Flow: flow, AnswerFlow: "cloudly"}); err != nil {
				r.Fail()
			}
		})})
	}
}

// echoRole is the library's own echo: Read, then Write.
func echoRole(string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
		if err != nil {
			return
		}
		c.SetReadLimit(-1)
		for {
			kind, p, err := c.Read(context.Background())
			if err != nil || c.Write(context.Background(), kind, p) != nil {
				return
			}
		}
	}
}

// streamEchoRole is the library's cheapest way to pass a message on: Reader
// to Writer through 32 KiB.
func streamEchoRole(string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
		if err != nil {
			return
		}
		c.SetReadLimit(-1)
		piece := make([]byte, 32<<10)
		for {
			kind, in, err := c.Reader(context.Background())
			if err != nil {
				return
			}
			out, err := c.Writer(context.Background(), kind)
			if err != nil {
				return
			}
			if _, err := io.CopyBuffer(struct{ io.Writer }{out}, in, piece); err != nil || out.Close() != nil {
				return
			}
		}
	}
}

// certificate makes a fresh one; nothing here checks it.
func certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
