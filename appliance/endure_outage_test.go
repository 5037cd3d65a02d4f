package appliance

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// B013, B124: a day without Cloudly costs nothing. The relay tries all the time,
// one attempt at once; nodes keep their sockets and are refused by name; memory,
// goroutines and buffers stay as they are; and when Cloudly comes back, all nodes
// are registered again, one that came meanwhile too.
func TestB013_B124_ADayWithoutCloudly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		up := newLines()
		r := newRig(t, long(up))
		r.registered(0)
		f := r.fleet(2)
		r.cloudly.Outage()
		time.Sleep(time.Hour)
		before, first := f.weigh(), len(up.dialled())
		for hour := 1; hour <= 24; hour++ {
			for range 6 {
				time.Sleep(10 * time.Minute)
				for i, p := range f.nodes {
					if err := f.report(t, p, f.ids[i]); toldOf(err) != string(contract.RelayNotReady) {
						t.Fatalf("hour %d: a report met %v", hour, err)
					}
				}
			}
			if hour%6 == 0 {
				wantFlat(t, before, f.weigh(), 256<<10) // an attempt has 180 bytes
			}
		}
		dials := up.dialled()
		wantBackoff(t, dials[1:], 1, 0)
		if n := len(dials) - first; n < 24*60 || n > 24*120+1 {
			t.Errorf("%d attempts in a day", n)
		}
		if _, most := up.counts(); most > 1 {
			t.Errorf("%d connections to Cloudly at once", most)
		}
		if s := r.upwards(); s.Registered || time.Since(s.RegisteredChanged) < 24*time.Hour || int(s.Attempts) != len(dials) {
			t.Errorf("the status does not tell of the outage: %+v", s)
		}
		for i, p := range f.nodes {
			if b, ok := r.relay.forward.Binding(f.ids[i]); p.Dials() != 1 || !ok || b.Socket.Err() != nil {
				t.Errorf("%s did not keep its socket: %d dials, bound %v", f.ids[i], p.Dials(), ok)
			}
		}
		f.join("node-late", nil)
		time.Sleep(20 * time.Minute)
		if n := len(r.sequences()); n != 1 {
			t.Errorf("%d registrations before Cloudly is back", n)
		}

		r.cloudly.Return()
		f.wantRegistered(2*time.Minute + 15*time.Second) // its own wait, a node's, and R42
		for i, p := range f.nodes {
			if err := f.report(t, p, f.ids[i]); err != nil {
				t.Errorf("%s after the return: %v", f.ids[i], err)
			}
		}
		if acked, taken := f.wantBooks(t); acked != 3 || taken != 3 {
			t.Errorf("%d reports acknowledged, %d taken: something of the outage was kept", acked, taken)
		}
		f.wantPeace()
	})
}

// B002, B019: whatever way Cloudly is not there for an hour, each attempt ends by
// its deadline, the next one waits longer, up to a minute, and there is never a
// second one beside it.
func TestB002_B019_AnHourOfAttemptsThatComeToNothing(t *testing.T) {
	for name, test := range map[string]struct {
		reach   simulate.Reachability
		attempt time.Duration // what one takes, from the dial to the end of the connection
		trouble string
	}{
		"unreachable": {simulate.Unreachable, 0, "dial-failed"},
		"unavailable": {simulate.Unavailable, 0, "upgrade-refused"},
		"dying":       {simulate.Dying, 0, "socket-lost"},
		// The upgrade has 15 s.
		"hanging": {simulate.Hanging, 15 * time.Second, "dial-failed"},
		// The exchange has 15 s.
		"mute": {simulate.Mute, contract.RegistrationTimeout, "exchange-unanswered"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				up := newLines()
				c := long(up)
				c.idle = true
				r := newRig(t, c)
				r.cloudly.SetReachability(test.reach)
				r.start()
				time.Sleep(time.Hour)
				synctest.Wait()
				dials := up.dialled()
				wantBackoff(t, dials, 0, test.attempt)
				if last := dials[len(dials)-1] - dials[len(dials)-2]; last < 30*time.Second {
					t.Errorf("after an hour it waits %s", last)
				}
				for _, stood := range up.stood() {
					if stood > test.attempt {
						t.Errorf("an attempt took %s", stood)
					}
				}
				if _, most := up.counts(); most > 1 {
					t.Errorf("%d connections at once", most)
				}
				s := r.upwards()
				if int(s.Attempts) != len(dials) || s.LastTrouble != test.trouble {
					t.Errorf("after %d dials the status tells of %d, and of %q", len(dials), s.Attempts, s.LastTrouble)
				}
				if status, body := r.get("/readyz"); status != 503 {
					t.Errorf("ready: %d %s", status, body)
				}
				r.cloudly.Return()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute+test.attempt)
				defer cancel()
				if _, err := r.cloudly.WaitRegistered(ctx, 0); err != nil {
					t.Error(err)
				}
				r.wantNoViolations()
			})
		})
	}
}
