package rig

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What every test asserts at its end.
func TestMisbehaviourFailsTheTest(t *testing.T) {
	for behaviour, want := range map[string][]string{
		"does nothing wrong": nil,
		"prints":             {"a secret is shown: relay bearer (plain) in standard output"},
		"dumps":              {"a secret is shown: TLS key (base64) in standard error"},
		"shows":              {"a secret is shown: a marked secret (base64) in /status"},
		"explains":           {"a secret is shown: relay bearer (plain) in /explain?from="},
		"hides":              {"search /explain?from=192.0.2.1&to=192.0.2.2: Forbidden"},
		"heads":              {"a secret is shown: relay bearer (plain) in /metrics"},
		"fails":              {"search /events: Internal Server Error"},
		"writes":             {"the relay has created work/state", "a secret is shown: relay bearer (plain) in created work/state"},
		"temporary":          {"the relay has created tmp/"},
		"home":               {"the relay has created home/.relay"},
		"changes":            {"the relay has changed etc/credential"},
		"last words":         {"a secret is shown: relay bearer (plain) in standard output", "the relay has created work/state"},
		"races":              {`the relay wrote "WARNING: DATA RACE"`},
		"exits":              {"the relay exited with code 5 after SIGTERM"},
		"stays":              {"the relay has not ended within 1s of SIGTERM", "SIGQUIT: quit"},
		"refuses":            {"start the relay", "the relay has ended by itself with exit code 1"},
	} {
		t.Run(behaviour, func(t *testing.T) {
			r := tell(t, func(tb testing.TB) { New(tb, pretending(behaviour)) })
			if r.failed != (want != nil) {
				t.Errorf("failed: %t\n%s", r.failed, r)
			}
			for _, text := range want {
				if !r.has(text) {
					t.Errorf("%q is not in\n%s", text, r)
				}
			}
			if r.failed && !r.has("log: the end of the relay's output:") {
				t.Errorf("the log is not shown:\n%s", r)
			}
		})
	}
}

func TestARelayThatDiesFailsTheTest(t *testing.T) {
	r := tell(t, func(tb testing.TB) {
		r := New(tb, pretending("dies"))
		r.Eventually("something", func() error {
			_, err := r.fetch("/readyz")
			if err == nil {
				err = errors.New("never")
			}
			return err
		})
	})
	unnoticed := tell(t, func(tb testing.TB) {
		r := New(tb, pretending("dies"))
		<-r.process.ended
	})
	if !unnoticed.failed || !unnoticed.has("the relay has ended by itself with exit code 7") {
		t.Error(unnoticed)
	}
	// It dies at the first question, which the rig may have to ask again.
	if !r.has("wait for something: ") && !r.has("start the relay: ") || !r.has("the relay has ended by itself with exit code 7") {
		t.Error(r)
	}
}

func TestProcessControl(t *testing.T) {
	r := New(t, pretending("plain"), NotStarted())
	if r.Running() {
		t.Fatal("runs although it was not started")
	}
	r.Start()
	first := r.PID()
	r.Kill()
	if r.Running() {
		t.Fatal("runs although it was killed")
	}
	r.Start()
	second := r.PID()
	r.Restart()
	third := r.PID()
	if first == second || second == third {
		t.Errorf("processes %d, %d, %d", first, second, third)
	}
	if got := len(r.WaitLogged("started", 3)); got != 3 {
		t.Errorf("%d starts in the log", got)
	}
	r.Signal(syscall.SIGTERM)
	if code := r.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	r.Start()
	r.Signal(syscall.SIGKILL)
	if code := r.Wait(); code != -1 {
		t.Errorf("exit code %d of a killed process", code)
	}
	// One that was told to end and is not waited for is no failure.
	r.Start()
	r.Signal(syscall.SIGTERM)
}

func TestRunWaitsForTheEnd(t *testing.T) {
	r := New(t, pretending("refuses"), NotStarted())
	if code := r.Run(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(string(r.Output()), `"run":"refuses"`) {
		t.Errorf("output %s", r.Output())
	}
}

func TestReadinessOfARelayThatIsNotReady(t *testing.T) {
	r := New(t, pretending("plain"))
	if r.Ready() {
		t.Error("ready")
	}
	if got := r.Readiness().Against(); len(got) != 1 || got[0] != "d/c: pending why" {
		t.Errorf("against %q", got)
	}
	if f := r.WaitCheck("d", "c", "pending", "why"); f.Duty != "d" {
		t.Errorf("finding %+v", f)
	}
	err := r.poll(20*time.Millisecond, func() error { return errors.New("not yet") })
	if err == nil || err.Error() != "not yet (after 20ms)" {
		t.Errorf("poll: %v", err)
	}
}

// A relay does not outlive a test process that had no chance to end it.
func TestNoOrphans(t *testing.T) {
	r := New(t, pretending("parent"), NotStarted())
	r.launch()
	pid := r.WaitLogged("orphan", 1)[0].Text("pid")
	alive := func() bool {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		_, after, _ := strings.Cut(string(stat), ") ")
		return err == nil && !strings.HasPrefix(after, "Z")
	}
	if !alive() {
		t.Fatal("the process that is to be left is not there")
	}
	r.Kill()
	r.Eventually("the end of the process that was left", func() error {
		if alive() {
			return errors.New("it is there")
		}
		return nil
	})
}
