package demo_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"serve.zone/relay/integration/rig"
)

const (
	// runWait is many times what a demonstration takes on two idle cores, also with the
	// race detector.
	runWait = 4 * time.Minute
	// lookEvery is how often the folder of a demonstration is looked for.
	lookEvery = 5 * time.Millisecond
)

// run is one run of `relay demo`.
type run struct {
	t      *testing.T
	cmd    *exec.Cmd
	dir    string // for temporary files
	stdout *bufio.Reader
	told   bytes.Buffer // what was read of stdout
	stderr bytes.Buffer

	seen    chan struct{} // closed when the secrets were looked for
	secrets map[string]string
	wait    sync.Once
	over    chan struct{} // closed when the process has ended
}

// start runs `relay demo` with these arguments, and a small file unless they name a size.
func start(t *testing.T, args ...string) *run {
	t.Helper()
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--size=") }) {
		args = append(args, "--size=2")
	}
	r := &run{t: t, dir: t.TempDir(), seen: make(chan struct{}), over: make(chan struct{})}
	r.cmd = exec.Command(rig.Program(t), append([]string{"demo"}, args...)...)
	r.cmd.Env = []string{"TMPDIR=" + r.dir, "TERM=xterm", "GORACE=atexit_sleep_ms=50"}
	r.cmd.Stderr = &r.stderr
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.stdout = bufio.NewReader(io.TeeReader(stdout, &r.told))
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(runWait, func() { r.cmd.Process.Kill() })
	go r.steal()
	t.Cleanup(func() {
		stuck.Stop()
		r.cmd.Process.Kill() // whoever has waited for its end before has ended it
		r.ended()
		<-r.seen
		if t.Failed() {
			t.Logf("relay demo %q:\n%s%s", args, r.told.String(), r.stderr.String())
		}
	})
	return r
}

// steal reads the secrets that lie in the folder of the demonstration while it runs.
func (r *run) steal() {
	defer close(r.seen)
	for {
		found := map[string]string{}
		for _, name := range []string{"credential", "tls.key"} {
			files, _ := filepath.Glob(filepath.Join(r.dir, "*", name))
			for _, file := range files {
				if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
					found[name] = string(text)
				}
			}
		}
		if len(found) == 2 {
			r.secrets = found
			return
		}
		select {
		case <-time.After(lookEvery):
		case <-r.over:
			return
		}
	}
}

// line returns the next line of output, or io.EOF behind the last.
func (r *run) line() (string, error) {
	line, err := r.stdout.ReadString('\n')
	if errors.Is(err, io.EOF) && line != "" {
		r.t.Errorf("the output ends in the middle of %q", line)
	}
	return strings.TrimSuffix(line, "\n"), err
}

// rest reads the output to its end.
func (r *run) rest() {
	if _, err := io.Copy(io.Discard, r.stdout); err != nil {
		r.t.Error(err)
	}
}

// ended returns the exit code, once the output was read.
func (r *run) ended() int {
	r.wait.Do(func() {
		r.cmd.Wait()
		close(r.over)
	})
	return r.cmd.ProcessState.ExitCode()
}

// finish reads the output to its end and checks what always holds: the exit code, that
// nothing is left behind, and that nothing secret was shown.
func (r *run) finish(code int) {
	r.t.Helper()
	r.rest()
	if got := r.ended(); got != code {
		r.t.Errorf("exit code %d, want %d", got, code)
	}
	if r.stderr.Len() > 0 {
		r.t.Errorf("standard error has %q", r.stderr.String())
	}
	left, err := os.ReadDir(r.dir)
	if err != nil || len(left) > 0 {
		r.t.Errorf("left behind: %v, %v", left, err)
	}
	<-r.seen
	bearer := r.secrets["credential"]
	key := strings.Split(strings.TrimSpace(r.secrets["tls.key"]), "\n")
	if len(bearer) < 64 || len(key) < 4 {
		r.t.Fatalf("the secrets were not found: %d of them", len(r.secrets))
	}
	secrets := []string{bearer[strings.LastIndex(bearer, "_")+1:]}
	secrets = append(secrets, key[2:len(key)-1]...) // every key begins alike
	for _, secret := range append(secrets, "clusterRelayToken_", "palletToken_", "clusterIngressToken_", "PRIVATE KEY", "eyJ") {
		const piece = 12
		for at := 0; at == 0 || at+piece <= len(secret); at += piece {
			if part := secret[at:min(at+piece, len(secret))]; strings.Contains(r.told.String(), part) {
				r.t.Errorf("a secret is shown: its part from %d on", at)
			}
		}
	}
}

// object is a line of --json.
type object struct {
	Kind     string          `json:"kind"`
	Names    json.RawMessage `json:"steps"`
	Name     string          `json:"name"`
	Outcome  string          `json:"outcome"`
	Evidence []struct {
		From string `json:"from"`
		Says string `json:"says"`
	} `json:"evidence"`
	Expected string   `json:"expected"`
	Found    string   `json:"found"`
	Operator string   `json:"operator"`
	Commands []string `json:"commands"`
	Rounds   int      `json:"rounds"`
	Faults   int      `json:"faults"`
	Fault    string   `json:"fault"`
	Packets  uint64   `json:"packets"`
	Held     bool     `json:"held"`
}

// object reads the next line as one, and returns false behind the last.
func (r *run) object() (object, bool) {
	r.t.Helper()
	line, err := r.line()
	if err != nil {
		return object{}, false
	}
	var o object
	if err := json.Unmarshal([]byte(line), &o); err != nil || o.Kind == "" {
		r.t.Fatalf("%q is no object with a kind: %v", line, err)
	}
	return o, true
}
