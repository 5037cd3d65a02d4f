//go:build linux

package hub_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/integration/rig"
)

// echo serves TCP connections by sending back what comes, until its end of the stream.
func echo(t *testing.T) net.Addr {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(rig.DefaultWait))
				io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr()
}

// said sends a text over a connection of its own and returns what came back.
func said(address, text string) (string, error) {
	conn, err := net.DialTimeout("tcp", address, rig.DefaultWait)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(rig.DefaultWait))
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// Two nodes without a privilege reach each other's services through the hub, and keep
// their tunnels when a credential is renewed; one that is no successor is refused by
// name.
func TestVerbs_NodeWithoutRoot(t *testing.T) {
	c := start(t)
	c.admit()
	c.admit()
	c.grant([2]int{0, 1}, [2]int{1, 0})
	c.push()
	folder, soon := t.TempDir(), time.Now().Add(time.Hour)
	b := c.run("node", "--credential-file="+c.credential(folder, 1, soon), "--userspace", "--address="+workload(1).String(),
		"--publish=80="+echo(t).String())
	file := c.credential(folder, 0, soon)
	a := c.run("node", "--credential-file="+file, "--userspace", "--address="+workload(0).String(),
		"--forward=0="+netip.AddrPortFrom(workload(1), 80).String())
	c.connected(2)
	entrance := a.logged("node-forwards", 1)["address"].(string)
	b.logged("node-publishes", 1)
	speak := func(text string) {
		t.Helper()
		if got, err := said(entrance, text); err != nil || got != text {
			t.Fatalf("%q came back, %v", got, err)
		}
	}
	speak("before")

	later := soon.Add(time.Hour)
	c.credential(folder, 0, later)
	a.signal(syscall.SIGHUP)
	if line := a.logged("node-credential-taken", 1); line["expiresAt"] != later.UTC().Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("taken: %v, want %v", line, later)
	}
	c.credential(folder, 0, later, "hub: 127.0.0.1", "hub: 127.0.0.2")
	a.signal(syscall.SIGHUP)
	if line := a.logged("node-credential-refused", 1); line["reason"] != "no-successor" || line["state"] != "another-hub-address" {
		t.Errorf("refused: %v", line)
	}
	speak("behind")

	for _, p := range []*program{a, b} {
		if n := len(p.lines("node-tunnel-up")); n != 1 {
			t.Errorf("%d tunnels came up", n)
		}
		p.signal(syscall.SIGTERM)
		p.exits(0)
		if line := p.logged("node-connections", 1); fmt.Sprint(line["count"], line["bytes"]) != "2 24" {
			t.Errorf("counted: %v", line)
		}
		if line := p.logged("node-sent", 1); line["count"].(float64) == 0 {
			t.Errorf("sent: %v", line)
		}
	}
}

// explain runs `relay explain`, which must end with this exit code, and returns what it
// says on standard output and standard error.
func (c *cluster) explain(code int, from, to netip.Addr, flags ...string) (stdout, stderr string) {
	c.t.Helper()
	p := c.run(append([]string{"explain", "--from=" + from.String(), "--to=" + to.String(), "--operator=" + c.OperatorAddress()}, flags...)...)
	p.exits(code)
	return p.stdout.String(), p.stderr.String()
}

// Whatever becomes of a packet, the running hub says it in a sentence, by the network in
// force at that moment and with what stands in the way besides.
func TestVerbs_Explain(t *testing.T) {
	c := start(t)
	a, b, nobody := workload(0), workload(1), netip.MustParseAddr("10.99.0.1")
	ip6, hub, control := netip.MustParseAddr("fd00::1"), netip.MustParseAddr("10.90.0.1"), netip.MustParseAddr("10.90.0.10")
	says := func(from, to netip.Addr, parts ...string) {
		t.Helper()
		stdout, stderr := c.explain(0, from, to)
		for _, part := range parts {
			if !strings.Contains(stdout, part) {
				t.Errorf("from %s to %s it does not say %q: %s", from, to, part, stdout)
			}
		}
		if strings.Count(stdout, "\n") != 1 || stderr != "" {
			t.Errorf("from %s to %s it says %q and %q", from, to, stdout, stderr)
		}
	}
	says(a, b, "Every packet is dropped: the hub holds no network.")
	c.admit()
	c.admit()
	c.grant([2]int{0, 1})
	c.push()
	says(a, b, `revision 1 grants "node-a" to "node-b"`, "At present none can come: node node-a has no session.")
	c.joined(0)
	says(a, b, "is relayed", "At present it is dropped all the same (destination-offline): node node-b has no session.")
	c.joined(1)
	says(a, b, `A packet from 10.91.0.2 (node node-a, prefix 10.91.0.0/24, domain "node-a") to 10.91.1.2 (node node-b, prefix 10.91.1.0/24, domain "node-b") is relayed: revision 1 grants "node-a" to "node-b".`+"\n")
	says(b, a, "is dropped by revision 1 (no-grant)", "though one joins them the other way")
	says(a, nobody, "(destination-unknown)")
	says(nobody, b, "(source-spoofed)")
	says(a, ip6, "(packet-ipv6)", "the tunnel carries IPv4 alone")
	says(control, hub, "An ICMP echo request", "is answered")
	c.grant([2]int{1, 0})
	c.push()
	says(a, b, "is dropped by revision 2 (no-grant)")

	stdout, _ := c.explain(0, b, a, "--json")
	var got struct {
		Admitted bool
		Action   string
		Revision int64
		From, To struct {
			Node      string
			Connected bool
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || !got.Admitted || got.Action != "relay" || got.Revision != 2 ||
		got.From.Node != "node-b" || got.To.Node != "node-a" || !got.From.Connected || !got.To.Connected {
		t.Errorf("%v: %s", err, stdout)
	}
}

// A relay that has no hub says so.
func TestVerbs_ExplainWithoutAHub(t *testing.T) {
	t.Parallel()
	c := &cluster{Rig: rig.New(t, rig.AnyPort()), t: t}
	c.WaitReady()
	if stdout, stderr := c.explain(2, workload(0), workload(1)); stdout != "" || stderr != "relay: the relay has no hub: it was started without --hub-listen\n" {
		t.Errorf("%q, %q", stdout, stderr)
	}
}

// What `relay keygen` makes is what the hub and its nodes are known by.
func TestVerbs_Keygen(t *testing.T) {
	folder := t.TempDir()
	generate := func(c *cluster, name string) (file, public string) {
		c.t.Helper()
		file = filepath.Join(folder, name)
		p := c.run("keygen", "--out="+file)
		p.exits(0)
		return file, strings.TrimSuffix(p.stdout.String(), "\n")
	}
	hubKey, hubPublic := generate(&cluster{t: t}, "hub.key")
	c := start(t, rig.With("hub-key-file", hubKey))
	if hub := c.facts(); hub.PublicKey != hubPublic {
		t.Errorf("the hub is known by %s, not by %s", hub.PublicKey, hubPublic)
	}
	c.admit()
	_, public := generate(c, "node.key")
	c.network.Nodes[0].PublicKey = public
	c.push()
	credential := c.credential(folder, 0, time.Now().Add(time.Hour), "private-key: "+c.keys[name(0)].Secret(), "private-key-file: node.key")
	n := c.run("node", "--credential-file="+credential, "--userspace", "--address="+workload(0).String())
	c.connected(1)
	if line := n.logged("node-started", 1); line["publicKey"] != public {
		t.Errorf("%v, want %s", line, public)
	}
	n.signal(syscall.SIGINT)
	n.exits(0)
	c.connected(0)
}
