package tunnel

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The page names everything that a second implementation meets, with the
// numbers that this one uses.
func TestPageNamesEverything(t *testing.T) {
	text, err := os.ReadFile("../../docs/tunnel.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	want := func(format string, args ...any) {
		t.Helper()
		if s := fmt.Sprintf(format, args...); !strings.Contains(page, s) {
			t.Errorf("the page lacks %q", s)
		}
	}
	for _, r := range Rules() {
		want("| `%s` |", r)
	}
	for _, c := range CloseCodes() {
		want("| %d | `%s` |", uint16(c), c)
	}
	for _, r := range JoinRefusals() {
		want("`%s`", r)
	}
	for _, r := range OpenRefusals() {
		want("`%s`", r)
	}
	for kind := FrameKind(1); kind.known(); kind++ {
		from := "either"
		if k := frameKinds[kind]; !k.hub {
			from = "node"
		} else if !k.node {
			from = "hub"
		}
		want("| 0x%02x | %s | %s |", uint8(kind), kind, from)
	}
	for kind := PacketData; kind <= PacketResponse; kind++ {
		want("| 0x%02x | %s |", uint8(kind), kind)
	}
	for number := 1; number < fieldEnd; number++ {
		want("| 0x%02x | ", number)
	}
	for _, label := range []string{ALPN, prologueLabel, bindLabel, laneLabel, resetLabel} {
		want("`%s`", label)
	}
	want("%q", keyLabel)
	want("%q", proofLabel)
	want("Lane %d is the datagram lane, %d the direct lane. Cipher %d is AES-256-GCM, %d ChaCha20-Poly1305. The version is %d.",
		LaneDatagram, LaneDirect, CipherAES256GCM, CipherChaCha20, Version)
	want("at most 1,232 bytes")
	want("(the relay: 8,128)")
	for what, same := range map[string]bool{
		"packet size":      PacketSize == 1232,
		"window":           windowSpan == 8128,
		"body":             MaxBody == 1024,
		"inner MTU":        DefaultInnerMTU == 1400 && MinInnerMTU == 1280 && MaxInnerMTU == 1500,
		"places":           JoinSlots == 32 && JoinLimit == time.Second,
		"epoch":            EpochLife == 120*time.Second && MaxEpochLife == 300*time.Second && OldEpochLife == 10*time.Second,
		"packets":          AskSealed == 1<<27 && MaxSealed == 1<<28 && MaxFailedOpens == 1<<36,
		"exchanges":        RekeySpacing == 10*time.Second && minRekeySpacing == 5*time.Second,
		"times":            HandshakeLimit == 10*time.Second && Keepalive == 10*time.Second && IdleTimeout == 30*time.Second,
		"authority id":     MaxAuthorityID == 128,
		"unread on stream": controlWindow == 16384,
	} {
		if !same {
			t.Errorf("a number on the page has changed: %s", what)
		}
	}
}
