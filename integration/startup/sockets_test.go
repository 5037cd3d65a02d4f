package startup_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// listening returns the addresses on which a process takes TCP connections and UDP
// packets, as the kernel knows them.
func listening(t *testing.T, pid int) (tcp, udp []string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("what a process listens on is read from Linux's /proc")
	}
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{} // inodes of the process's sockets
	for _, name := range names {
		if target, err := os.Readlink(name); err == nil && strings.HasPrefix(target, "socket:[") {
			own[strings.Trim(target, "socket:[]")] = true
		}
	}
	if len(own) == 0 {
		t.Fatal("the sockets of the process cannot be seen")
	}
	const (
		listens = "0A" // TCP_LISTEN
		unbound = "07" // TCP_CLOSE: what a UDP socket without a peer is in
	)
	read := func(table, state string) []string {
		return append(bound(t, pid, table, state, own), bound(t, pid, table+"6", state, own)...)
	}
	return read("tcp", listens), read("udp", unbound)
}

// bound reads one of the kernel's tables, proc(5).
func bound(t *testing.T, pid int, table, state string, own map[string]bool) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
	if os.IsNotExist(err) {
		return nil // no IPv6 here
	}
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		columns := strings.Fields(line)
		if len(columns) < 10 || columns[3] != state || !own[columns[9]] {
			continue
		}
		found = append(found, addressOf(t, columns[1]))
	}
	return found
}

// addressOf reads "0100007F:1F90": words of the address in the machine's byte order,
// and the port.
func addressOf(t *testing.T, text string) string {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	words, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(words); i += 4 {
		binary.BigEndian.PutUint32(words[i:], binary.NativeEndian.Uint32(words[i:]))
	}
	address, _ := netip.AddrFromSlice(words)
	number, err := hex.DecodeString(port)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(address, binary.BigEndian.Uint16(number)).String()
}

// equalSets reports whether two lists have the same members.
func equalSets(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
