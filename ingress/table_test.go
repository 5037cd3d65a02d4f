package ingress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// R68: the table of the greatest revision stays, whatever comes in whatever order.
func TestR68_TheGreatestRevisionStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var held, greatest int64
		for _, next := range rapid.SliceOf(rapid.Int64Range(0, 6)).Draw(t, "revisions") {
			takes, now := apply(held, next)
			if takes != (next > greatest) {
				t.Fatalf("%d is taken over %d: %t", next, held, takes)
			}
			greatest = max(greatest, next)
			if held = now; held != greatest {
				t.Fatalf("%d is held, want %d", held, greatest)
			}
		}
	})
}

// R68: pushes of the revisions 5, 4, 5, 6 are answered 5, 5, 5, 6.
func TestR68_PushesInAnyOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		served := func(want string) {
			t.Helper()
			if a := p.ask(tableMethod, `{"knownRevision":null}`); a.err != nil || a.body != want {
				t.Errorf("the ingress was answered %.300s, %v; want %.300s", a.body, a.err, want)
			}
		}
		served(`{"table":null}`)
		for _, push := range []struct {
			revision, want int64
			key            string
		}{{5, 5, "first"}, {4, 5, "older"}, {5, 5, "same revision, other content"}, {6, 6, "newer"}} {
			if got := r.push(cloud, tableOf(push.revision, push.key)); got != push.want {
				t.Errorf("the push of %d was answered %d, want %d", push.revision, got, push.want)
			}
			if push.want == 5 {
				served(pushOf(tableOf(5, "first")))
			}
		}
		served(pushOf(tableOf(6, "newer")))
		// The held table again, also to who has it already (contract O15).
		if a := p.ask(tableMethod, ` { "knownRevision" : 6 } `); a.body != pushOf(tableOf(6, "newer")) {
			t.Errorf("asked with the revision that is held: %.300s, %v", a.body, a.err)
		}
	})
}

// pull runs the pull while Cloudly answers it.
func (r *rig) pull(cloud *remote, answer string) error {
	cloud.on(pullMethod, func(q *typedsocket.Request) {
		if string(q.Body()) != "{}" {
			r.t.Errorf("the pull asks %s", q.Body())
		}
		q.Answer([]byte(answer))
	})
	return r.Pull(context.Background(), cloud.relay)
}

// R68: null is a fact that an ingress is told: it is not an empty table, and it takes
// nothing away.
func TestR68_NullIsAFact(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		for _, step := range []struct{ pulled, served string }{
			{`{"table":null}`, `{"table":null}`},
			{pushOf(tableOf(3, "k3")), pushOf(tableOf(3, "k3"))},
			{`{"table":null,"ofALaterRelease":1}`, pushOf(tableOf(3, "k3"))},
			{pushOf(tableOf(2, "k2")), pushOf(tableOf(3, "k3"))},
			{pushOf(tableOf(4, "k4")), pushOf(tableOf(4, "k4"))},
		} {
			if err := r.pull(cloud, step.pulled); err != nil {
				t.Fatal(err)
			}
			if a := p.ask(tableMethod, `{"knownRevision":null}`); a.body != step.served {
				t.Errorf("after %.60s the ingress was answered %.300s, %v", step.pulled, a.body, a.err)
			}
		}
		if got := len(p.got(hintMethod)); got != 2 {
			t.Errorf("%d hints for two newer tables", got)
		}
		if got := r.told(RouteTableApplied); !slices.Equal(got, []string{
			fmt.Sprintf("route-table-applied outcome=pulled revision=3 count=2 bytes=%d", len(tableOf(3, "k3"))),
			fmt.Sprintf("route-table-applied outcome=pulled revision=4 count=2 bytes=%d", len(tableOf(4, "k4"))),
		}) {
			t.Errorf("told %q", got)
		}
	})
}

// TestPullFails, and takes nothing over.
func TestPullFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		r.push(cloud, tableOf(3, "k"))
		var invalid *contract.InvalidError
		if err := r.pull(cloud, `{"table":{}}`); !errors.As(err, &invalid) {
			t.Errorf("a table without members: %v", err)
		}
		cloud.on(pullMethod, func(q *typedsocket.Request) {
			q.Refuse("relay-node-unknown: x", []byte(`{"code":"relay-node-unknown"}`))
		})
		var refused *typedsocket.RemoteError
		if err := r.Pull(t.Context(), cloud.relay); !errors.As(err, &refused) {
			t.Errorf("refused: %v", err)
		}
		if r.pullErr == nil {
			t.Error("the call did not go the way on which custody is heard")
		}
		cloud.on(pullMethod, func(q *typedsocket.Request) {
			r.DropCustody("relay-node-unknown")
			q.Answer([]byte(pushOf(tableOf(9, "k"))))
		})
		if err := r.Pull(t.Context(), cloud.relay); !errors.Is(err, errOver) {
			t.Errorf("an answer behind the end of custody: %v", err)
		}
		r.SessionRegistered(cloud.relay)
		ctx, cancel := context.WithCancel(t.Context())
		cloud.on(pullMethod, func(q *typedsocket.Request) { q.Answer([]byte(pushOf(tableOf(9, "k")))) })
		// The answer is there when its taker is told to stop.
		r.cfg.Call = func(ctx context.Context, sock *typedsocket.Socket, method string, request []byte, o typedsocket.CallOptions) (*typedsocket.Answer, error) {
			answer, err := sock.Call(ctx, method, request, o)
			cancel()
			return answer, err
		}
		if err := r.Pull(ctx, cloud.relay); !errors.Is(err, errOver) {
			t.Errorf("an answer behind the end of its context: %v", err)
		}
		if r.status().Table != nil {
			t.Errorf("a table is held: %+v", r.status().Table)
		}
	})
}

// R68: pushes and pulls that cross settle on the newest table, and no answer goes back.
func TestR68_CrossingPushesAndPulls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		var mu sync.Mutex
		next := int64(0)
		revision := func() int64 { mu.Lock(); defer mu.Unlock(); next++; return next }
		cloud.on(pullMethod, func(q *typedsocket.Request) { q.Answer([]byte(pushOf(tableOf(revision(), "k")))) })
		var all sync.WaitGroup
		for range 3 { // below the bound of pushes that wait
			all.Go(func() {
				last := int64(0)
				for range 20 {
					got := r.push(cloud, tableOf(revision(), "k"))
					if got < last {
						t.Errorf("answered %d after %d", got, last)
					}
					last = got
				}
			})
		}
		all.Go(func() {
			for range 20 {
				if err := r.Pull(t.Context(), cloud.relay); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			last := int64(0)
			for range 20 {
				a := p.ask(tableMethod, `{"knownRevision":null}`)
				read, err := contract.ReadRouteTableAnswer(tableMethod, []byte(a.body))
				if err != nil {
					t.Error(err)
				} else if now := revisionIn(read); now < last {
					t.Errorf("served %d after %d", now, last)
				} else {
					last = now
				}
			}
		})
		all.Wait()
		synctest.Wait()
		if s := r.status(); s.Table.Revision != 80 || s.Ingresses[0].Acknowledged != 80 || s.InFlight != (InFlight{}) {
			t.Errorf("%+v, %+v, %+v", s.Table, s.Ingresses, s.InFlight)
		}
	})
}

func revisionIn(a contract.RouteTableAnswer) int64 {
	if a.Table == nil {
		return 0
	}
	return a.Table.Revision
}

// TestTheMemoryOfATableIsZeroed when another takes its place, when it does not
// stay, when custody ends, and when the relay stops; and never while it is used.
func TestTheMemoryOfATableIsZeroed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		memory := func() []byte {
			r.Ingress.mu.Lock()
			defer r.Ingress.mu.Unlock()
			return r.table.answer
		}
		zeroed := func(what string, p []byte, want bool) {
			t.Helper()
			synctest.Wait()
			if got := len(bytes.Trim(p, "\x00")) == 0; got != want || len(p) == 0 {
				t.Errorf("%s: zeroed %t, want %t: %.40q", what, got, want, p)
			}
		}
		r.push(cloud, tableOf(1, "k"))
		first := memory()
		zeroed("held", first, false)
		r.push(cloud, tableOf(2, "k"))
		zeroed("replaced", first, true)

		second := memory()
		r.push(cloud, tableOf(1, "k"))
		zeroed("held over an older one", second, false)
		stale := hold(mustTable(t, tableOf(1, "k")), pushed)
		r.decide(r.crew, stale, func(int64, bool) {})
		zeroed("one that does not stay", stale.answer, true)
		late := hold(mustTable(t, tableOf(9, "k")), pushed)
		r.decide(newCrew(), late, func(int64, bool) {})
		zeroed("one of another custody", late.answer, true)

		r.Ingress.mu.Lock()
		used := r.use()
		r.Ingress.mu.Unlock()
		r.push(cloud, tableOf(3, "k"))
		zeroed("replaced while it is used", second, false)
		r.done(used)
		zeroed("not used any more", second, true)

		third := memory()
		r.DropCustody("relay-node-unknown")
		zeroed("dropped", third, true)

		r.SessionRegistered(cloud.relay)
		r.push(cloud, tableOf(1, "k"))
		fourth := memory()
		if err := r.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		zeroed("drained", fourth, true)
	})
}

func mustTable(t *testing.T, text string) contract.RouteTable {
	t.Helper()
	table, err := contract.ReadRouteTable([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestHoldLeavesNoCopy: the memory that a table was read into is zeroed, and the
// one that it is held in was not grown on the way.
func TestHoldLeavesNoCopy(t *testing.T) {
	table := mustTable(t, tableOf(5, "key"))
	read := table.Encoded
	h := hold(table, pushed)
	if len(bytes.Trim(read, "\x00")) != 0 {
		t.Errorf("%.60q is left", []byte(read))
	}
	if string(h.answer) != pushOf(tableOf(5, "key")) || cap(h.answer) != len(h.answer) || h.bytes() != len(tableOf(5, "key")) {
		t.Errorf("held %s, %d of %d bytes, a table of %d", h.answer, len(h.answer), cap(h.answer), h.bytes())
	}
	if h.revision != 5 || h.routes != 1 || h.ports != 1 || h.issuedAt.UnixMilli() != 1767225600000 {
		t.Errorf("%+v", h)
	}
}

// TestTheLargestTable passes, and one byte more does not.
func TestTheLargestTable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		sized := func(n int) string {
			empty := tableOf(2, "")
			return tableOf(2, strings.Repeat("k", (n-len(empty))/2))
		}
		largest := sized(contract.RouteTableLimit)
		largest = strings.Replace(largest, " ", strings.Repeat(" ", 1+contract.RouteTableLimit-len(largest)), 1)
		if len(largest) != contract.RouteTableLimit {
			t.Fatal(len(largest))
		}
		if got := r.push(cloud, largest); got != 2 {
			t.Errorf("answered %d", got)
		}
		a := p.ask(tableMethod, `{"knownRevision":null}`)
		if a.err != nil || a.body != pushOf(largest) {
			t.Errorf("%d bytes came, %v", len(a.body), a.err)
		}
		larger := strings.Replace(largest, `"revision":2`, `"revision":33`, 1)
		reason := refusedWith(t, cloud.ask(pushMethod, pushOf(larger)), RouteTableInvalid)
		if reason != "table: is larger than 15 MiB encoded" {
			t.Errorf("refused: %s", reason)
		}
	})
}
