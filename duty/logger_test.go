package duty

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/duty/field"
)

func TestLines(t *testing.T) {
	var out output
	l := NewLogger(LogConfig{Out: &out, Wall: wall})
	forward := l.With(field.Duty("forward"), field.Node("worker-1"))
	for _, row := range []struct {
		name string
		do   func()
		want string
	}{
		{"below the level", func() { l.Debug("frame-read") }, ""},
		{"no fields", func() { l.Info("started") }, head("INFO", "started") + "}\n"},
		{"fields", func() { l.Warn("call-slow", field.Method("getClusterConfig"), field.Duration(1500*time.Millisecond)) },
			head("WARN", "call-slow") + `,"method":"getClusterConfig","durationSeconds":1.5}` + "\n"},
		{"bound fields", func() { forward.Error("node-lost", field.CloseCode(1006), field.Error(errors.New("text"))) },
			head("ERROR", "node-lost") + `,"duty":"forward","node":"worker-1","closeCode":1006,"error":"*errors.errorString"}` + "\n"},
		{"a bound field given again", func() { forward.Info("node-bound", field.Node("worker-2")) },
			head("INFO", "node-bound") + `,"duty":"forward","node":"worker-2"}` + "\n"},
		{"fields that say nothing", func() { l.Info("started", field.Error(nil), field.Node("")) }, head("INFO", "started") + "}\n"},
		{"a withheld value", func() { l.Info("node-refused", field.Node("a b")) }, head("INFO", "node-refused") + `,"node":"[withheld]"}` + "\n"},
		{"a message that is no name", func() { l.Info("Started the relay") }, head("INFO", "[withheld]") + "}\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.do()
			if diff := cmp.Diff(row.want, out.take()); diff != "" {
				t.Error(diff)
			}
		})
	}
	for labels, want := range map[string]float64{"debug": 0, "info": 5, "warn": 1, "error": 1} {
		if got := value(l.Metrics(), "relay_log_written_lines_total", labels); got != want {
			t.Errorf("%s lines: %v, want %v", labels, got, want)
		}
	}
	if got := value(l.Metrics(), "relay_log_withheld_values_total"); got != 1 {
		t.Errorf("withheld %v, want 1", got)
	}
}

func TestTextFormat(t *testing.T) {
	var out output
	l := NewLogger(LogConfig{Out: &out, Wall: wall, Format: Text})
	l.Info("node-lost", field.Node("worker-1"), field.Error(fmt.Errorf("%w", errors.ErrUnsupported)))
	want := `time=2026-01-02T03:04:05.000Z level=INFO msg=node-lost node=worker-1 error="unsupported operation"` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestLevelChangesWhileRunning(t *testing.T) {
	var out output
	l := NewLogger(LogConfig{Out: &out, Wall: wall})
	child := l.With(field.Duty("hub"))
	foreign := slog.New(l.Handler("library"))

	l.SetLevel(slog.LevelDebug)
	child.Debug("packet-dropped")
	foreign.Debug("x")
	if got, want := out.take(), head("DEBUG", "packet-dropped")+`,"duty":"hub"}`+"\n"+head("DEBUG", "foreign-line")+`,"source":"library","bytes":1}`+"\n"; got != want {
		t.Errorf("at debug: %s", got)
	}
	l.SetLevel(slog.LevelError)
	child.Warn("packet-dropped")
	foreign.Warn("x")
	l.ErrorLog("library").Print("x")
	if got := out.take(); got != "" {
		t.Errorf("at error: %s", got)
	}
	if child.Enabled(slog.LevelWarn) || !child.Enabled(slog.LevelError) {
		t.Errorf("Enabled does not follow")
	}
}

func TestParse(t *testing.T) {
	for s, want := range map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError} {
		if got, err := ParseLevel(s); err != nil || got != want {
			t.Errorf("level %s: %v, %v", s, got, err)
		}
	}
	for s, want := range map[string]Format{"json": JSON, "text": Text} {
		if got, err := ParseFormat(s); err != nil || got != want {
			t.Errorf("format %s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "INFO", "info+1", "trace"} {
		if _, err := ParseLevel(s); err == nil || err.Error() != "log level: want debug, info, warn or error" {
			t.Errorf("level %q: %v", s, err)
		}
		if _, err := ParseFormat(s); err == nil || err.Error() != "log format: want json or text" {
			t.Errorf("format %q: %v", s, err)
		}
	}
}

func TestNilLoggerSaysNothing(t *testing.T) {
	var l *Logger
	l.Info("started")
	l.SetLevel(slog.LevelDebug)
	l.With(field.Node("a")).Error("started")
	l.ErrorLog("library").Print("x")
	slog.New(l.Handler("library")).Error("x")
	if l.Enabled(slog.LevelError) || !l.Recovered("x") || l.Recovered(nil) || len(l.Metrics().Snapshot()) != 0 {
		t.Errorf("a nil logger is not silent")
	}
	NewEvents(EventsConfig{}).Publish(nodeBound)
}

// A message, a source, a hint and a sentence must be constants of the
// program. Go refuses to compile a call with a variable because the type's
// name cannot be spelled elsewhere: so the type must stay unexported and must
// not become an alias of string.
func TestTextsAreConstants(t *testing.T) {
	parameter := func(f any) reflect.Type { return reflect.TypeOf(f).In(1) }
	for name, typ := range map[string]reflect.Type{
		"Debug": parameter((*Logger).Debug), "Info": parameter((*Logger).Info),
		"Warn": parameter((*Logger).Warn), "Error": parameter((*Logger).Error),
		"ErrorLog": parameter((*Logger).ErrorLog), "Handler": parameter((*Logger).Handler),
		"Check.Hint": reflect.TypeFor[Check]().Field(4).Type, "EventKind.Says": reflect.TypeFor[EventKind]().Field(3).Type,
	} {
		if typ.Name() != "constant" || !strings.HasSuffix(typ.PkgPath(), "/duty") || typ.Kind() != reflect.String {
			t.Errorf("%s takes a %v", name, typ)
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestLostLinesAreCounted(t *testing.T) {
	l := NewLogger(LogConfig{Out: failing{}})
	l.Info("started")
	if lost, written := value(l.Metrics(), "relay_log_lost_lines_total"), value(l.Metrics(), "relay_log_written_lines_total", "info"); lost != 1 || written != 0 {
		t.Errorf("lost %v, written %v", lost, written)
	}
}

func TestLinesOfManyWritersStayWhole(t *testing.T) {
	var out output
	l := NewLogger(LogConfig{Out: &out, Wall: wall})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				l.Info("node-bound", field.Node("worker-1"))
			}
		})
	}
	wg.Wait()
	line := head("INFO", "node-bound") + `,"node":"worker-1"}` + "\n"
	if got := out.String(); got != strings.Repeat(line, 400) {
		t.Errorf("%d bytes, want 400 equal lines", len(got))
	}
}

func explode(list []int, text string) int { return list[len(text)] }

func TestRecovered(t *testing.T) {
	var out output
	l := NewLogger(LogConfig{Out: &out, Wall: wall})
	handle := func(f func()) (caught bool) {
		defer func() { caught = l.Recovered(recover(), field.Method("getClusterConfig")) }()
		f()
		return false
	}
	if handle(func() {}) || out.take() != "" {
		t.Errorf("no panic was recovered as one")
	}
	if !handle(func() { explode(nil, "body") }) {
		t.Errorf("a panic was not reported")
	}
	got := out.take()
	want := head("ERROR", "panic-recovered") + `,"method":"getClusterConfig","panic":"runtime error: index out of range [4] with length 0","stack":"serve.zone/relay/duty.explode logger_test.go:`
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
	if !strings.Contains(got, "; serve.zone/relay/duty.TestRecovered") || strings.Contains(got, "gopanic") || strings.Contains(got, "0x") {
		t.Errorf("the stack is %s", got)
	}
	if !handle(func() { panic("body") }) || strings.Contains(out.String(), "body") {
		t.Errorf("%s", out.String())
	}
	if got := value(l.Metrics(), "relay_log_recovered_panics_total"); got != 2 {
		t.Errorf("counted %v panics, want 2", got)
	}
}
