package operator

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/typedsocket/carriertest"
)

func TestProfilesAreForThisMachine(t *testing.T) {
	const far, foreign = "profiles are for peers with a loopback address\n", "profiles are not for pages of other sites\n"
	loopback6 := netip.MustParseAddrPort("[::1]:40001")
	for _, test := range []struct {
		name   string
		peer   netip.AddrPort
		header string
		status int
		body   string // its beginning
	}{
		{"this machine", local, "X-Y: z", 200, "profile?seconds=N\n"},
		{"this machine by IPv6", loopback6, "X-Y: z", 200, "profile?seconds=N\n"},
		{"another machine", remote, "X-Y: z", 403, far},
		{"another machine that says otherwise", remote, "X-Forwarded-For: 127.0.0.1", 403, far},
		{"another machine that says otherwise", remote, "Host: 127.0.0.1", 403, far},
		{"a page of another site", local, "Sec-Fetch-Site: cross-site", 403, foreign},
		{"a page of another port", local, "Sec-Fetch-Site: same-site", 403, foreign},
		{"a page of ours", local, "Sec-Fetch-Site: same-origin", 200, "profile?seconds=N\n"},
		{"a browser's address line", local, "Sec-Fetch-Site: none", 200, "profile?seconds=N\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			carriertest.Bubble(t, func(t *testing.T) {
				r := newRig(t)
				r.profiles.take() // the runtime profiles in real time, so here nobody may
				paths := []string{"/debug/pprof/"}
				if test.status == http.StatusForbidden {
					paths = append(paths, "/debug/pprof/heap", "/debug/pprof/goroutine?debug=1", "/debug/pprof/profile?seconds=1", "/debug/pprof/trace", "/debug/pprof/nowhere", "/debug/pprof/?%zz")
				}
				for _, path := range paths {
					if got := r.do(test.peer, "GET "+path, test.header); got.status != test.status || !strings.HasPrefix(got.body, test.body) {
						t.Errorf("%s: %d %.80q", path, got.status, got.body)
					}
				}
				if test.status == 403 && r.count(routeProfile, forbidden) != uint64(len(paths)) {
					t.Error("not counted")
				}
			})
		})
	}
}

func TestProfileIndexNamesEveryProfile(t *testing.T) {
	index := profileIndex()
	for _, p := range pprof.Profiles() {
		if !strings.Contains(index, "\n"+p.Name()+"?debug=1") {
			t.Errorf("%s is not in %q", p.Name(), index)
		}
	}
}

// Who else takes a profile is told so at once.
func TestOneProfileAtATime(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.profiles.take()
		started := false
		kind := recording{fallback: 1, longest: 60, start: func(io.Writer) error { started = true; return nil }, stop: func() {}}
		w := httptest.NewRecorder()
		how := r.record(w, httptest.NewRequest(http.MethodGet, "/debug/pprof/profile", nil), query{}, kind)
		if how != overloaded || w.Code != 503 || w.Body.String() != "a profile is being taken already\n" || started {
			t.Errorf("%s: %d %q", how, w.Code, w.Body)
		}
		for _, path := range []string{"/debug/pprof/profile", "/debug/pprof/trace"} {
			if got := r.do(local, "HEAD "+path); got.status != 200 {
				t.Errorf("HEAD %s: %d", path, got.status)
			}
		}
		if got := r.get("/debug/pprof/goroutine"); got.status != 200 {
			t.Errorf("a dump meanwhile: %d", got.status)
		}
		if !r.dumps.take() {
			t.Error("a dump that was answered has its place still")
		}
		if got := r.get("/debug/pprof/heap"); got.status != 503 {
			t.Errorf("a second dump: %d", got.status)
		}
	})
}

// A profile ends with its time, with its client and with the endpoint, and gives
// its place back.
func TestAProfileEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(r *rig, clientGoes func())
		took time.Duration
	}{
		{"its time is over", func(*rig, func()) {}, 30 * time.Second},
		{"the client goes", func(_ *rig, clientGoes func()) { clientGoes() }, 2 * time.Second},
		{"the endpoint ends", func(r *rig, _ func()) { r.Close() }, 2 * time.Second},
		{"the endpoint leaves", func(r *rig, _ func()) {
			if err := r.Drain(r.t.Context()); err != nil {
				r.t.Error(err)
			}
		}, 2 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			carriertest.Bubble(t, func(t *testing.T) {
				r := newRig(t)
				var started, stopped time.Time
				kind := recording{fallback: 30, longest: 60,
					start: func(io.Writer) error { started = time.Now(); return nil },
					stop:  func() { stopped = time.Now() }}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/debug/pprof/profile", nil)
				became := make(chan outcome, 1)
				go func() { became <- r.record(httptest.NewRecorder(), request, query{}, kind) }()
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if len(r.profiles) != 1 || started.IsZero() {
					t.Fatal("no profile is taken")
				}
				test.end(r, cancel)
				if how := <-became; how != served || stopped.Sub(started) != test.took || len(r.profiles) != 0 {
					t.Errorf("%s after %v, %d places taken", how, stopped.Sub(started), len(r.profiles))
				}
			})
		})
	}
}

// Somebody else in the process may be profiling, whom our places do not know.
func TestTheRuntimeRefusesAProfile(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		w := httptest.NewRecorder()
		kind := recording{fallback: 30, longest: 60, start: func(io.Writer) error { return errors.New("in use") }}
		how := r.record(w, httptest.NewRequest(http.MethodGet, "/debug/pprof/profile", nil), query{}, kind)
		if how != overloaded || w.Code != 503 || w.Body.String() != "a profile is being taken already\n" || len(r.profiles) != 0 {
			t.Errorf("%s: %d %q", how, w.Code, w.Body)
		}
	})
}

// placeSeen notes whether a place for a dump is taken when the last byte of an answer is
// written, at which its client may have the whole.
type placeSeen struct {
	*httptest.ResponseRecorder
	r     *rig
	taken int
}

func (p *placeSeen) Write(b []byte) (int, error) {
	n, err := p.ResponseRecorder.Write(b)
	if strconv.Itoa(p.Body.Len()) == p.Header().Get("Content-Length") {
		p.taken = len(p.r.dumps)
	}
	return n, err
}

// Who has got a whole dump may ask for the next one at once.
func TestADumpThatIsThereHasNoPlace(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		w := &placeSeen{ResponseRecorder: httptest.NewRecorder(), r: r, taken: -1}
		if how := r.dump(w, query{}, pprof.Lookup("goroutine")); how != served || w.taken != 0 {
			t.Errorf("%s, with %d places taken at the last byte", how, w.taken)
		}
		c := r.dial(local)
		for range 100 { // on one connection, each right behind the answer before
			if got := c.do("GET /debug/pprof/goroutine?debug=1"); got.status != 200 {
				t.Fatalf("asked again: %d %q", got.status, got.body)
			}
		}
		if len(r.dumps) != 0 {
			t.Error("a place was not given back")
		}
	})
}

// A dump that fails, here in its writing, gives its place back too, and once.
func TestADumpThatFailsHasNoPlace(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		w := failing{httptest.NewRecorder()}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the writing did not fail")
				}
			}()
			r.dump(w, query{}, pprof.Lookup("goroutine"))
		}()
		if len(r.dumps) != 0 {
			t.Error("the place is taken")
		}
	})
}

// failing is an answer whose writing panics.
type failing struct{ *httptest.ResponseRecorder }

func (failing) Write([]byte) (int, error) { panic("not to be written to") }
