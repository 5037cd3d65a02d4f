package stream

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

func TestReadFrame(t *testing.T) {
	ok := func(change func(p []byte)) []byte {
		h := header(kindData, 7, 9)
		p := append(h[:], "abc"...)
		change(p)
		return p
	}
	cases := []struct {
		name string
		p    []byte
		rule string
	}{
		{"a frame", ok(func([]byte) {}), ""},
		{"empty", nil, FrameShort},
		{"one byte short", ok(func([]byte) {})[:HeaderSize-1], FrameShort},
		{"version 0", ok(func(p []byte) { p[0] = 0 }), FrameVersion},
		{"version 2", ok(func(p []byte) { p[0] = 2 }), FrameVersion},
		{"JSON", []byte(`{"method":"a","request":{}}`), FrameVersion},
		{"kind 0", ok(func(p []byte) { p[1] = 0 }), FrameKind},
		{"kind 8", ok(func(p []byte) { p[1] = 8 }), FrameKind},
		{"kind 255", ok(func(p []byte) { p[1] = 255 }), FrameKind},
		{"reserved high", ok(func(p []byte) { p[2] = 1 }), FrameReserved},
		{"reserved low", ok(func(p []byte) { p[3] = 1 }), FrameReserved},
		{"number 0", ok(func(p []byte) { clear(p[4:8]) }), FrameNumber},
	}
	for _, c := range cases {
		f, err := readFrame(c.p)
		if c.rule == "" {
			if err != nil || f.kind != kindData || f.number != 7 || f.value != 9 || string(f.payload) != "abc" {
				t.Errorf("%s: %+v, %v", c.name, f, err)
			}
			continue
		}
		var wrong *FrameError
		if !errors.As(err, &wrong) || wrong.Rule != c.rule {
			t.Errorf("%s: got %v, want %s", c.name, err, c.rule)
		}
	}
}

func TestReasonsFitTheirFrame(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"a reason", "a reason"},
		{"bad \xff byte", "bad \uFFFD byte"},
		{strings.Repeat("x", MaxReason), strings.Repeat("x", MaxReason)},
		{strings.Repeat("x", MaxReason+1), strings.Repeat("x", MaxReason)},
		{strings.Repeat("x", MaxReason-1) + "é", strings.Repeat("x", MaxReason-1)},
		{strings.Repeat("x", MaxReason-3) + "\U0001F600", strings.Repeat("x", MaxReason-3)},
	} {
		if got := boundReason(c.in); got != c.want {
			t.Errorf("%.20q…: got %d bytes, want %d", c.in, len(got), len(c.want))
		}
	}
}

func TestErrorsRepeatNoPeersText(t *testing.T) {
	for _, c := range []struct{ reason, want string }{
		{"idle", "stream with x aborted by the peer: idle"},
		{"credit-exceeded: by 12", "stream with x aborted by the peer: credit-exceeded"},
		{"token hunter2", "stream with x aborted by the peer for a reason of its own"},
		{"idle hunter2", "stream with x aborted by the peer for a reason of its own"},
		{"", "stream with x aborted by the peer for a reason of its own"},
	} {
		err := &AbortedError{Peer: "x", Reason: c.reason, Remote: true}
		if err.Error() != c.want {
			t.Errorf("%q: %s", c.reason, err)
		}
	}
}

func TestOutcomesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range Outcomes() {
		if o.String() == "" || seen[o.String()] {
			t.Errorf("outcome %d is called %q", o, o)
		}
		seen[o.String()] = true
	}
	if len(seen) != int(numOutcomes) || numOutcomes.String() != "unknown" || Kind(0).String() != "unknown" {
		t.Errorf("names %v", seen)
	}
}

// FuzzReadFrame holds the reader against the header it would write itself.
func FuzzReadFrame(f *testing.F) {
	for _, v := range frameVectors() {
		p, err := hex.DecodeString(v.Hex)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p)
	}
	for kind := range Kind(9) {
		h := header(kind, uint32(kind), 1<<uint(kind))
		f.Add(append(h[:], "payload"...))
		f.Add(h[:HeaderSize-1])
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		read, err := readFrame(p)
		if err != nil {
			var wrong *FrameError
			if !errors.As(err, &wrong) || len(p) >= HeaderSize && wrong.Rule == FrameShort {
				t.Fatalf("%x: %v", p, err)
			}
			return
		}
		h := header(read.kind, read.number, read.value)
		if !bytes.Equal(append(h[:], read.payload...), p) {
			t.Fatalf("%x was read as %+v", p, read)
		}
	})
}
