package tun

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/nodetest"
	"serve.zone/relay/hub/node/userspace"
)

// testLimit bounds every wait. It is no expectation: a test that reaches it has failed.
const testLimit = 30 * time.Second

// inside is set in the program that runs in a network namespace of its own.
const inside = "RELAY_TUN_TEST_INSIDE"

// apart runs the test again in a network namespace of its own, which goes with the process
// that has it, and returns true there.
func apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		loopbackUp(t)
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: a network namespace and a TUN interface")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("needs a TUN: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*testLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=50s")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	output, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		t.Skipf("needs a network namespace: %v", err)
	}
	if err != nil || !bytes.Contains(output, []byte("--- PASS: "+t.Name())) {
		t.Errorf("in the namespace: %v\n%s", err, output)
	}
	return false
}

func loopbackUp(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, options Options) *Device {
	t.Helper()
	device, err := Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { device.Close() })
	return device
}

func settings(control string, mtu int) node.Settings {
	return node.Settings{
		ControlAddress: netip.MustParsePrefix(control), HubAddress: nodetest.HubAddress, InnerMTU: mtu,
	}
}

// addresses returns those of an interface, sorted.
func addresses(t *testing.T, name string) []string {
	t.Helper()
	found, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := found.Addrs()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, a := range all {
		if !strings.Contains(a.String(), ":") { // the kernel's own of IPv6
			texts = append(texts, a.String())
		}
	}
	slices.Sort(texts)
	return texts
}

// The interface has what the hub and the options say, again after a change, and nothing is
// left of it.
func TestInterfaceIsConfigured(t *testing.T) {
	if !apart(t) {
		return
	}
	source := netip.MustParseAddr("10.1.0.1")
	device := open(t, Options{
		Name:      "relaytest%d",
		Addresses: []netip.Prefix{netip.PrefixFrom(source, 32)},
		Routes:    []Route{{To: netip.MustParsePrefix("10.2.0.0/16"), Source: source}},
	})
	if device.Name() != "relaytest0" {
		t.Errorf("name %q", device.Name())
	}
	if got := addresses(t, device.Name()); len(got) != 0 {
		t.Errorf("addresses %v before it is configured", got)
	}
	for _, s := range []node.Settings{
		settings("10.200.0.7/24", 1400), settings("10.200.0.9/24", 1280), settings("10.201.0.9/16", 1400),
	} {
		if err := device.Configure(s); err != nil {
			t.Fatal(err)
		}
		want := []string{"10.1.0.1/32", s.ControlAddress.String()}
		if got := addresses(t, device.Name()); !slices.Equal(got, want) {
			t.Errorf("addresses %v, want %v", got, want)
		}
		if mtu, err := device.MTU(); err != nil || mtu != s.InnerMTU {
			t.Errorf("mtu %d, want %d: %v", mtu, s.InnerMTU, err)
		}
		for to, from := range map[string]string{"10.2.3.4:9": "10.1.0.1", nodetest.HubAddress.String() + ":9": ""} {
			conn, err := net.Dial("udp4", to)
			switch {
			case from == "":
				// On link of the control prefix, where that holds the hub.
				if on := s.ControlAddress.Masked().Contains(nodetest.HubAddress); on != (err == nil) {
					t.Errorf("a way to the hub: %v", err)
				}
			case err != nil:
				t.Error(err)
			default:
				if got := conn.LocalAddr().(*net.UDPAddr).IP.String(); got != from {
					t.Errorf("from %s to %s, want %s", got, to, from)
				}
			}
			if conn != nil {
				conn.Close()
			}
		}
	}
	device.Close()
	if _, err := net.InterfaceByName(device.Name()); err == nil {
		t.Error("the interface is still there")
	}
}

// Another's route to the same prefix is left alone.
func TestRouteOfAnotherInterfaceStays(t *testing.T) {
	if !apart(t) {
		return
	}
	route := Route{To: netip.MustParsePrefix("10.2.0.0/16")}
	first := open(t, Options{Name: "relayfirst", Routes: []Route{route}})
	if err := first.Configure(settings("10.200.0.7/24", 1400)); err != nil {
		t.Fatal(err)
	}
	second := open(t, Options{Name: "relaysecond", Routes: []Route{route}})
	if err := second.Configure(settings("10.201.0.7/24", 1400)); !errors.Is(err, unix.EEXIST) {
		t.Errorf("configure: %v", err)
	}
}

// The name of an interface that is there is refused.
func TestOpenIsRefused(t *testing.T) {
	if !apart(t) {
		return
	}
	open(t, Options{Name: "relaytest"})
	if _, err := Open(Options{Name: "relaytest"}); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a second one: %v", err)
	}
}

// B202: the error says which of the two things that containers lack is missing.
func TestB202_OpenSaysWhatIsMissing(t *testing.T) {
	if !apart(t) {
		return
	}
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with its rights
		var none [2]unix.CapUserData
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		if err := unix.Capset(&header, &none[0]); err != nil {
			ended <- err
			return
		}
		_, err := Open(Options{Name: "relaytest"})
		ended <- err
	}()
	if err := <-ended; !errors.Is(err, ErrForbidden) {
		t.Errorf("without rights: %v", err)
	}
	for _, errno := range []unix.Errno{unix.ENOENT, unix.ENODEV, unix.ENXIO} {
		if err := named(errno); !errors.Is(err, ErrNoDevice) || errors.Is(err, ErrForbidden) {
			t.Errorf("%v: %v", errno, err)
		}
	}
}

// A node whose interface somebody removes ends, and says why.
func TestInterfaceIsRemoved(t *testing.T) {
	if !apart(t) {
		return
	}
	device := open(t, Options{Name: "relaytest"})
	client, err := node.New(node.Config{
		Credential: node.Credential{
			Hub: netip.MustParseAddrPort("127.0.0.1:9"), HubKey: node.PublicKey{1}, AuthorityID: "a", Key: newKey(t),
		},
		Device: device,
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- client.Run(t.Context()) }()
	link, err := openNetlink()
	if err != nil {
		t.Fatal(err)
	}
	defer link.close()
	body := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(body[4:], uint32(device.index))
	if err := link.call(unix.RTM_DELLINK, 0, body); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ran:
		if !errors.Is(err, node.ErrDevice) {
			t.Errorf("run ended with %v", err)
		}
	case <-time.After(testLimit):
		t.Error("the node goes on without its interface")
	}
}

func newKey(t *testing.T) node.PrivateKey {
	t.Helper()
	key, err := node.GeneratePrivateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A TCP connection of the kernel crosses the tunnel to a userspace stack and back.
func TestTransferThroughTheKernel(t *testing.T) {
	if !apart(t) {
		return
	}
	socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hubKey := newKey(t)
	hub, err := nodetest.Listen(socket, hubKey)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	at := socket.LocalAddr().(*net.UDPAddr).AddrPort()

	source := netip.MustParseAddr("10.1.0.1")
	kernel := open(t, Options{
		Name:      "relaytest",
		Addresses: []netip.Prefix{netip.PrefixFrom(source, 32)},
		Routes:    []Route{{To: netip.MustParsePrefix("10.2.0.0/16"), Source: source}},
	})
	stack, err := userspace.New(netip.MustParseAddr("10.2.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	join(t, hub, at, hubKey.Public(), kernel, "10.200.0.7/24", source)
	join(t, hub, at, hubKey.Public(), stack, "10.200.0.8/24", netip.MustParseAddr("10.2.0.1"))

	listener, err := stack.Listen("tcp", "0.0.0.0:80")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			io.Copy(conn, conn)
			conn.Close()
		}
	}()
	conn, err := net.DialTimeout("tcp4", "10.2.0.1:80", testLimit)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(testLimit))
	const size = 2 << 20
	data := make([]byte, size)
	rand.Read(data)
	go func() {
		io.Copy(conn, bytes.NewReader(data))
		conn.(*net.TCPConn).CloseWrite()
	}()
	hash := sha256.New()
	if n, err := io.Copy(hash, conn); err != nil || n != size {
		t.Fatalf("%d bytes came back: %v", n, err)
	}
	if want := sha256.Sum256(data); !bytes.Equal(hash.Sum(nil), want[:]) {
		t.Error("other bytes came back")
	}
}

func join(t *testing.T, hub *nodetest.Hub, at netip.AddrPort, hubKey node.PublicKey, device node.Device, control string, workload netip.Addr) {
	t.Helper()
	key := newKey(t)
	hub.Admit(key.Public(), nodetest.Member{Control: netip.MustParsePrefix(control), Workload: workload})
	up := make(chan struct{})
	client, err := node.New(node.Config{
		Credential: node.Credential{Hub: at, HubKey: hubKey, AuthorityID: nodetest.AuthorityID, Key: key},
		Device:     device,
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
		t.Logf("%s: %+v", control, client.Status().Traffic)
	})
	// The hub may have its session before the node has configured the device.
	limit := time.After(testLimit)
	select {
	case <-up:
	case <-limit:
		t.Fatalf("no tunnel: %+v", client.Status().Last)
	}
	select {
	case <-hub.Sessions:
	case <-limit:
		t.Fatal("the hub has no session")
	}
}
