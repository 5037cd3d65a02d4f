package ingress

import (
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/typedsocket"
)

// TestAgesOfChecks: the age of a check is that of the change, whoever asks first and
// however late.
func TestAgesOfChecks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		began := time.Now()
		r := newRig(t)
		want := func(table, ingress time.Duration) {
			t.Helper()
			synctest.Wait()
			time.Sleep(time.Minute)
			checks := r.Checks(time.Now())
			for i, want := range []time.Duration{table, ingress} {
				if got := checks[i].Since.Sub(began); got != want {
					t.Errorf("%s %s since %s, want %s", checks[i].Name, checks[i].State, got, want)
				}
			}
		}
		cloud := r.cloudly()
		want(0, 0)
		p := r.ingress(cloud, "node-a")
		want(0, time.Minute)
		r.push(cloud, tableOf(5, "k"))
		want(2*time.Minute, time.Minute)
		p.own.Cut(typedsocket.CloseNormal, "")
		want(2*time.Minute, 3*time.Minute)
		r.DropCustody("relay-node-unknown")
		want(4*time.Minute, 3*time.Minute)
	})
}
