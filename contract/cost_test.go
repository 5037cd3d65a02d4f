package contract

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHostileBodiesCostASmallMultipleOfTheirSize reads bodies that are built to
// be dear, and holds the memory they allocate to a multiple of their length.
func TestHostileBodiesCostASmallMultipleOfTheirSize(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":1,`, i)
		}
		return b.String() + `"z":1`
	}
	renewal := func(authority string) string {
		return `{"authority":` + authority + `,"renewal":{"controller":{"kind":"cloudly"},"nodeId":"a","runtimeNamespace":"n","projection":{"id":"p","generation":1,"digest":"sha256:` +
			strings.Repeat("0", 64) + `"},"sequence":1,"dns":{"issuedAt":1,"notBefore":1,"expiresAt":2},"digest":"sha256:` + strings.Repeat("0", 64) + `"},"signature":"s"}`
	}
	run := renewal(`{`+many(40_000)+`}`) + strings.Repeat(`,`+renewal("1"), 31)
	for name, tc := range map[string]struct {
		body  string
		read  func([]byte) error
		times uint64
	}{
		"a run whose authorities all differ from a large first one": {
			`{"nodeId":"a","projection":{"id":"p","generation":1,"digest":"sha256:` + strings.Repeat("0", 64) + `"},"renewals":[` + run + `]}`,
			errorOf(ReadHoldDNSLeaseRenewalsRequest), 200,
		},
		"a table of small wrong elements": {
			`{"table":{"revision":1,"issuedAt":1,"routes":[` + strings.TrimSuffix(strings.Repeat(`{"hostname":"a","destinations":[`+strings.Repeat("0,", 1023)+`0]},`, 200), ",") + `],"portRoutes":[]}}`,
			errorOf(ReadPushRouteTableRequest), 20,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			cost := allocated(func() { err = tc.read([]byte(tc.body)) })
			if err == nil {
				t.Fatal("accepted")
			}
			if cost > tc.times*uint64(len(tc.body)) {
				t.Errorf("%d bytes cost %d, more than %d times their size", len(tc.body), cost, tc.times)
			}
		})
	}
	t.Run("comparing a large value with a small one", func(t *testing.T) {
		large := []byte(`{` + many(50_000) + `}`)
		for _, equal := range []func(a, b []byte) bool{EqualJSON, EqualCanonical} {
			if cost := allocated(func() {
				if equal(large, []byte(`{"a":1}`)) {
					t.Error("equal")
				}
			}); cost > 4096 {
				t.Errorf("costs %d bytes", cost)
			}
		}
	})
}

// TestAHoldIsWithinTheBoundOfACapturedValue (contract §2.3): 1 MiB of canonical
// JSON, whatever its writing.
func TestAHoldIsWithinTheBoundOfACapturedValue(t *testing.T) {
	value := func(n int) []byte {
		head := `{"nodeId":"a","renewals":[],"x":"`
		return []byte(head + strings.Repeat("x", n-len(head)-2) + `"}`)
	}
	spaced := append(value(CapturedValueLimit), strings.Repeat(" ", 1000)...)
	escaped := []byte(strings.Replace(string(value(CapturedValueLimit)), "xxx", `\u0078\u0078\u0078`, 1))
	for name, tc := range map[string]struct {
		body []byte
		want bool
	}{
		"at the bound":        {value(CapturedValueLimit), true},
		"one past it":         {value(CapturedValueLimit + 1), false},
		"with space":          {spaced, true},
		"with escapes":        {escaped, true},
		"far past it":         {value(7 * CapturedValueLimit), false},
		"past it and no JSON": {[]byte(strings.Repeat("[", CapturedValueLimit+1)), false},
	} {
		if got := isCaptured(tc.body); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, err := ReadHoldDNSLeaseRenewalsRequest(value(CapturedValueLimit + 1)); err == nil ||
		err.Error() != "invalid holdRuntimeNetworkDnsLeaseRenewals request: body: has more than 1048576 bytes of canonical json" {
		t.Errorf("%v", err)
	}
}

// TestErrorsHaveNamesForALog: the logger shows no error's text, only its name.
func TestErrorsHaveNamesForALog(t *testing.T) {
	for want, err := range map[string]interface{ LogName() string }{
		"relay-not-ready":       &Refusal{Name: RelayNotReady, Reason: "secret"},
		"protocol-incompatible": ProtocolRefusal{},
		"invalid-message":       &InvalidError{What: "x"},
	} {
		if got := err.LogName(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
