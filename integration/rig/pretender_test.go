package rig

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// behaviourVariable makes a program of this test binary that the rig takes for a
// relay, and that misbehaves as told: what no right relay does must be noticed.
const behaviourVariable = "RIG_TEST_BEHAVIOUR"

// pretending makes a rig of such a program. Its Cloudly never hears of it.
func pretending(behaviour string) Option {
	return func(o *options) {
		o.program = os.Executable
		if behaviour == "stays" { // the others may take as long as a busy machine lets them
			o.stopWait = time.Second
		}
		Variable(behaviourVariable, behaviour)(o)
	}
}

// pretend is that program. It does as little as the rig needs: it answers the
// operator's paths and ends on SIGTERM.
func pretend(behaviour string) (code int) {
	is := func(name string) bool { return strings.Contains(behaviour, name) }
	flags := map[string]string{}
	for _, argument := range os.Args[1:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		flags[name] = value
	}
	fmt.Fprintf(os.Stderr, "{\"msg\":\"started\",\"run\":%q}\n", behaviour)
	switch {
	case is("refuses"):
		return 1
	case is("parent"):
		return leaveOrphan()
	case is("orphan"):
		time.Sleep(DefaultWait)
		return 0
	}
	secret, err := os.ReadFile(flags["credential-file"])
	if err != nil {
		return 1
	}
	key, err := os.ReadFile(flags["tls-key-file"])
	if err != nil {
		return 1
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	dying := make(chan struct{})
	listener, err := net.Listen("tcp4", flags["operator-listen"])
	if err != nil {
		return 2
	}
	defer listener.Close()
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/status" && is("shows"):
			fmt.Fprintf(w, `{"duties":{"x":{"leak":%q}}}`, base64.StdEncoding.EncodeToString(secret))
		case r.URL.Path == "/explain" && is("explains"):
			fmt.Fprintf(w, `{"sentence":%q}`, secret)
		case r.URL.Path == "/explain" && is("hides"):
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/metrics" && is("heads"):
			w.Header().Set("X-Leak", string(secret))
		case r.URL.Path == "/events" && is("fails"):
			w.WriteHeader(http.StatusInternalServerError)
		case r.URL.Path == "/readyz":
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"ready":false,"findings":[{"duty":"d","check":"c","state":"pending","reason":"why"},{"duty":"d","check":"advised","advice":true,"state":"failing","reason":"why"}]}`)
		case r.URL.Path == "/livez" && is("dies"):
			close(dying)
		}
	}))
	switch {
	case is("prints"):
		fmt.Println("the credential is", string(secret))
	case is("dumps"):
		fmt.Fprintln(os.Stderr, string(key))
	case is("writes"):
		os.WriteFile("state", secret, 0o600)
	case is("temporary"):
		os.CreateTemp("", "")
	case is("home"):
		home, _ := os.UserHomeDir()
		os.Mkdir(filepath.Join(home, ".relay"), 0o700)
	case is("changes"):
		os.Chmod(flags["credential-file"], 0o400)
	case is("races"):
		fmt.Fprintln(os.Stderr, "WARNING: DATA RACE")
	}
	select {
	case <-dying:
		return 7
	case <-terminated:
	}
	if is("last words") {
		fmt.Println("the credential was", string(secret))
		os.WriteFile("state", nil, 0o600)
	}
	if is("stays") {
		select {}
	}
	if is("exits") {
		return 5
	}
	return 0
}

// leaveOrphan starts a process, says which, and is killed.
func leaveOrphan() int {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{behaviourVariable + "=orphan"}
	p, err := launch(cmd)
	if err != nil {
		return 1
	}
	fmt.Fprintf(os.Stderr, "{\"msg\":\"orphan\",\"pid\":\"%d\"}\n", p.cmd.Process.Pid)
	<-p.ended
	return 0
}

// told is a test that only notes what it is told.
type told struct {
	testing.TB
	failed   bool
	lines    []string
	cleanups []func()
}

func (r *told) Helper()           {}
func (r *told) Failed() bool      { return r.failed }
func (r *told) Cleanup(f func())  { r.cleanups = append(r.cleanups, f) }
func (r *told) Log(a ...any)      { r.lines = append(r.lines, "log: "+fmt.Sprint(a...)) }
func (r *told) Error(a ...any)    { r.failed = true; r.lines = append(r.lines, fmt.Sprint(a...)) }
func (r *told) Fatal(a ...any)    { r.Error(a...); panic(r) }
func (r *told) String() string    { return strings.Join(r.lines, "\n") }
func (r *told) has(s string) bool { return strings.Contains(r.String(), s) }

func (r *told) Logf(format string, a ...any)   { r.Log(fmt.Sprintf(format, a...)) }
func (r *told) Errorf(format string, a ...any) { r.Error(fmt.Sprintf(format, a...)) }
func (r *told) Fatalf(format string, a ...any) { r.Fatal(fmt.Sprintf(format, a...)) }

// tell runs a test of its own whose failures are noted and returned.
func tell(t *testing.T, test func(testing.TB)) *told {
	t.Helper()
	r := &told{TB: t}
	guarded := func(f func()) {
		defer func() {
			if p := recover(); p != nil && p != any(r) {
				panic(p)
			}
		}()
		f()
	}
	guarded(func() { test(r) })
	for len(r.cleanups) > 0 {
		last := r.cleanups[len(r.cleanups)-1]
		r.cleanups = r.cleanups[:len(r.cleanups)-1]
		guarded(last)
	}
	return r
}
