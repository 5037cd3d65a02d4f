package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/nodetest"
)

// nodeWait bounds every wait of these tests, which run over the loopback interface. It
// is no expectation: a test that reaches it has failed.
const nodeWait = 30 * time.Second

func TestNodeSettings(t *testing.T) {
	v, err := parse([]string{
		"node", "--credential-file=c", "--userspace", "--address=10.0.0.1", "--address=10.0.1.1/24", "--log-level=debug", "--log-format=text",
		"--forward=8080=10.2.0.1:80", "--forward=192.0.2.1:8081=10.2.0.2:81", "--forward=[::1]:0=10.2.0.3:82",
		"--publish=80=localhost:8080", "--publish=81=[::1]:8081",
	}, verbs())
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.(*nodeVerb).settings()
	if err != nil {
		t.Fatal(err)
	}
	addr, prefix := netip.MustParseAddrPort, netip.MustParsePrefix
	want := nodeSettings{
		credentialFile: "c", userspace: true, interfaceName: "relay0",
		addresses: []netip.Prefix{prefix("10.0.0.1/32"), prefix("10.0.1.1/24")},
		forwards: []forwardRule{
			{addr("127.0.0.1:8080"), addr("10.2.0.1:80")}, {addr("192.0.2.1:8081"), addr("10.2.0.2:81")}, {addr("[::1]:0"), addr("10.2.0.3:82")},
		},
		publishes: []publishRule{{80, "localhost:8080"}, {81, "[::1]:8081"}},
		log:       got.log,
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || got.log.Level != -4 || got.log.Format != 1 {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Without --userspace there is an interface, which may be named, and which needs no
// address of its own.
func TestNodeSettings_Interface(t *testing.T) {
	v, err := parse([]string{"node", "--credential-file=c", "--userspace=false", "--interface=vpn%d", "--route=10.0.0.0/8", "--route=10.2.0.1"}, verbs())
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.(*nodeVerb).settings()
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("10.2.0.1/32")}
	if err != nil || got.userspace || got.interfaceName != "vpn%d" || !slices.Equal(got.routes, want) || got.addresses != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNodeSettings_Refused(t *testing.T) {
	many := func(flag, value string, n int) []string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("--%s="+value, flag, i))
		}
		return all
	}
	noNode := "--address, number 1: is not the address of one node"
	noTarget, noListen := "--forward, number 1: has no address of IPv4 and port behind '='", "--forward, number 1: has no port, or address and port, before '='"
	tooMany := "--publish: with --forward there is more to listen on than 256: one for each --forward, and each --publish on every --address"
	noPort, noService := "--publish, number 1: has no port before '='", "--publish, number 1: has no host and port behind '='"
	tests := []struct {
		args []string
		want string // empty for none
	}{
		{nil, ""},
		{[]string{"--address=0.0.0.0"}, noNode},
		{[]string{"--address=127.0.0.1"}, noNode},
		{[]string{"--address=224.0.0.1/32"}, noNode},
		{many("address", "10.1.%d.1", 200), ""},
		{many("address", "10.1.0.1/%d", 1025), "--address: is given more than 1024 times"},
		{[]string{"--forward=80"}, noTarget},
		{[]string{"--forward=80="}, noTarget},
		{[]string{"--forward=80=10.0.0.1:0"}, noTarget},
		{[]string{"--forward=80=0.0.0.0:80"}, noTarget},
		{[]string{"--forward=80=[::1]:80"}, noTarget},
		{[]string{"--forward=80=localhost:80"}, noTarget},
		{[]string{"--forward==10.0.0.1:80"}, noListen},
		{[]string{"--forward=x=10.0.0.1:80"}, noListen},
		{[]string{"--forward=65536=10.0.0.1:80"}, noListen},
		{[]string{"--forward=localhost:80=10.0.0.1:80"}, noListen},
		{[]string{"--publish=0=localhost:80"}, noPort},
		{[]string{"--publish=65536=localhost:80"}, noPort},
		{[]string{"--publish=127.0.0.1:80=localhost:80"}, noPort},
		{[]string{"--publish=80=localhost"}, noService},
		{[]string{"--publish=80=:80"}, noService},
		{[]string{"--publish=80=localhost:0"}, noService},
		{[]string{"--publish=80=localhost:http"}, noService},
		{[]string{"--address=10.0.0.1", "--address=10.0.0.1"}, "--address, number 2: is one that was given before"},
		{[]string{"--address=10.0.0.1", "--address=10.0.0.2/24", "--address=10.0.0.1/24"}, "--address, number 3: is one that was given before"},
		{[]string{"--address=10.0.0.1/24", "--address=10.0.0.2/24", "--address=10.0.0.1"}, "--address, number 3: is one that was given before"},
		{[]string{"--address=10.0.0.1/24", "--address=10.0.0.2/24"}, ""},
		{[]string{"--publish=80=localhost:80", "--publish=80=localhost:81"}, "--publish, number 2: has a port that another has already"},
		{many("publish", "%d1=localhost:80", 256), ""},
		{many("publish", "%d1=localhost:80", 257), tooMany},
		{slices.Concat(many("address", "10.1.0.%d", 4), many("publish", "%d1=localhost:80", 64)), ""},
		{slices.Concat(many("address", "10.1.0.%d", 4), many("publish", "%d1=localhost:80", 64), []string{"--forward=80=10.0.0.1:80"}), tooMany},
		{slices.Concat(many("address", "10.1.0.%d", 5), many("publish", "%d1=localhost:80", 52)), tooMany},
		{slices.Concat(many("address", "10.1.0.%d", 5), many("forward", "8%d=10.0.0.1:80", 256)), ""},
		{slices.Concat(many("address", "10.1.0.%d", 5), many("forward", "8%d=10.0.0.1:80", 257)), tooMany},
	}
	for _, test := range tests {
		args := append([]string{"node", "--credential-file=c", "--userspace"}, test.args...)
		if !strings.Contains(strings.Join(args, " "), "--address=") {
			args = append(args, "--address=10.9.9.9")
		}
		v, err := parse(args, verbs())
		if err != nil {
			t.Errorf("%q: %v", test.args, err)
			continue
		}
		_, err = v.(*nodeVerb).settings()
		got := ""
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%.200q (-want +got):\n%s", test.args, diff)
		}
	}
}

// nodeRig is `relay node`, in this process.
type nodeRig struct {
	t       *testing.T
	file    string
	signals chan os.Signal
	stderr  safeBuffer
	code    chan int
}

// startNode runs the program with a credential and flags.
func startNode(t *testing.T, credential string, flags ...string) *nodeRig {
	t.Helper()
	r := &nodeRig{t: t, file: filepath.Join(t.TempDir(), "credential.yaml"), signals: make(chan os.Signal, waitingSignals), code: make(chan int, 1)}
	r.write(credential)
	p := process{
		args: append([]string{"node", "--credential-file=" + r.file, "--log-level=debug"}, flags...), stdout: io.Discard, stderr: &r.stderr,
		prepare: func() error { return nil },
		signals: func() (<-chan os.Signal, func()) { return r.signals, func() {} },
		notify:  func(string) error { return nil },
	}
	go func() { r.code <- run(p) }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("relay %v:\n%s", flags, r.stderr.String())
		}
	})
	return r
}

func (r *nodeRig) write(credential string) {
	r.t.Helper()
	if err := os.WriteFile(r.file+".draft", []byte(credential), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(r.file+".draft", r.file); err != nil {
		r.t.Fatal(err)
	}
}

// logged waits until n lines with a message are there, and returns the last.
func (r *nodeRig) logged(message string, n int) map[string]any {
	r.t.Helper()
	for deadline := time.Now().Add(nodeWait); ; time.Sleep(5 * time.Millisecond) {
		found, last := 0, map[string]any{}
		for line := range strings.Lines(r.stderr.String()) {
			var fields map[string]any
			if json.Unmarshal([]byte(line), &fields) == nil && fields["msg"] == message {
				found, last = found+1, fields
			}
		}
		if found >= n {
			return last
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%q stands in the log %d times", message, found)
		}
	}
}

// ends waits for the end of the program.
func (r *nodeRig) ends(want int) {
	r.t.Helper()
	select {
	case code := <-r.code:
		if code != want {
			r.t.Errorf("ended with %d, want %d", code, want)
		}
	case <-time.After(nodeWait):
		r.t.Fatal("it has not ended")
	}
}

// testHub is a hub as small as can be, with two members.
func testHub(t *testing.T) (credentials [2]string, keys [2]node.PrivateKey) {
	t.Helper()
	socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	newKey := func() node.PrivateKey {
		key, err := node.GeneratePrivateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	key := newKey()
	hub, err := nodetest.Listen(socket, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	for i := range keys {
		keys[i] = newKey()
		hub.Admit(keys[i].Public(), nodetest.Member{
			Control: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 200, 0, byte(7 + i)}), 24), Workload: netip.AddrFrom4([4]byte{10, 1, 0, byte(1 + i)}),
		})
		credentials[i] = fmt.Sprintf("hub: %s\nhub-public-key: %s\nauthority-id: %s\nprivate-key: %s\nexpires-at: 2026-01-01T00:00:00Z\n",
			socket.LocalAddr(), key.Public(), nodetest.AuthorityID, keys[i].Secret())
	}
	return credentials, keys
}

// Two nodes, each without a privilege: what is published on one is reached through the
// other. A successor keeps the tunnel, anything else is refused by name and changes
// nothing, and no output shows a key.
func TestNode_Life(t *testing.T) {
	credentials, keys := testHub(t)
	service, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := service.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, "a service\n")
			conn.Close()
		}
	}()
	t.Cleanup(func() { service.Close(); <-served })

	b := startNode(t, credentials[1], "--userspace", "--address=10.1.0.2", "--publish=80="+service.Addr().String())
	a := startNode(t, credentials[0], "--userspace", "--address=10.1.0.1", "--forward=0=10.1.0.2:80")
	b.logged("node-tunnel-up", 1)
	a.logged("node-tunnel-up", 1)
	if line := b.logged("node-publishes", 1); line["address"] != "10.1.0.2:80" {
		t.Errorf("%v", line)
	}
	if line := a.logged("node-started", 1); line["publicKey"] != keys[0].Public().String() || line["expiresAt"] != "2026-01-01T00:00:00.000Z" {
		t.Errorf("%v", line)
	}
	entrance := a.logged("node-forwards", 1)["address"].(string)
	reach := func() {
		t.Helper()
		var dialer net.Dialer
		ctx, cancel := context.WithTimeout(t.Context(), nodeWait)
		defer cancel()
		conn, err := dialer.DialContext(ctx, "tcp", entrance)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(nodeWait))
		if got, err := io.ReadAll(conn); err != nil || string(got) != "a service\n" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	reach()

	other, err := node.GeneratePrivateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	refusals := 0
	for _, test := range []struct{ content, reason, differs, why string }{
		{strings.Replace(credentials[0], "127.0.0.1:", "127.0.0.2:", 1), "no-successor", "another-hub-address", ""},
		{strings.Replace(credentials[0], hubKeyOf(credentials[0]), other.Public().String(), 1), "no-successor", "another-hub-key", ""},
		{strings.Replace(credentials[0], nodetest.AuthorityID, "authority-2", 1), "no-successor", "another-authority", ""},
		{strings.Replace(credentials[0], keys[0].Secret(), other.Secret(), 1), "no-successor", "another-private-key", ""},
		{strings.Replace(credentials[0], "hub:", "hop:", 1), "not-read", "", "credential-unknown-key"},
	} {
		a.write(test.content)
		a.signals <- syscall.SIGHUP
		refusals++
		line := a.logged("node-credential-refused", refusals)
		state, _ := line["state"].(string)
		why, _ := line["error"].(string)
		if line["reason"] != test.reason || state != test.differs || why != test.why {
			t.Errorf("refused as %v, want %v", line, test)
		}
	}
	a.write(strings.Replace(credentials[0], "2026-01-01", "2026-01-02", 1))
	a.signals <- syscall.SIGHUP
	if line := a.logged("node-credential-taken", 1); line["expiresAt"] != "2026-01-02T00:00:00.000Z" {
		t.Errorf("%v", line)
	}
	reach()

	a.signals <- syscall.SIGTERM
	a.ends(exitClean)
	b.signals <- syscall.SIGINT
	b.ends(exitClean)
	for _, r := range []*nodeRig{a, b} {
		if n := strings.Count(r.stderr.String(), `"node-tunnel-up"`); n != 1 {
			t.Errorf("%d tunnels came up", n)
		}
		if line := r.logged("node-connections", 1); line["count"] != 2.0 || line["bytes"] != 20.0 {
			t.Errorf("%v", line)
		}
		r.logged("node-sent", 1)
		r.logged("node-received", 1)
		for _, key := range []node.PrivateKey{keys[0], keys[1], other} {
			if strings.Contains(r.stderr.String(), key.Secret()[:12]) {
				t.Error("a private key is shown")
			}
		}
	}
}

// hubKeyOf returns the hub's key that stands in a credential.
func hubKeyOf(credential string) string {
	_, rest, _ := strings.Cut(credential, "hub-public-key: ")
	key, _, _ := strings.Cut(rest, "\n")
	return key
}

// A hub that does not admit the node, or is not there, ends nothing; what is wrong has a
// name in the log, and a signal still ends it well.
func TestNode_WaitsForItsHub(t *testing.T) {
	credentials, keys := testHub(t)
	stranger, err := node.GeneratePrivateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ credential, reason string }{
		"not a member":      {strings.Replace(credentials[0], keys[0].Secret(), stranger.Secret(), 1), "not-admitted"},
		"another authority": {strings.Replace(credentials[0], nodetest.AuthorityID, "authority-2", 1), "handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			r := startNode(t, test.credential, "--userspace", "--address=10.1.0.1")
			if line := r.logged("node-attempt-failed", 1); line["reason"] != test.reason {
				t.Errorf("%v", line)
			}
			r.signals <- syscall.SIGTERM
			r.ends(exitClean)
			if line := r.logged("node-ends", 1); line["reason"] != test.reason || line["count"] != 1.0 {
				t.Errorf("%v", line)
			}
		})
	}
}

// A start that fails leaves nothing bound and nothing running, which the end of all
// tests looks for.
func TestNode_StartThatFails(t *testing.T) {
	credentials, _ := testHub(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	r := startNode(t, credentials[0], "--userspace", "--address=10.1.0.1", "--forward=0=10.1.0.2:80", "--forward="+taken.Addr().String()+"=10.1.0.2:80")
	r.ends(exitFailed)
	if want := "relay: could not start: --forward, number 2: "; !strings.Contains(r.stderr.String(), want) {
		t.Errorf("it does not say %q", want)
	}
	first := r.logged("node-forwards", 1)["address"].(string)
	again, err := net.Listen("tcp", first)
	if err != nil {
		t.Fatalf("the first port is still bound: %v", err)
	}
	again.Close()
}
