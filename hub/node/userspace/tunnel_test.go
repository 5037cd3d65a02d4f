package userspace_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/nodetest"
	"serve.zone/relay/hub/node/userspace"
	"serve.zone/relay/hub/tunnel"
)

// testLimit bounds every wait on the loopback interface. It is no expectation: a test that
// reaches it has failed.
const testLimit = 30 * time.Second

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	return ctx
}

func newKey(t *testing.T) node.PrivateKey {
	t.Helper()
	key, err := node.GeneratePrivateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// startHub starts a hub on the loopback interface.
func startHub(t *testing.T, key tunnel.PrivateKey) (*nodetest.Hub, netip.AddrPort) {
	t.Helper()
	socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hub, err := nodetest.Listen(socket, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	return hub, socket.LocalAddr().(*net.UDPAddr).AddrPort()
}

// join connects a stack to the hub and waits until its tunnel is up.
func join(t *testing.T, hub *nodetest.Hub, at netip.AddrPort, hubKey node.PublicKey, control, workload string) *userspace.Stack {
	t.Helper()
	stack, err := userspace.New(netip.MustParseAddr(workload))
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	hub.Admit(key.Public(), nodetest.Member{
		Control: netip.MustParsePrefix(control), Workload: netip.MustParseAddr(workload),
	})
	up := make(chan struct{})
	client, err := node.New(node.Config{
		Credential: node.Credential{Hub: at, HubKey: hubKey, AuthorityID: nodetest.AuthorityID, Key: key},
		Device:     stack,
		OnState: func(s node.Status) {
			if s.State == node.StateUp {
				close(up)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- client.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s: %+v", control, client.Status())
		}
	})
	select {
	case <-up:
	case <-bounded(t).Done():
		t.Fatalf("no tunnel: %+v", client.Status())
	}
	// Until the hub has read the confirmation it drops packets, which UDP does not repeat.
	select {
	case <-hub.Sessions:
	case <-bounded(t).Done():
		t.Fatal("the hub has no session")
	}
	return stack
}

// pair connects two stacks to one hub.
func pair(t *testing.T) (a, b *userspace.Stack) {
	t.Helper()
	key := newKey(t)
	hub, at := startHub(t, key)
	a = join(t, hub, at, key.Public(), "10.200.0.7/24", "10.1.0.1")
	b = join(t, hub, at, key.Public(), "10.200.0.8/24", "10.2.0.1")
	return a, b
}

// B200: what counts is data, not handshakes. A TCP connection between two nodes carries
// some MiB in both directions, whole, through the hub and in split packets.
func TestB200_TransferBetweenTwoNodes(t *testing.T) {
	a, b := pair(t)
	listener, err := b.Listen("tcp", "0.0.0.0:80")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	const size = 3 << 20
	data := make([]byte, size)
	rand.Read(data)
	echoed := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			echoed <- err
			return
		}
		defer conn.Close()
		if from := conn.RemoteAddr().(*net.TCPAddr).IP.String(); from != "10.1.0.1" {
			t.Errorf("the connection is from %s", from)
		}
		_, err = io.Copy(conn, conn)
		echoed <- err
	}()
	conn, err := a.DialContext(bounded(t), "tcp", "10.2.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(testLimit))
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, bytes.NewReader(data))
		conn.(interface{ CloseWrite() error }).CloseWrite()
		sent <- err
	}()
	hash := sha256.New()
	n, err := io.Copy(hash, conn)
	if err != nil || n != size {
		t.Fatalf("%d bytes came back: %v", n, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := <-echoed; err != nil {
		t.Error(err)
	}
	if want := sha256.Sum256(data); !bytes.Equal(hash.Sum(nil), want[:]) {
		t.Error("other bytes came back")
	}
}

func TestUDPBetweenTwoNodes(t *testing.T) {
	a, b := pair(t)
	socket, err := b.ListenPacket("udp", "10.2.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	conn, err := a.DialContext(bounded(t), "udp", "10.2.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	want := bytes.Repeat([]byte("x"), 1300)
	buf := make([]byte, 2000)
	conn.SetDeadline(time.Now().Add(testLimit))
	socket.SetDeadline(time.Now().Add(testLimit))
	if _, err := conn.Write(want); err != nil {
		t.Fatal(err)
	}
	n, from, err := socket.ReadFrom(buf)
	if err != nil || !bytes.Equal(buf[:n], want) {
		t.Fatalf("%d bytes: %v", n, err)
	}
	if _, err := socket.WriteTo(buf[:n], from); err != nil {
		t.Fatal(err)
	}
	if n, err = conn.Read(buf); err != nil || !bytes.Equal(buf[:n], want) {
		t.Fatalf("%d bytes came back: %v", n, err)
	}
}
