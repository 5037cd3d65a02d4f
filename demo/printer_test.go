package demo

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var shownFact = Fact{From: "/status", Says: "three nodes", Values: map[string]any{"nodes": 3, "at": time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC)}}

// show tells a printer of one whole demonstration.
func show(p Printer) {
	p.Open(Opening{Kind: kindOpen, Version: "1.2.3", Break: BreakGrant, Steps: []string{"one", "two", "three", "four"}})
	first := Result{Number: 1, Name: "one", Title: "The first"}
	p.Begin(first)
	first.Outcome, first.Seconds, first.Facts = Held, 1.234, []Fact{shownFact}
	p.Step(first)
	p.Live(Live{Kind: kindLive, Operator: "http://127.0.0.1:9", Commands: []string{"./relay status", "./relay explain"}})
	p.Live(Live{Kind: kindLive, Operator: "http://127.0.0.1:9", Seconds: 65, Rounds: 64, Faults: 1, Fault: "no route",
		Downloaded: 3 << 20, ToCloudly: 7, ToNodes: 6, Packets: 1, HTTPS: 5})
	second := Result{Number: 2, Name: "two", Title: "The second"}
	p.Begin(second)
	second.Outcome, second.Facts, second.Expected, second.Found = Failed, []Fact{}, "all", "none"
	p.Step(second)
	p.Step(Result{Number: 3, Name: "three", Title: "The third", Outcome: Skipped, Facts: []Fact{}})
	p.Step(Result{Number: 4, Name: "four", Title: "The fourth", Outcome: Interrupted, Facts: []Fact{}})
	p.Close(Summary{Kind: kindEnd, Seconds: 2.5, Steps: map[Outcome]int{Held: 1, Failed: 1, Skipped: 1, Interrupted: 1}})
}

func TestText(t *testing.T) {
	var b strings.Builder
	show(NewText(&b, Terminal{}))
	_, got, _ := strings.Cut(b.String(), "\n\n")
	_, got, _ = strings.Cut(got, "\n\n")
	want := ` 1 ok       1.23 s  one        The first
     /status   three nodes

The relay goes on, with a little traffic. Look at it from another terminal:

    http://127.0.0.1:9/status
    http://127.0.0.1:9/events
    http://127.0.0.1:9/metrics
    http://127.0.0.1:9/readyz?verbose
    ./relay status
    ./relay explain

Ctrl-C stops it.

1m5s: 3 MiB downloaded, 7 requests up, 6 down, 1 packet, 5 by HTTPS, 1 fault (no route)
 2 FAILED   0.00 s  two        The second
     expected  all
     found     none
 3 skipped          three      The third
 4 interrupted  0.00 s  four       The fourth

Not every step held, in 2.5 s: 1 held, 1 failed, 1 interrupted, 1 skipped.
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if head := b.String(); !strings.Contains(head, "relay 1.2.3,") || !strings.Contains(head, "--break=grant") {
		t.Errorf("it does not say what is shown:\n%s", head)
	}
	if strings.ContainsAny(b.String(), "\x1b\r") {
		t.Error("plain text has control characters")
	}
	b.Reset()
	NewText(&b, Terminal{}).Close(Summary{Held: true, Seconds: 3, Steps: map[Outcome]int{Held: 13}})
	if b.String() != "\nAll 13 steps held, in 3.0 s.\n" {
		t.Errorf("says %q", b.String())
	}
}

// On a terminal a line says what is going on, and is gone when that has ended. What
// remains is what plain text has, but for colours.
func TestTextOnATerminal(t *testing.T) {
	var plainText, b strings.Builder
	show(NewText(&plainText, Terminal{}))
	show(NewText(&b, Terminal{Rewrite: true, Colour: true}))
	if got := b.String(); !strings.Contains(got, eraseLine+" 1 ...  The first") || !strings.Contains(got, green+"ok") || !strings.Contains(got, red+"FAILED") {
		t.Errorf("no hint or no colour:\n%q", got)
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, eraseLine) {
			line = line[strings.LastIndex(line, eraseLine)+len(eraseLine):]
		}
		lines = append(lines, line)
	}
	screen := strings.Join(lines, "")
	for _, code := range []string{bold, dim, red, green, yellow, plain} {
		screen = strings.ReplaceAll(screen, code, "")
	}
	// Live traffic is a line that is replaced here, and one of many there.
	want := slices.DeleteFunc(strings.SplitAfter(plainText.String(), "\n"), func(l string) bool { return strings.HasPrefix(l, "1m5s:") })
	if diff := cmp.Diff(strings.Join(want, ""), screen); diff != "" {
		t.Errorf("the screen (-plain +terminal):\n%s", diff)
	}
}

func TestJSON(t *testing.T) {
	var b strings.Builder
	show(NewJSON(&b))
	want := `{"kind":"demo","version":"1.2.3","once":false,"break":"grant","steps":["one","two","three","four"]}
{"kind":"step","step":1,"name":"one","title":"The first","outcome":"held","seconds":1.234,"evidence":[{"from":"/status","says":"three nodes","values":{"at":"2026-12-01T04:00:00Z","nodes":3}}]}
{"kind":"live","operator":"http://127.0.0.1:9","commands":["./relay status","./relay explain"],"seconds":0,"rounds":0,"faults":0,"downloadedBytes":0,"toCloudly":0,"toNodes":0,"packets":0,"https":0}
{"kind":"live","operator":"http://127.0.0.1:9","seconds":65,"rounds":64,"faults":1,"fault":"no route","downloadedBytes":3145728,"toCloudly":7,"toNodes":6,"packets":1,"https":5}
{"kind":"step","step":2,"name":"two","title":"The second","outcome":"failed","seconds":0,"evidence":[],"expected":"all","found":"none"}
{"kind":"step","step":3,"name":"three","title":"The third","outcome":"skipped","seconds":0,"evidence":[]}
{"kind":"step","step":4,"name":"four","title":"The fourth","outcome":"interrupted","seconds":0,"evidence":[]}
{"kind":"end","held":false,"seconds":2.5,"steps":{"failed":1,"held":1,"interrupted":1,"skipped":1}}
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// full takes some writes and fails at the one behind them.
type full struct{ left, writes int }

func (f *full) Write(p []byte) (int, error) {
	if f.writes++; f.writes > f.left {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

// The first error of an output is told, and nothing is written behind it.
func TestAnOutputThatFails(t *testing.T) {
	for name, printer := range map[string]func(*full) Printer{
		"text": func(f *full) Printer { return NewText(f, Terminal{}) },
		"json": func(f *full) Printer { return NewJSON(f) },
	} {
		f := &full{left: 2}
		p := printer(f)
		if p.Err() != nil {
			t.Errorf("%s: %v before a write", name, p.Err())
		}
		show(p)
		if p.Err() == nil || p.Err().Error() != "no space left" || f.writes != 3 {
			t.Errorf("%s: %v, %d writes", name, p.Err(), f.writes)
		}
	}
}

// Lines are broken between words alone, and no sooner than they have to be.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,12}`), 0, 30).Draw(t, "words")
		width := rapid.IntRange(1, 40).Draw(t, "width")
		lines := wrap(strings.Join(words, " "), width)
		var got []string
		for i, line := range lines {
			in := strings.Fields(line)
			got = append(got, in...)
			if len(line) > width && len(in) != 1 {
				t.Errorf("%q is longer than %d", line, width)
			}
			if i > 0 && len(in) > 0 && len(lines[i-1])+1+len(in[0]) <= width {
				t.Errorf("%q would have fitted behind %q", in[0], lines[i-1])
			}
		}
		if !slices.Equal(got, words) {
			t.Errorf("%q became %q", words, got)
		}
	})
}

// A line that is to be replaced fits the narrowest terminal, or half of it would stay.
func TestHintsAreNarrow(t *testing.T) {
	var b strings.Builder
	p := NewText(&b, Terminal{Rewrite: true})
	c := &cluster{cfg: Config{Size: MaximumSize}}
	for i, s := range c.steps() {
		b.Reset()
		p.Begin(Result{Number: i + 1, Name: s.name, Title: s.title})
		if line := strings.TrimPrefix(b.String(), eraseLine); utf8.RuneCountInString(line) > narrow {
			t.Errorf("%q has %d columns", line, utf8.RuneCountInString(line))
		}
	}
}

func TestWords(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB", 1 << 20: "1 MiB", 64 << 20: "64 MiB", 3 << 19: "1.5 MiB", 1 << 30: "1024 MiB",
	} {
		if got := sizeText(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	if count(1, "node") != "1 node" || count(0, "node") != "0 nodes" || count(uint64(2), "node") != "2 nodes" {
		t.Error("numbers of things are wrong")
	}
}
