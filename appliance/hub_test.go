package appliance

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network/networktest"
	"serve.zone/relay/simulate"
)

const (
	hubListens = "10.0.9.1:4433"
	hubKey     = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
)

// silent is the hub's socket where nobody dials it.
type silent struct {
	at   netip.AddrPort
	once sync.Once
	done chan struct{}
}

func (s *silent) ReadFrom([]byte) (int, net.Addr, error) { <-s.done; return 0, nil, net.ErrClosed }
func (s *silent) WriteTo(p []byte, _ net.Addr) (int, error) {
	return len(p), nil
}
func (s *silent) LocalAddr() net.Addr              { return net.UDPAddrFromAddrPort(s.at) }
func (s *silent) SetDeadline(time.Time) error      { return nil }
func (s *silent) SetReadDeadline(time.Time) error  { s.end(); return nil } // asked for at the end alone
func (s *silent) SetWriteDeadline(time.Time) error { return nil }
func (s *silent) SetReadBuffer(int) error          { return nil }
func (s *silent) SetWriteBuffer(int) error         { return nil }
func (s *silent) Close() error                     { s.end(); return nil }
func (s *silent) end()                             { s.once.Do(func() { close(s.done) }) }

// withHub returns a change by which a relay has a hub, with the key in a file.
func withHub(t *testing.T) change {
	file := filepath.Join(t.TempDir(), "hub.key")
	if err := os.WriteFile(file, []byte(hubKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return change{relay: func(c *Config) {
		c.Settings.Hub.Listen, c.Settings.Hub.KeyFile = netip.MustParseAddrPort(hubListens), file
		c.ListenPacket = func(_ context.Context, _, address string) (net.PacketConn, error) {
			return &silent{at: netip.MustParseAddrPort(address), done: make(chan struct{})}, nil
		}
	}}
}

// R13, R15, R56: the hub is bound before the relay registers, which says so with
// address, port and public key. It is empty, and the network is pulled behind the
// acceptance. What Cloudly pushes then is applied.
func TestR13_R15_R56_TheHubIsRegisteredAndGivenItsNetwork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := withHub(t)
		c.idle = true
		r := newRig(t, c)
		first := networktest.Grid(2, 1)
		r.cloudly.SetNetwork(&first)
		r.start()
		r.registered(0)
		synctest.Wait()
		facts := r.relay.facts().VPNHub
		if facts == nil || facts.Address != "10.0.9.1" || facts.QUICPort != 4433 || !strings.HasSuffix(facts.PublicKey, "=") {
			t.Fatalf("registered %+v", facts)
		}
		var calls []string
		for _, m := range r.cloudly.Frames().Messages() {
			if !m.Sent && m.Request && (m.Method == relayCall || m.Method == contract.MethodGetVPNNetwork) {
				calls = append(calls, m.Method)
			}
		}
		if got := strings.Join(calls, " "); got != relayCall+" "+contract.MethodGetVPNNetwork {
			t.Errorf("the relay called %s", got)
		}
		held := func(want int64) {
			t.Helper()
			s := r.section("hub")["network"].(map[string]any)
			if s["revision"] != float64(want) {
				t.Errorf("holds %v, want revision %d", s, want)
			}
		}
		held(first.Revision)
		next := networktest.Grid(3, 1)
		next.Revision = first.Revision + 1
		if answer, err := r.cloudly.ApplyNetwork(r.soon(), next); err != nil || answer.State != contract.VPNNetworkIdle {
			t.Errorf("applied: %+v, %v", answer, err)
		}
		held(next.Revision)
		if status, body := r.get("/readyz"); status != 200 {
			t.Errorf("ready: %d %s", status, body)
		}
		for _, page := range []string{"/status", "/events", "/metrics", "/readyz?verbose"} {
			if _, text := r.get(page); strings.Contains(text, hubKey) {
				t.Errorf("%s shows the hub's private key", page)
			}
		}
		r.wantNoViolations()
	})
}

// R21: with custody, ended by relay-node-foreign, the network is gone, and with it
// every member.
func TestR21_TheNetworkGoesWithCustody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := withHub(t)
		c.idle = true
		r := newRig(t, c)
		network := networktest.Grid(2, 1)
		r.cloudly.SetNetwork(&network)
		r.start()
		r.registered(0)
		synctest.Wait()
		if n := len(r.section("hub")["members"].([]any)); n != 2 {
			t.Fatalf("%d members", n)
		}
		r.cloudly.Script(relayCall, simulate.RefuseNamed(contract.RelayNodeForeign, "moved"))
		r.again()
		after(0)
		if n := len(r.section("hub")["members"].([]any)); n != 0 {
			t.Errorf("%d members after the end of custody", n)
		}
	})
}

// The key's file is read as strictly as a bearer's, and no error shows what is in it.
func TestHubKeyFile(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if key, err := readHubKey(write("right", hubKey, 0o600)); err != nil || key.IsZero() {
		t.Errorf("refused: %v", err)
	}
	for what, path := range map[string]string{
		"read by others": write("mode", hubKey, 0o640),
		"too long":       write("long", hubKey+hubKey+hubKey, 0o600),
		"too short":      write("short", hubKey[:40], 0o600),
		"a folder":       folder,
		"missing":        filepath.Join(folder, "none"),
	} {
		if _, err := readHubKey(path); err == nil || !strings.HasPrefix(err.Error(), "hub-key-file: ") || strings.Contains(err.Error(), hubKey[:20]) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
