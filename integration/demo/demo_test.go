package demo_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// steps are what is shown, in order.
var steps = []string{
	"start", "register", "exchange", "network", "download", "denied", "granted", "withdrawn",
	"ingress", "hold", "outage", "return", "stop",
}

// A step of the text: its number, "ok", how long it took, its name and its claim.
var stepLine = regexp.MustCompile(`^ ?([0-9]+) ok +[0-9]+\.[0-9]{2} s  ([a-z]+) +\S.*$`)

// R94, R97 as far as the duties exist: with one command everything is walked through, every
// step holds and shows what it stands on, and the relay drains.
func TestOnce(t *testing.T) {
	t.Parallel()
	r := start(t, "--once")
	var shown []string
	var facts int
	last := ""
	for {
		line, err := r.line()
		if err != nil {
			break
		}
		switch m := stepLine.FindStringSubmatch(line); {
		case m != nil:
			if len(shown) > 0 && facts == 0 {
				t.Errorf("step %s shows nothing", shown[len(shown)-1])
			}
			shown, facts = append(shown, m[2]), 0
		case len(shown) > 0 && strings.HasPrefix(line, "     "):
			facts++
		case line != "":
			last = line
		}
	}
	if !slices.Equal(shown, steps) {
		t.Errorf("shown are %q", shown)
	}
	if !strings.HasPrefix(last, "All 13 steps held, in ") {
		t.Errorf("it ends with %q", last)
	}
	r.finish(0)
	if strings.ContainsAny(r.told.String(), "\x1b\r") {
		t.Error("an output that is no terminal gets control characters")
	}
}

// Without --once the relay goes on behind the walk, with traffic, and can be looked at;
// SIGINT ends it in order. Every line is an object.
func TestJSON_LiveUntilASignal(t *testing.T) {
	t.Parallel()
	r := start(t, "--json")
	var outcomes []string
	var live int
	for {
		o, ok := r.object()
		if !ok {
			t.Fatal("the output ended")
		}
		switch o.Kind {
		case "demo":
			var names []string
			if err := json.Unmarshal(o.Names, &names); err != nil || !slices.Equal(names, steps) {
				t.Errorf("steps %q, %v", names, err)
			}
		case "step":
			outcomes = append(outcomes, o.Name+" "+o.Outcome)
			if len(o.Evidence) == 0 || o.Evidence[0].From == "" || o.Evidence[0].Says == "" {
				t.Errorf("step %s: evidence %+v", o.Name, o.Evidence)
			}
		case "live":
			live++
			if live == 1 {
				lookAt(t, o.Operator)
				paste(t, o.Commands)
				continue
			}
			if len(o.Commands) > 0 {
				t.Errorf("commands are shown again: %q", o.Commands)
			}
			if o.Rounds == 0 || o.Faults > 0 || o.Packets == 0 {
				t.Errorf("live: %d rounds, %d faults (%s), %d packets", o.Rounds, o.Faults, o.Fault, o.Packets)
			}
		default:
			t.Fatalf("an object of kind %s", o.Kind)
		}
		if live == 2 {
			break
		}
	}
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for {
		o, ok := r.object()
		if !ok {
			break
		}
		kinds = append(kinds, o.Kind)
		switch o.Kind {
		case "step":
			outcomes = append(outcomes, o.Name+" "+o.Outcome)
		case "end":
			if !o.Held {
				t.Error("not everything held")
			}
		}
	}
	if !slices.Equal(kinds, []string{"step", "end"}) {
		t.Errorf("behind the signal: %q", kinds)
	}
	var want []string
	for _, name := range steps {
		want = append(want, name+" held")
	}
	if !slices.Equal(outcomes, want) {
		t.Errorf("outcomes %q", outcomes)
	}
	r.finish(0)
}

// lookAt asks for the pages that a demonstration points to.
func lookAt(t *testing.T, operator string) {
	t.Helper()
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for path, says := range map[string]string{"/status": `"node-a"`, "/events": `"cloudly-registered"`, "/metrics": "relay_hub_"} {
		response, err := client.Get(operator + path)
		if err != nil {
			t.Error(err)
			continue
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), says) {
			t.Errorf("%s: %s, %v; it does not say %s", path, response.Status, err, says)
		}
	}
}

// paste runs the commands that a demonstration says to look at it with, as whoever copies
// them into a shell.
func paste(t *testing.T, commands []string) {
	t.Helper()
	if len(commands) != 2 {
		t.Errorf("the commands are %q", commands)
	}
	for _, command := range commands {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput()
		cancel()
		if err != nil || !strings.Contains(string(out), "node-c") {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}

// A peer that misbehaves fails the step that looks at it: it says what it expected and what
// it found, the rest is skipped by name, and the exit code is 1.
func TestABrokenStepIsNamed(t *testing.T) {
	for what, test := range map[string]struct{ step, found string }{
		"grant":   {"download", "no-grant"},
		"renewal": {"hold", "escrow-run-invalid"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := start(t, "--once", "--json", "--break="+what)
			failing := slices.Index(steps, test.step)
			var names []string
			for {
				o, ok := r.object()
				if !ok {
					break
				}
				switch {
				case o.Kind == "end" && o.Held:
					t.Error("everything is said to have held")
				case o.Kind != "step":
					continue
				}
				names = append(names, o.Name)
				want := "held"
				if n := len(names) - 1; n == failing {
					want = "failed"
					if o.Expected == "" || !strings.Contains(o.Found, test.found) {
						t.Errorf("expected %q, found %q", o.Expected, o.Found)
					}
				} else if n > failing {
					want = "skipped"
				}
				if o.Kind == "step" && o.Outcome != want {
					t.Errorf("%s: %s, want %s", o.Name, o.Outcome, want)
				}
			}
			if !slices.Equal(names, steps) {
				t.Errorf("shown are %q", names)
			}
			r.finish(1)
		})
	}
}

// A signal in the middle of the walk ends it in order as well; not every step held then.
func TestASignalInTheMiddle(t *testing.T) {
	t.Parallel()
	r := start(t, "--json", "--size=256") // whose download takes seconds
	for {
		o, ok := r.object()
		if !ok {
			t.Fatal("the output ended")
		}
		if o.Kind == "step" && o.Name == "network" {
			break
		}
	}
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	o, ok := r.object()
	if !ok || o.Name != "download" || o.Outcome != "interrupted" {
		t.Errorf("behind the signal: %+v", o)
	}
	r.finish(1)
}
