package envelope

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestReadError(t *testing.T) {
	for _, c := range []struct {
		raw, text, data string
		state           ErrorState
	}{
		{``, "", "-", ErrorNone},
		{`null`, "", "-", ErrorNone},
		{`{"text":"denied","data":{"code":"E1"}}`, "denied", `{"code":"E1"}`, ErrorNamed},
		{`{ "data" : [ 1 ] , "text":"\u0064enied\ud83d\ude00\n" }`, "denied😀\n", `[ 1 ]`, ErrorNamed},
		{`{"t\u0065xt":"a","extra":1}`, "a", "-", ErrorNamed},
		{`{"text":"","data":null}`, "", `null`, ErrorNamed},
		{`{"text":"a","data":{"text":"b","text":"c","__proto__":"\ud800"}}`, "a", `{"text":"b","text":"c","__proto__":"\ud800"}`, ErrorNamed},
		{`{"text":"a","__proto__":1}`, "a", "-", ErrorNamed},
		{`{}`, "", "-", ErrorUnnamed},
		{`{"text":null}`, "", "-", ErrorUnnamed},
		{`{"text":1,"data":{}}`, "", "-", ErrorUnnamed},
		{`{"Text":"a"}`, "", "-", ErrorUnnamed},
		{`{"data":{"text":"a"}}`, "", "-", ErrorUnnamed},
		{`"denied"`, "", "-", ErrorUnnamed},
		{`["text"]`, "", "-", ErrorUnnamed},
		{`true`, "", "-", ErrorUnnamed},
		{`false`, "", "-", ErrorUnnamed},
		{`0`, "", "-", ErrorUnnamed},
		// None of these comes out of a scan; they are failures all the same.
		{`nul`, "", "-", ErrorUnnamed},
		{`null null`, "", "-", ErrorUnnamed},
		{`{"text":"a"`, "", "-", ErrorUnnamed},
		{`{"text":"a"}}`, "", "-", ErrorUnnamed},
		{`{"text":"a","text":"a"}`, "", "-", ErrorUnnamed},
		{`{"text":"\ud800"}`, "", "-", ErrorUnnamed},
		{"{\"text\":\"\xff\"}", "", "-", ErrorUnnamed},
		{` `, "", "-", ErrorUnnamed},
	} {
		text, data, state := ReadError([]byte(c.raw))
		if data == nil {
			data = []byte("-")
		}
		if text != c.text || string(data) != c.data || state != c.state {
			t.Errorf("%s: got %q, %s, %v", c.raw, text, data, state)
		}
	}
	if _, _, state := ReadError(nil); state != ErrorNone {
		t.Errorf("an absent error gave %v", state)
	}
}

// B185: an error that is read alone may be as deep as in its frame, and no deeper.
func TestB185_FailuresAreBounded(t *testing.T) {
	for n, want := range map[int]ErrorState{MaxDepth - 2: ErrorNamed, MaxDepth - 1: ErrorUnnamed, 10_000: ErrorUnnamed} {
		raw := fmt.Sprintf(`{"text":"a","data":%s}`, nested("[", n))
		if _, _, state := ReadError([]byte(raw)); state != want {
			t.Errorf("data of depth %d: got %v", n, state)
		}
		if refused := scanRule(t, `{"error":`+raw+`}`) != 0; refused != (want == ErrorUnnamed) {
			t.Errorf("data of depth %d in a frame: refused is %v", n, refused)
		}
	}
}

func TestReadRetry(t *testing.T) {
	for _, c := range []struct {
		raw    string
		wait   int
		reason string
		ok     bool
	}{
		{``, 0, "", true},
		{`null`, 0, "", true},
		{`{"waitForMs":2000,"reason":"starting"}`, 2000, "starting", true},
		{`{ "reason" : "\u0061" , "waitForMs" : 1 }`, 1, "a", true},
		{`{"waitForMs":2147483647}`, 2147483647, "", true},
		{`{"waitForMs":5,"reason":null,"x":{}}`, 5, "", true},
		{`{"waitForMs":1.0}`, 1, "", true},
		{`{"waitForMs":1e3}`, 1000, "", true},
		{`{"waitForMs":0.5e1}`, 5, "", true},
		{`{"waitForMs":0}`, 0, "", false},
		{`{"waitForMs":-0}`, 0, "", false},
		{`{"waitForMs":-1}`, 0, "", false},
		{`{"waitForMs":0.5}`, 0, "", false},
		{`{"waitForMs":1.5,"reason":"a"}`, 0, "", false},
		{`{"waitForMs":2147483648}`, 0, "", false},
		{`{"waitForMs":1e400}`, 0, "", false},
		{`{"waitForMs":1e-400}`, 0, "", false},
		{`{"waitForMs":"50"}`, 0, "", false},
		{`{"waitForMs":null}`, 0, "", false},
		{`{"waitForMs":true}`, 0, "", false},
		{`{"waitForMs":[1]}`, 0, "", false},
		{`{"waitForMs":01}`, 0, "", false},
		{`{"waitForMs":0x10}`, 0, "", false},
		{`{"waitForMs":1_0}`, 0, "", false},
		{`{"waitForMs":50,"waitForMs":60}`, 0, "", false},
		{`{"waitforms":50}`, 0, "", false},
		{`{"reason":"a"}`, 0, "", false},
		{`{}`, 0, "", false},
		{`[50]`, 0, "", false},
		{`50`, 0, "", false},
		{`"50"`, 0, "", false},
		{`false`, 0, "", false},
		{`{"waitForMs":50`, 0, "", false},
		{`{"waitForMs":50} x`, 0, "", false},
	} {
		wait, reason, err := ReadRetry([]byte(c.raw))
		if wait != c.wait || reason != c.reason || (err == nil) != c.ok || err != nil && !errors.Is(err, ErrRetry) {
			t.Errorf("%s: got %d, %q, %v", c.raw, wait, reason, err)
		}
	}
}

func TestFailuresAllocateLittle(t *testing.T) {
	errorValue := []byte(`{"text":"denied","data":{"code":"E1"}}`)
	retryValue := []byte(`{"waitForMs":2000,"reason":"` + strings.Repeat("x", 40) + `"}`)
	null := []byte(`null`)
	if n := testing.AllocsPerRun(100, func() { ReadError(nil); ReadError(null); ReadRetry(nil); ReadRetry(null) }); n != 0 {
		t.Errorf("%v allocations for nothing", n)
	}
	if n := testing.AllocsPerRun(100, func() { ReadError(errorValue) }); n > 4 {
		t.Errorf("%v allocations for an error", n)
	}
	if n := testing.AllocsPerRun(100, func() { ReadRetry(retryValue) }); n > 4 {
		t.Errorf("%v allocations for a retry", n)
	}
}
