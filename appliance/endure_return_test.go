package appliance

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/forward"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// Times of the return (design §4, O9) and of the contract's row R42.
const (
	settle      = 2 * time.Second
	spread      = 10 * time.Second
	allBack     = 15 * time.Second
	firstRedial = simulate.DefaultFirstBackoff // the longest a node waits that stood before
)

// quick has a node dial again after half a second to one, whatever happened to it
// before.
func quick(c *simulate.PalletConfig) { c.LastBackoff = firstRedial }

// reaches reports whether something that is sent to a node under its binding, as a
// release of the escrow is, is served by the node.
func (f *fleet) reaches(i int) bool {
	bound, ok := f.r.relay.forward.Binding(f.ids[i])
	if !ok {
		return false
	}
	body := fmt.Appendf(nil, `{"session":%s,"assignment":{}}`, string(bound.Session.Received))
	answer, err := bound.Socket.Call(context.Background(), "applyRuntimeAssignment", body, typedsocket.CallOptions{Timeout: time.Second})
	if err != nil {
		return false
	}
	answer.Release()
	return true
}

// recalledAt returns when the relay last closed each node's socket, to have it
// register again.
func (f *fleet) recalledAt() map[string]time.Time {
	at := map[string]time.Time{}
	for _, e := range f.r.events(forward.NodeUnbound) {
		if said := saidBy(e); said["reason"] == "recalled" {
			at[said["node"]] = e.Time
		}
	}
	return at
}

// O9: Cloudly returns and dies again, twenty times. At the end of every cycle each
// node is registered or can still be reached under its binding, so that its lease
// can be renewed; only a node that was told to dial again a moment ago may be on
// its way, and never for longer than it waits itself.
func TestO9_CloudlyReturnsAndDiesAgain(t *testing.T) {
	const herd = 20
	bubble(t, func(t *testing.T) {
		r := newRig(t, long(newLines()))
		r.registered(0)
		f := r.fleet(0)
		for i := range herd {
			f.join(fmt.Sprintf("node-%03d", i), quick)
		}
		f.wantRegistered(time.Minute)
		for _, stands := range []time.Duration{0, time.Second, 3 * time.Second, 6 * time.Second, 12 * time.Second} {
			most, recalls := 0, len(f.lines.dialled())
			for cycle := range 20 {
				r.cloudly.Outage()
				time.Sleep(5 * time.Second)
				socket := r.cloudly.Opened()
				r.cloudly.Return()
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
				if _, err := r.cloudly.WaitRegistered(ctx, socket); err != nil {
					t.Fatalf("cycle %d: %v", cycle, err)
				}
				cancel()
				time.Sleep(stands)
				synctest.Wait()
				r.cloudly.Outage()
				synctest.Wait()
				most = max(most, f.wantReached(stands, cycle))
			}
			r.cloudly.Return()
			f.wantRegistered(time.Minute + allBack)
			time.Sleep(30 * time.Second)
			t.Logf("stands %s: %d dials of nodes in 20 cycles, at most %d of %d nodes on their way at an end",
				stands, len(f.lines.dialled())-recalls, most, herd)
			if stands < settle && most > 0 {
				t.Errorf("a Cloudly that stood %s cost %d nodes their sockets", stands, most)
			}
		}
		f.wantPeace()
	})
}

// wantReached checks the end of a cycle and returns how many nodes are on their way.
func (f *fleet) wantReached(stands time.Duration, cycle int) (away int) {
	t := f.r.t
	t.Helper()
	died, recalled := time.Now(), f.recalledAt()
	for i, id := range f.ids {
		if f.reaches(i) {
			continue
		}
		away++
		if since := died.Sub(recalled[id]); since > firstRedial {
			t.Fatalf("stands %s, cycle %d: %s is neither registered nor reached, %s after it was told to dial again", stands, cycle, id, since)
		}
	}
	return away
}

// R42, B001, B004: 256 nodes after a cut of the upstream. Their sockets are closed
// one by one, from 2 s after the return on and over at most 10 s; so they do not
// dial in a herd; and all are registered within 15 s, with the nonce they had.
func TestR42_B001_B004_AHerdComesBackSpread(t *testing.T) {
	const size = 256
	bubble(t, func(t *testing.T) {
		r := newRig(t, long(newLines()))
		r.registered(0)
		f := r.fleet(size)
		time.Sleep(time.Minute)
		nonces, joined := map[string]string{}, len(f.lines.dialled())
		for i, p := range f.nodes {
			nonces[f.ids[i]] = p.Nonce()
		}
		r.cloudly.CutSockets()
		r.registered(1)
		back := time.Now()
		returned := time.Since(f.lines.begun)
		f.wantRegistered(allBack)
		took := time.Since(back)

		var closes []time.Duration
		for _, at := range f.recalledAt() {
			closes = append(closes, at.Sub(back))
		}
		first, last, apart := spreadOf(closes)
		var dials []time.Duration
		for _, at := range f.lines.dialled()[joined:] {
			dials = append(dials, at-returned)
		}
		peak, tenth := busiest(dials, time.Second), busiest(dials, 100*time.Millisecond)
		chi := unevenness(dials, settle+firstRedial, settle+spread)
		t.Logf("%d nodes: closed from %s to %s, %d dials, at most %d in a second and %d in a tenth, chi-square %.1f; all registered after %s",
			size, first, last, len(dials), peak, tenth, chi, took)
		if len(closes) != size || len(dials) != size {
			t.Errorf("%d sockets were closed, and %d dials followed", len(closes), len(dials))
		}
		if first < settle || last > settle+spread || apart == 0 {
			t.Errorf("closed from %s to %s after the return, at least %s apart", first, last, apart)
		}
		// A node dials half a second to one after its close, so a second of dials comes
		// from one and a half of closes.
		if most := int(1.5*size/spread.Seconds()) + 1; peak > most {
			t.Errorf("%d dials within a second, more than %d", peak, most)
		}
		if chi > 27.9 {
			t.Errorf("the dials are not spread evenly: chi-square %.1f with 9 degrees of freedom", chi)
		}
		for i, p := range f.nodes {
			if state, _ := r.cloudly.Node(f.ids[i]); p.Nonce() != nonces[f.ids[i]] || state.Nonce != nonces[f.ids[i]] || state.Epoch != 1 {
				t.Errorf("%s came back as another start of its process", f.ids[i])
			}
		}
		if n := len(r.upstream(contract.MethodRegisterPalletRuntimeSession)); n != 2*size {
			t.Errorf("Cloudly saw %d registrations", n)
		}
		f.wantPeace()
	})
}
