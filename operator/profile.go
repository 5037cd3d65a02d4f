package operator

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"sync"
	"time"
)

// serveProfile answers below /debug/pprof/, with the paths and parameters that
// go tool pprof and go tool trace use. It is made of runtime/pprof, since
// net/http/pprof puts itself into http.DefaultServeMux when it is imported, shows
// the command line and prints arguments of functions.
func (o *Operator) serveProfile(w http.ResponseWriter, r *http.Request) outcome {
	if !isFromHere(w, r, "profiles") {
		return forbidden
	}
	q, err := readQuery(r)
	if err != nil {
		return misuse(w, err)
	}
	switch name := strings.TrimPrefix(r.URL.Path, profilePrefix); name {
	case "":
		say(w, http.StatusOK, profileIndex())
		return served
	case "profile":
		return o.record(w, r, q, cpuProfile)
	case "trace":
		return o.record(w, r, q, executionTrace)
	default:
		return o.dump(w, q, pprof.Lookup(name))
	}
}

func profileIndex() string {
	lines := []string{"profile?seconds=N", "trace?seconds=N"}
	for _, p := range pprof.Profiles() {
		lines = append(lines, p.Name()+"?debug=1")
	}
	return strings.Join(lines, "\n")
}

// recording is a profile over time.
type recording struct {
	fallback, longest uint64 // seconds
	start             func(io.Writer) error
	stop              func()
}

var (
	cpuProfile     = recording{defaultProfileSeconds, maxProfileSeconds, pprof.StartCPUProfile, pprof.StopCPUProfile}
	executionTrace = recording{defaultTraceSeconds, maxTraceSeconds, trace.Start, trace.Stop}
)

// record takes a profile for the seconds asked for, or until the client or the
// endpoint leaves.
func (o *Operator) record(w http.ResponseWriter, r *http.Request, q query, kind recording) outcome {
	seconds, err := q.number("seconds", kind.fallback, 1, kind.longest)
	if err != nil {
		return misuse(w, err)
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", binaryType)
		return served
	}
	if !o.profiles.take() {
		return busy(w, overloaded, "a profile is being taken already")
	}
	defer o.profiles.give()
	length := time.Duration(seconds) * time.Second
	// The runtime writes while it records, at the client's pace.
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(length + answerWait))
	w.Header().Set("Content-Type", binaryType)
	if kind.start(w) != nil {
		return busy(w, overloaded, "a profile is being taken already")
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-o.leaving:
	case <-r.Context().Done():
	}
	kind.stop()
	return served
}

// dump writes a profile of the moment. Its place is free before the last byte of it
// leaves: who has the whole may ask again at once.
func (o *Operator) dump(w http.ResponseWriter, q query, profile *pprof.Profile) outcome {
	if profile == nil {
		return nothing(w)
	}
	debug, collect, err := readDump(q)
	if err != nil {
		return misuse(w, err)
	}
	if !o.dumps.take() {
		return busy(w, overloaded, "a profile is being taken already")
	}
	give := sync.OnceFunc(o.dumps.give)
	defer give()
	if collect {
		runtime.GC()
	}
	var b bytes.Buffer
	if err := profile.WriteTo(&b, debug); err != nil {
		panic(fmt.Errorf("write a profile to memory: %w", err))
	}
	contentType := binaryType
	if debug > 0 {
		contentType = textType
	}
	sendHead(w, http.StatusOK, contentType, b.Len())
	w.Write(b.Next(max(b.Len()-1, 0)))
	give()
	w.Write(b.Bytes())
	return served
}

// readDump reads the parameters of a profile of the moment. With debug=2 the
// runtime prints the words of arguments, which may be parts of keys.
func readDump(q query) (debug int, collect bool, err error) {
	if q.has("seconds") {
		return 0, false, errors.New("seconds is a parameter of profile and trace alone")
	}
	n, err := q.number("debug", 0, 0, 1)
	if err != nil {
		return 0, false, err
	}
	gc, err := q.number("gc", 0, 0, 1)
	return int(n), gc == 1, err
}
