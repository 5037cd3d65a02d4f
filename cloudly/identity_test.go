package cloudly

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

func testContext(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx, cancel
}

const exchangeMethod = contract.DefaultMethodExchangeIdentity

// lifeOf has every exchange answer an identity of this life, numbered.
func (w *world) lifeOf(life time.Duration) {
	w.on(exchangeMethod, func(n int, r *typedsocket.Request) bool {
		r.Answer(fmt.Appendf(nil, `{"identity":{"jwt":"identity.number.%d","expiresAt":%d}}`, n, time.Now().Add(life).UnixMilli()))
		return true
	})
}

// used returns the identities of all configuration pulls.
func (w *world) used() []string {
	var all []string
	for _, f := range w.of(getConfiguration) {
		_, rest, _ := strings.Cut(f.body, "identity.number.")
		number, _, _ := strings.Cut(rest, `"`)
		all = append(all, number)
	}
	return all
}

// The identity is exchanged again when two thirds of its life are over, and a call
// needs it; not before, and not for its own sake.
func TestO4_IdentityIsExchangedAgainWhenACallNeedsIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.lifeOf(90 * time.Minute)
		w.wantState("registered")
		time.Sleep(59 * time.Minute)
		w.change(1)
		w.settle()
		if got := w.used(); !slices.Equal(got, []string{"1", "1"}) {
			t.Fatalf("identities %q", got)
		}
		time.Sleep(2 * time.Minute)
		w.change(2)
		w.settle()
		if got := w.used(); !slices.Equal(got, []string{"1", "1", "2"}) {
			t.Fatalf("identities %q", got)
		}
		time.Sleep(3 * time.Hour)
		if n := len(w.of(exchangeMethod)); n != 2 {
			t.Fatalf("%d exchanges though nothing needed one", n)
		}
		if n, _ := w.opened(); n != 1 {
			t.Fatalf("%d sockets", n)
		}
	})
}

// A failed exchange changes nothing held: the session stands, and the old identity
// is used as long as nothing better is there.
func TestO4_AFailedExchangeChangesNothing(t *testing.T) {
	for name, fail := range map[string]func(w *world, r *typedsocket.Request){
		"refused":    func(_ *world, r *typedsocket.Request) { r.Refuse("no", nil) },
		"unanswered": func(_ *world, r *typedsocket.Request) { r.Drop() },
		"unreadable": func(_ *world, r *typedsocket.Request) { r.Answer([]byte(`{"identity":{"jwt":"with space"}}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.lifeOf(30 * time.Minute)
				w.wantState("registered")
				time.Sleep(25 * time.Minute)
				w.heard()
				w.on(exchangeMethod, func(_ int, r *typedsocket.Request) bool { fail(w, r); return true })
				w.change(1)
				time.Sleep(20 * time.Second)
				if got := w.used(); !slices.Equal(got, []string{"1", "1"}) {
					t.Fatalf("identities %q", got)
				}
				w.wantHeard("registered 1 first=false", "configuration stated "+testOrigin)
				w.wantState("registered")
			})
		})
	}
	// A custody name is heard there as on any own call.
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.lifeOf(30 * time.Minute)
		w.wantState("registered")
		time.Sleep(25 * time.Minute)
		w.heard()
		w.refuse(exchangeMethod, "relay-credential-generation-stale", `{}`)
		w.change(1)
		w.wantHeard("registered 1 first=false", "custody relay-credential-generation-stale", "lost relay-credential-generation-stale")
	})
}

// An identity whose call was refused is exchanged before the next try: the clock
// that says it is good may be wrong.
func TestO4_ARefusedIdentityIsDoubted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.lifeOf(1000 * time.Hour)
		w.on(getConfiguration, func(n int, r *typedsocket.Request) bool {
			if n == 1 {
				r.Refuse("jwt expired", nil)
			}
			return n == 1
		})
		time.Sleep(5 * time.Second)
		if got := w.used(); !slices.Equal(got, []string{"1", "2"}) {
			t.Fatalf("identities %q", got)
		}
	})
}

// Steps of the wall clock cost an exchange at most.
func TestIdentityUnderStepsOfTheWallClock(t *testing.T) {
	for step, want := range map[time.Duration]string{
		0: "1", 59 * time.Minute: "1", 61 * time.Minute: "2", 365 * 24 * time.Hour: "2", -365 * 24 * time.Hour: "1",
	} {
		bubble(t, func(t *testing.T) {
			offset := make(chan time.Duration, 1)
			offset <- 0
			w := newWorld(t, func(c *Config, _ *world) {
				c.Wall = func() time.Time { o := <-offset; offset <- o; return time.Now().Add(o) }
			})
			w.lifeOf(90 * time.Minute)
			w.wantState("registered")
			<-offset
			offset <- step
			w.change(1)
			w.settle()
			if got := w.used(); got[1] != want {
				t.Errorf("after a step of %v: identity %s, want %s", step, got[1], want)
			}
			if step < 0 {
				// The wall clock stays far back; the identity ages by the other one.
				time.Sleep(61 * time.Minute)
				w.change(2)
				w.settle()
				if n := len(w.of(exchangeMethod)); n != 2 {
					t.Errorf("%d exchanges", n)
				}
			}
			// What happened to the wall clock changes no wait.
			w.kill()
			time.Sleep(4 * time.Second)
			w.wantState("registered")
		})
	}
}

func TestLifetime(t *testing.T) {
	wall := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) *int64 { ms := wall.Add(d).UnixMilli(); return &ms }
	for name, test := range map[string]struct {
		expires *int64
		after   time.Duration
		want    bool
	}{
		"young":                {at(time.Hour), 39 * time.Minute, false},
		"two thirds":           {at(time.Hour), 40 * time.Minute, true},
		"over":                 {at(time.Hour), 2 * time.Hour, true},
		"over from the start":  {at(-time.Hour), 0, true},
		"ends as it begins":    {at(0), 0, true},
		"end not stated":       {nil, 9 * time.Minute, false},
		"end not stated, old":  {nil, 10 * time.Minute, true},
		"far beyond any clock": {func() *int64 { n := int64(contract.MaximumSafeInteger); return &n }(), 24 * time.Hour, false},
	} {
		l := newLifetime(test.expires, wall, 0)
		if got := l.ageing(wall.Add(test.after), test.after); got != test.want {
			t.Errorf("%s: ageing %v", name, got)
		}
	}
}

// The identity is zeroed when another takes its place, and when the socket is left,
// also when an exchange ends after that.
func TestIdentityIsZeroed(t *testing.T) {
	var i identity
	first, second, late := contract.Secret("first"), contract.Secret("second"), contract.Secret("late")
	i.set(first, lifetime{lasts: time.Hour})
	i.set(second, lifetime{lasts: time.Hour})
	copied, ageing, ok := i.credential(time.Time{}, 0)
	if string(copied) != "second" || ageing || !ok {
		t.Fatal("not the second")
	}
	i.forget()
	i.set(late, lifetime{lasts: time.Hour})
	if _, _, ok := i.credential(time.Time{}, 0); ok {
		t.Fatal("an identity after the end")
	}
	for _, s := range []contract.Secret{first, second, late} {
		if !slices.Equal(s, make([]byte, len(s))) {
			t.Errorf("%q was left behind", []byte(s))
		}
	}
	if string(copied) != "second" {
		t.Fatal("the copy is not its own")
	}
}
