package appliance

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
)

// B020: a day behind middleboxes that cut what rests for 55 s, while the relay's
// wall clock steps by hours and days. No connection is lost, no request is refused,
// nothing is registered or exchanged anew.
func TestB020_ADayBehindAMiddleboxUnderASteppingClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const idle = 55 * time.Second
		up, own := newLines(), &clock{}
		up.idle = idle
		r := newRig(t, stepping(long(up), own))
		r.registered(0)
		f := r.fleet(0)
		f.lines.idle = idle
		f.join("node-a", nil)
		f.join("node-b", nil)
		f.wantRegistered(time.Minute)
		for hour := range 24 {
			own.stepTo(off[hour%len(off)])
			time.Sleep(time.Hour)
			for i, p := range f.nodes {
				if err := f.report(t, p, f.ids[i]); err != nil {
					t.Fatalf("hour %d: a report met %v", hour, err)
				}
				if err := f.push(f.ids[i]); err != nil {
					t.Fatalf("hour %d: a push met %v", hour, err)
				}
			}
		}
		s := r.upwards()
		if n := len(up.dialled()); n != 1 || s.AcceptedRegistrations != 1 || len(f.lines.dialled()) != 2 {
			t.Errorf("%d dials to Cloudly, %d registrations, %d dials of nodes", n, s.AcceptedRegistrations, len(f.lines.dialled()))
		}
		f.wantBooks(t)
		f.wantPeace()
	})
}

// What does follow the wall clock: the age of the identity, which costs one more
// exchange, and certificates. Both are as before once the clock is.
func TestTheWallClockAgesIdentitiesAndCertificates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		own := &clock{}
		r := newRig(t, stepping(long(newLines()), own))
		r.registered(0)
		f := r.fleet(1)
		// A changed origin makes the relay register and pull anew on its socket, with
		// the identity that it has.
		exchangesFor := func(origin string) int {
			t.Helper()
			before := len(r.upstream(contract.DefaultMethodExchangeIdentity))
			if err := r.cloudly.EnableRelay(origin); err != nil {
				t.Fatal(err)
			}
			if err := r.cloudly.PushConfiguration(r.soon()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return len(r.upstream(contract.DefaultMethodExchangeIdentity)) - before
		}
		if n := exchangesFor("https://" + originHost + ":9443"); n != 0 {
			t.Errorf("%d exchanges for an identity that is fresh", n)
		}
		own.stepTo(time.Hour)
		if n := exchangesFor(originText); n != 1 {
			t.Errorf("%d exchanges for an identity that is an hour old by the wall clock", n)
		}
		if n := len(r.sequences()); n != 3 {
			t.Errorf("%d registrations", n)
		}

		own.stepTo(100 * 365 * 24 * time.Hour)
		time.Sleep(time.Minute)
		if status, body := r.get("/readyz"); status != 503 || !strings.Contains(body, "certificate") {
			t.Errorf("with a certificate that is over: %d %s", status, body)
		}
		if err := f.report(t, f.nodes[0], f.ids[0]); err != nil || f.nodes[0].Dials() != 1 {
			t.Errorf("the clock cost the node its socket: %v, %d dials", err, f.nodes[0].Dials())
		}
		r.cloudly.CutSockets()
		time.Sleep(10 * time.Minute)
		if s := r.upwards(); s.Registered || s.LastTrouble != "certificate-not-trusted" {
			t.Errorf("Cloudly's certificate is over, and the status tells of %q", s.LastTrouble)
		}
		failed := r.events(cloudly.EventAttemptFailed)
		if why := saidBy(failed[len(failed)-1])["error"]; !strings.Contains(why, "certificate not verified") {
			t.Errorf("the attempts that failed say %q", why)
		}
		own.stepTo(0)
		f.wantRegistered(time.Minute + allBack)
		time.Sleep(time.Minute)
		if status, body := r.get("/readyz"); status != 200 {
			t.Errorf("with the clock put right: %d %s", status, body)
		}
		f.wantPeace()
	})
}
