package hub

import (
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// B131: the way to a member becomes narrower while nothing but full packets go to it, more
// than QUIC takes or few. They arrive again within five seconds, in the same session; the
// hub shows it. Where nothing has passed for long, it takes the hub's word that something
// does now.
func TestB131_TheWayToAMemberNarrows(t *testing.T) {
	for name, test := range map[string]struct {
		each, silence, limit time.Duration
	}{
		"a flood":        {time.Millisecond, 0, 5 * time.Second},
		"now and then":   {time.Second / 2, 0, 5 * time.Second},
		"out of silence": {time.Second / 2, 30 * time.Second, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			df := searching(t)
			bubble(t, func(t *testing.T) { theWayNarrows(t, test.each, test.silence, test.limit, df) })
		})
	}
}

func theWayNarrows(t *testing.T, each, silence, limit time.Duration, df syscall.RawConn) {
	r, a, b := fullPair(t, df)
	var narrow atomic.Bool
	var lost atomic.Int64
	r.net.watch(func(_, to netip.AddrPort, datagram []byte) bool {
		gone := narrow.Load() && to.Addr() == r.machine(1) && len(datagram) > 1252
		if gone {
			lost.Add(1)
		}
		return gone
	})
	full := func(during time.Duration) (came int) {
		for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(each) {
			a.send(b, 1400)
			came += len(b.take())
		}
		return came
	}
	if full(2*time.Second) == 0 {
		t.Fatal("nothing comes before")
	}
	time.Sleep(silence)
	narrow.Store(true)
	full(limit)
	if lost.Load() == 0 {
		t.Fatal("nothing was too large: a wrong test")
	}
	before := lost.Load()
	if sent := int(3 * time.Second / each); full(3*time.Second) < sent*9/10 {
		t.Errorf("not all of %d packets come", sent)
	}
	if tried := lost.Load() - before; tried > 10 {
		t.Errorf("%d packets were still too large", tried)
	}
	m := r.member(1)
	if m.Sessions != 1 || m.Session.Narrowings != 1 || m.Session.ToSize >= 1400 || r.metrics.narrowed.Value() != 1 {
		t.Errorf("%+v %+v, %d narrowings", m, m.Session, r.metrics.narrowed.Value())
	}
	if got := b.client.Status().Traffic.Narrowings; got != 1 {
		t.Errorf("the member has moved %d times", got)
	}

	// When nothing passes any more the checks end.
	time.Sleep(15 * time.Second)
	var sent atomic.Int64
	r.net.watch(func(_, _ netip.AddrPort, _ []byte) bool { sent.Add(1); return false })
	time.Sleep(30 * time.Second)
	if n := sent.Load(); n > 40 { // keepalives of two members, and a check of each
		t.Errorf("%d datagrams were sent in 30 s of silence", n)
	}
}
