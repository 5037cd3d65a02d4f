package duty

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/duty/field"
)

// markers are secrets of every kind of contract §18. Each is unlike anything
// else in the output, so that one hit of a part of it is a leak.
var markers = map[string]string{
	"relay bearer":   "clusterRelayToken_cred-1_" + strings.Repeat("9f3b", 16),
	"node bearer":    "palletRuntimeToken_node-7_" + strings.Repeat("c41e", 16),
	"ingress bearer": "q7Zk2VtX9mB4nL8cR5wY1sD6fG3hJ0pAeUiOoTxKvQz",
	"JWT":            "eyJhbGciOiJIUzI1NiJ9.eyJ1c2VySWQiOiJwbGFudGVkIn0.dGhlLXBsYW50ZWQtc2lnbmF0dXJl",
	"PEM key":        "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIPlantedPlantedPlantedPlanted\n-----END PRIVATE KEY-----\n",
	"password":       "Correct Horse, Battery & Staple!",
	"noise key":      "8P3pQ0mVb5kYwz7cX1dRt6uJ2sLhA9eGfN4oKiBqZxE=",
	"control token":  strings.Repeat("70617373", 8),
	"body":           `{"request":{"bearer":"zq81xv","session":{"nodeId":"zq82xw"}}}`,
}

// fragment is how much of a marker counts as the marker.
const fragment = 12

func leaks(output, marker string) string {
	for i := 0; i+fragment <= len(marker); i++ {
		if part := marker[i : i+fragment]; strings.Contains(output, part) {
			return part
		}
	}
	return ""
}

// everything is all that this package can put out.
type everything struct {
	lines   [2]output // JSON, text
	loggers [2]*Logger
	events  *Events
	shown   strings.Builder // documents and errors
}

func newEverything() *everything {
	e := new(everything)
	for i, format := range [...]Format{JSON, Text} {
		e.loggers[i] = NewLogger(LogConfig{Out: &e.lines[i], Format: format, Level: slog.LevelDebug})
	}
	e.events = NewEvents(EventsConfig{Log: e.loggers[0]})
	return e
}

func (e *everything) show(t *testing.T, value any) {
	t.Helper()
	if err, ok := value.(error); ok {
		value = err.Error()
	}
	b, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	e.shown.Write(b)
}

// String returns the whole output, with the escapes of JSON and of Go undone,
// so that a marker with a quote or a line end cannot hide behind them.
func (e *everything) String(t *testing.T) string {
	e.show(t, e.events.Since(0))
	families, err := Gather(e.loggers[0].Metrics(), e.events.Metrics())
	if err != nil {
		t.Fatal(err)
	}
	e.show(t, families)
	raw := e.lines[0].String() + e.lines[1].String() + e.shown.String()
	return raw + strings.NewReplacer(`\"`, `"`, `\n`, "\n", `\u0026`, "&").Replace(raw)
}

// plantings are the ways into the package, each given the marker.
var plantings = map[string]func(t *testing.T, e *everything, l *Logger, marker string){
	"field values": func(_ *testing.T, e *everything, l *Logger, marker string) {
		fields := []field.Field{
			field.Method(marker), field.Node(marker), field.Role(marker), field.Outcome(marker), field.Refusal(marker),
			field.Reason(marker), field.State(marker), field.Duty(marker), field.Event(marker), field.Check(marker),
			field.Source(marker), field.Version(marker), field.Host(marker), field.Origin(marker), field.Path(marker),
			field.Origin("https://" + marker), field.Path("/run/" + marker), field.Digest(marker + "x"), field.PublicKey(marker + "x"),
			field.NetAddr(&net.UnixAddr{Name: marker}), field.NetAddr(&net.TCPAddr{IP: net.IPv6loopback, Zone: marker}),
		}
		for _, f := range fields {
			l.Info("field-planted", f)
			l.With(f).Info("field-bound")
			e.events.Publish("field-planted", f)
		}
	},
	"event types": func(_ *testing.T, e *everything, _ *Logger, marker string) {
		e.events.Publish(EventType(marker))
	},
	"errors": func(_ *testing.T, e *everything, l *Logger, marker string) {
		for _, err := range plantedErrors(marker) {
			l.Error("error-planted", field.Error(err))
			e.events.Publish("error-planted", field.Error(err))
		}
	},
	"panics": func(t *testing.T, _ *everything, l *Logger, marker string) {
		values := []any{marker, []byte(marker), errors.New(marker), fmt.Errorf("a: %w", errors.New(marker)), struct{ Body string }{marker},
			&struct{ Body *string }{&marker}, plantedStringer(marker), plantedError(marker)}
		for _, value := range values {
			func() {
				defer func() { l.Recovered(recover(), field.Method(marker)) }()
				explodeWith(marker, value)
			}()
		}
		var missing map[string]func()
		func() {
			defer func() { l.Recovered(recover()) }()
			missing[marker]()
		}()
	},
	"foreign lines": func(_ *testing.T, _ *everything, l *Logger, marker string) {
		std := l.ErrorLog("library")
		lines := []string{marker, "x " + marker}
		for _, known := range foreignPrefixes {
			lines = append(lines, known.prefix+marker, known.prefix+"192.0.2.1:4711: "+marker, known.prefix+marker+": EOF",
				known.prefix+"[fe80::1%"+marker+"]:4711: remote error: "+marker)
		}
		for _, line := range lines {
			std.Print(line)
			log.New(std.Writer(), marker, log.LstdFlags|log.Lmsgprefix).Print(line)
		}
	},
	"foreign records": func(_ *testing.T, _ *everything, l *Logger, marker string) {
		s := slog.New(l.Handler("library"))
		keys := []string{"password", marker, "error", "err", "msg", "level", "time"}
		for _, key := range field.Keys() {
			keys = append(keys, key.Key)
		}
		for _, key := range keys {
			for _, v := range []any{marker, []byte(marker), errors.New(marker), plantedError(marker), plantedStringer(marker), plantedValuer(marker), &marker} {
				s.Warn(marker, key, v)
				s.With(key, v).WithGroup(marker).Error("x "+marker, slog.Group(marker, key, v), key, v)
			}
		}
	},
	"the process's loggers": func(_ *testing.T, _ *everything, l *Logger, marker string) {
		defer l.TakeOver()()
		log.SetPrefix(marker)
		log.Print(marker)
		slog.Error(marker, "token", marker)
		slog.LogAttrs(context.Background(), slog.LevelError, marker, slog.String("node", marker))
	},
	"checks": func(t *testing.T, e *everything, _ *Logger, marker string) {
		e.show(t, Judge(time.Now(), []Report{{Duty: marker, Checks: []Check{
			{Name: marker, Reason: marker, Facts: field.List{field.Node(marker), field.Error(errors.New(marker))}},
		}}}))
	},
	"names of duties": func(t *testing.T, e *everything, _ *Logger, marker string) {
		_, err := Assemble(fake{name: marker, status: HubStatus{}}, fake{name: "hub", status: marker})
		e.show(t, err)
		_, err = NewCatalogue([]EventKind{{Type: EventType(marker), Duty: marker}, {Type: "a", Duty: marker}})
		e.show(t, err)
	},
	"settings": func(t *testing.T, e *everything, _ *Logger, marker string) {
		_, err := ParseLevel(marker)
		e.show(t, err)
		_, err = ParseFormat(marker)
		e.show(t, err)
	},
}

func explodeWith(_ string, value any) { panic(value) }

type plantedStringer string

func (s plantedStringer) String() string { return string(s) }

type plantedValuer string

func (v plantedValuer) LogValue() slog.Value { return slog.StringValue(string(v)) }

// plantedError says its marker in every way an error can.
type plantedError string

func (e plantedError) Error() string    { return string(e) }
func (e plantedError) LogName() string  { return string(e) }
func (e plantedError) GoString() string { return string(e) }
func (e plantedError) String() string   { return string(e) }

func plantedErrors(marker string) []error {
	inner := plantedError(marker)
	return []error{
		errors.New(marker), inner, fmt.Errorf("%s: %w", marker, inner), errors.Join(errors.New(marker), inner),
		&net.OpError{Op: marker, Net: marker, Addr: &net.UnixAddr{Name: marker, Net: marker}, Err: inner},
		&net.OpError{Op: "dial", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv6loopback, Zone: marker}, Err: inner},
		&net.DNSError{Err: marker, Name: marker, Server: marker, UnwrapErr: inner},
		&net.AddrError{Err: marker, Addr: marker}, net.UnknownNetworkError(marker), net.InvalidAddrError(marker), &net.ParseError{Type: marker, Text: marker},
		&url.Error{Op: marker, URL: "https://relay.example/" + marker, Err: inner},
		&fs.PathError{Op: "open", Path: marker, Err: inner}, &fs.PathError{Op: "open", Path: "/run/" + marker, Err: inner},
		&tls.CertificateVerificationError{Err: x509.HostnameError{Host: marker, Certificate: &x509.Certificate{DNSNames: []string{marker}}}},
		tls.RecordHeaderError{Msg: marker}, x509.CertificateInvalidError{Reason: x509.Expired, Detail: marker},
		x509.SystemRootsError{Err: inner}, x509.ConstraintViolationError{},
	}
}

// R94: through none of the ways in which this package shows something does a marked
// secret reach log, event, status, check or metric: the part of the row that the
// package can hold by itself.
func TestR94_NoMarkerInAnyOutput(t *testing.T) {
	for what, marker := range markers {
		for way, plant := range plantings {
			t.Run(what+" through "+way, func(t *testing.T) {
				e := newEverything()
				for _, l := range e.loggers {
					plant(t, e, l, marker)
				}
				out := e.String(t)
				if part := leaks(out, marker); part != "" {
					t.Errorf("%q in the output", part)
				}
			})
		}
	}
}

// R94: the search for markers finds each of them where it stands.
func TestR94_TheSearchFindsMarkers(t *testing.T) {
	for what, marker := range markers {
		e := newEverything()
		e.show(t, map[string]string{"x": "before " + marker[3:] + " after"})
		if leaks(e.String(t), marker) == "" {
			t.Errorf("%s is not found where it stands", what)
		}
	}
}

// R94: no line is so long, and none has such characters, that it could hide or forge
// another.
func TestR94_LinesAreOneLineEach(t *testing.T) {
	e := newEverything()
	for _, plant := range plantings {
		plant(t, e, e.loggers[0], "a\nlevel=ERROR msg=\"forged\"\r\x1b[31m\u2028é")
		plant(t, e, e.loggers[1], "a\nlevel=ERROR msg=\"forged\"\r\x1b[31m\u2028é")
	}
	for i := range e.lines {
		for line := range strings.Lines(e.lines[i].String()) {
			if len(line) > 6000 {
				t.Errorf("a line of %d bytes", len(line))
			}
			for _, c := range strings.TrimSuffix(line, "\n") {
				if c < ' ' || c > '~' {
					t.Errorf("%q in a line", c)
				}
			}
			if strings.Contains(line, "forged") || !strings.HasPrefix(line, `{"time":`) && !strings.HasPrefix(line, "time=") {
				t.Errorf("a line of somebody else: %s", line)
			}
		}
	}
}
