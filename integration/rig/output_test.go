package rig

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadLines(t *testing.T) {
	text := `relay: a sentence for a person
{"time":"2026-01-02T03:04:05.6Z","level":"INFO","msg":"listener-bound","duty":"listener","seq":1,"address":"127.0.0.1:8443"}
WARNING: DATA RACE
{"msg":"twice","msg":"twice"}
{"msg":"no end"}`
	want := []Line{{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 6e8, time.UTC), Level: "INFO", Message: "listener-bound",
		Fields: map[string]any{"duty": "listener", "seq": 1.0, "address": "127.0.0.1:8443"},
	}}
	got := readLines([]byte(text))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if got[0].Text("address") != "127.0.0.1:8443" || got[0].Text("seq") != "" || got[0].Text("none") != "" {
		t.Errorf("fields %v", got[0].Fields)
	}
}

func TestCrashes(t *testing.T) {
	text := `{"msg":"panic-recovered","panic":"fatal error: none"}
panic: runtime error
  WARNING: DATA RACE
WARNING: DATA RACE
fatal error: all goroutines are asleep
`
	want := []string{"panic: runtime error", "WARNING: DATA RACE", "fatal error: all goroutines are asleep"}
	if diff := cmp.Diff(want, crashes([]byte(text))); diff != "" {
		t.Errorf("crashes (-want +got):\n%s", diff)
	}
}

func TestTail(t *testing.T) {
	var long bytes.Buffer
	for i := range 2 * tailLines {
		fmt.Fprintf(&long, "line %d\n", i)
	}
	got := strings.Split(string(tail(long.Bytes())), "\n")
	if len(got) != tailLines+2 || !strings.HasPrefix(got[0], "(") || got[1] != fmt.Sprintf("line %d", tailLines) {
		t.Errorf("%d lines, %q first", len(got), got[:2])
	}
	if got := tail(bytes.Repeat([]byte("x"), 2*tailBytes)); len(got) > tailBytes+64 {
		t.Errorf("%d bytes of one line", len(got))
	}
	for _, text := range []string{"", "\n", "one", "one\n", "one\ntwo"} {
		if got := string(tail([]byte(text))); got != text {
			t.Errorf("tail of %q is %q", text, got)
		}
	}
}

func TestCaptureIsBounded(t *testing.T) {
	var c capture
	chunk := make([]byte, maxOutput/2+1)
	for range 2 {
		if n, err := c.Write(chunk); n != len(chunk) || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	if kept, dropped := c.bytes(); len(kept) != maxOutput || dropped != 2 || c.len() != maxOutput {
		t.Errorf("kept %d, dropped %d", len(kept), dropped)
	}
}
