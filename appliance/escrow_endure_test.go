package appliance

import (
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// The nodes that lose their sockets while Cloudly is away, and how.
const (
	broken    = "node-003" // its connection breaks
	restarted = "node-005" // its process begins anew
	silenced  = "node-007" // the network swallows its connection, and tells nobody
	later     = "node-011" // its connection breaks two hours later

	// watched is the last node whose messages are recorded.
	watched = "node-015"
)

// The slots of the run, ten minutes each.
const (
	straddled  = 3 // opens under a Cloudly that is back for a second
	between    = 4 // opens while Cloudly is away for ten minutes
	outageFrom = 5 // Cloudly goes in it, for four hours
	heldTo     = outageFrom + int64(simulate.GridRun)
	outageTo   = heldTo + 1 // Cloudly is back in it
	again      = 31         // opens while Cloudly is away for ten minutes again
	lastSlot   = 32
)

// R50–R54, R97: five hours of 256 nodes, four of them without Cloudly. It comes and
// dies before, meanwhile and afterwards; sockets of nodes break while it is there, and
// some while it is not; the relay's clock is set forth and back. Every slot reaches
// every node that can be reached, once, from whom it should and when it should. A
// node whose socket broke while Cloudly was away is named, gets nothing, and is no
// trouble to the others. The relay holds no more afterwards than before.
func TestR50_R54_R97_FourHoursWithoutCloudly(t *testing.T) {
	began := time.Now()
	var sum outcomes
	var grown int
	bubble(t, func(t *testing.T) {
		line := newLines()
		l := leased(t, leasedNodes, func(id string, c *simulate.PalletConfig) {
			if id == silenced {
				c.Dial = line.through(c.Dial)
			}
			if id > watched {
				c.RecordLimit = -1
			}
		})
		l.hourBefore()

		l.until(outageFrom, 30*time.Second)
		standing := l.weighed()
		l.until(outageFrom, time.Minute)
		dials := l.dialled()
		l.next = l.r.relay.events.Since(0).Next
		l.cut(simulate.Unreachable)
		l.until(outageFrom+1, 3*time.Minute)
		l.breaks(broken, l.node(broken).Reconnect)
		l.breaks(restarted, l.node(restarted).Restart)
		l.breaks(silenced, line.unplug)
		l.until(outageFrom+2, 3*time.Minute)
		l.wantShown(outageFrom+2, outageFrom+1)
		l.firstHour()
		before := l.weighed()
		l.laterHours()
		l.until(heldTo, 6*time.Minute)
		weight := l.weighed()
		grown = weight.heap - before.heap
		wantFlat(t, before, weight, 256<<10)
		l.wantKept(dials)
		l.until(outageTo, time.Minute)
		l.back()
		l.whole()

		l.halfHourAfter()
		l.until(lastSlot, 5*time.Minute)
		after := l.weighed()
		after.heap = standing.heap // Cloudly keeps what it has signed
		wantFlat(t, standing, after, 0)
		sum = l.judge(lastSlot)
		l.wantServed()
		l.wantSaid(sum)
		if acked, _ := l.wantBooks(t); acked < 5*min(reporters, leasedNodes) {
			t.Errorf("%d reports were acknowledged", acked)
		}
		l.wantPeace()
	})
	t.Logf("%d nodes × %d slots: %d delivered, %d of them by the relay, %d early, %d late, %d doubled, %d while the clock was suspect, %d while Cloudly was there, %d missing; %d refused by a node's clock; heap %+d bytes in three hours; %s",
		leasedNodes, lastSlot, sum.slots, sum.relayed, sum.early, sum.late, sum.doubled, sum.suspect, sum.attached, sum.missing, sum.refused, grown,
		time.Since(began).Round(100*time.Millisecond))
	if least := (leasedNodes - 4) * simulate.GridRun; sum.relayed < least || sum.refused < 2*(leasedNodes-4) {
		t.Errorf("this run has shown little: %d slots were delivered by the relay, want %d at least", sum.relayed, least)
	}
}

// breaks has a node lose its socket while Cloudly is away.
func (l *leases) breaks(id string, how func()) {
	how()
	l.lost(id)
	synctest.Wait()
}

// hourBefore is what happens before the outage.
func (l *leases) hourBefore() {
	t := l.r.t
	t.Helper()
	// Sockets of nodes break in the middle of a slot, and at the moment of one.
	l.until(1, 3*time.Minute)
	for i := 0; i < len(l.nodes); i += 16 {
		l.nodes[i].Reconnect()
	}
	l.until(2, -200*time.Millisecond)
	for i := 8; i < len(l.nodes); i += 64 {
		l.late[l.ids[i]] = l.opens(2).Add(10 * time.Second)
		l.nodes[i].Reconnect()
	}
	// Cloudly is back at once, dies at every attempt for a while, loses its answer.
	l.until(2, 2*time.Minute)
	l.cut(simulate.Serving)
	l.back()
	l.whole()
	l.until(2, 5*time.Minute)
	l.cut(simulate.Dying)
	time.Sleep(20 * time.Second)
	l.back()
	l.whole()
	l.until(2, 7*time.Minute)
	l.cut(simulate.Unreachable)
	l.answerLost()
	l.back()
	l.whole()
	// It is back for a second, in which a slot opens. No node has to dial again.
	dials := l.dialled()
	l.until(straddled, -1600*time.Millisecond)
	l.cut(simulate.Serving)
	l.back()
	l.until(straddled, 300*time.Millisecond)
	if from := l.attached[len(l.attached)-1].from; !from.Before(l.opens(straddled)) {
		t.Fatalf("the relay was registered at %s", clockText(from))
	}
	l.cut(simulate.Serving)
	for i, n := range l.dialled() {
		if n != dials[i] {
			t.Errorf("%s lost its socket to a Cloudly that stood for a second", l.ids[i])
		}
	}
	l.back()
	l.whole()
	// It dies while nodes are told to dial again: those on their way stay away.
	l.until(straddled, 3*time.Minute)
	l.cut(simulate.Serving)
	l.back()
	time.Sleep(6 * time.Second)
	l.cut(simulate.Unreachable)
	for _, id := range l.ids {
		if _, bound := l.r.relay.forward.Binding(id); !bound {
			l.lost(id)
		}
	}
	if n := len(l.away()); n > len(l.ids)/4 {
		t.Errorf("%d nodes were on their way", n)
	}
	l.until(between, 3*time.Minute)
	l.back()
	l.whole()
}

// answerLost has Cloudly accept a registration whose answer is lost, and be gone.
func (l *leases) answerLost() {
	l.r.t.Helper()
	const method = contract.MethodRegisterClusterRelay
	l.r.cloudly.Script(method, simulate.CutOff())
	l.r.cloudly.Return()
	if err := l.r.cloudly.Wait(l.r.soon(), "a registration", func() bool { return l.r.cloudly.Scripted(method) == 0 }); err != nil {
		l.r.t.Fatal(err)
	}
	l.r.cloudly.SetReachability(simulate.Unreachable)
	synctest.Wait()
}

// firstHour is what happens in the first hour of the outage.
func (l *leases) firstHour() {
	// A slot opens two seconds early by the relay's clock: nodes refuse it once.
	l.until(7, 5*time.Minute)
	l.set(2 * time.Second)
	l.reach(8, 2*time.Minute, simulate.Dying)
	l.reach(8, 3*time.Minute, simulate.Mute)
	l.until(8, 5*time.Minute)
	l.set(0)
	l.reach(9, -time.Minute, simulate.Hanging) // while a slot opens
	l.reach(9, 8*time.Minute, simulate.Unavailable)
	l.reach(10, 8*time.Minute, simulate.Unreachable)
	// The clock is set back before a slot and put right in it.
	l.until(11, -20*time.Second)
	from := time.Now()
	l.set(-40 * time.Second)
	time.Sleep(releasedWithin)
	l.wantSuspect(true)
	l.until(11, 15*time.Second)
	l.wantSuspect(true)
	l.set(0)
	l.suspect = append(l.suspect, span{from, time.Now()})
	time.Sleep(releasedWithin)
	l.wantSuspect(false)
	l.until(11, 6*time.Minute)
}

// laterHours is what happens in the others.
func (l *leases) laterHours() {
	t := l.r.t
	t.Helper()
	l.until(12, 2*time.Minute)
	l.answerLost()
	// Cloudly is back for a second, and for nearly two.
	l.until(13, 2*time.Minute)
	l.stand(time.Second)
	l.until(13, 5*time.Minute)
	l.stand(1900 * time.Millisecond)
	// The clock is set forth, so that a slot is released and refused, and then right:
	// it has to catch up before the slot is released again.
	l.until(15, -40*time.Second)
	l.set(45 * time.Second)
	l.until(15, -37*time.Second)
	from := time.Now()
	l.set(0)
	time.Sleep(releasedWithin)
	trusted := l.wantSuspect(true)
	if least := l.opens(15).Add(8 * time.Second); trusted.Before(least) || trusted.After(least.Add(releasedWithin)) {
		t.Errorf("the clock is trusted at %s, want within a second from %s", clockText(trusted), clockText(least))
	}
	l.suspect = append(l.suspect, span{from, trusted})
	// A session to Cloudly ends the suspicion; the relay goes by a clock that is late.
	l.until(17, -7*time.Minute)
	from = time.Now()
	l.set(-2 * time.Minute)
	time.Sleep(releasedWithin)
	l.wantSuspect(true)
	l.stand(time.Second)
	l.suspect = append(l.suspect, span{from, l.attached[len(l.attached)-1].from})
	l.wantSuspect(false)
	l.until(17, 5*time.Minute)
	l.set(0)

	l.until(18, 3*time.Minute)
	l.breaks(later, l.node(later).Reconnect)
	l.until(20, 3*time.Minute)
	l.stand(time.Second)
	l.reach(22, -time.Minute, simulate.Mute)
	l.reach(23, 2*time.Minute, simulate.Dying)
	l.reach(24, 2*time.Minute, simulate.Unreachable)
}

// reach changes, so long after a slot opened, how Cloudly is away.
func (l *leases) reach(slot int64, after time.Duration, how simulate.Reachability) {
	l.until(slot, after)
	l.r.cloudly.SetReachability(how)
}

// wantSuspect checks whether the status tells of a suspect clock, and returns when it
// says that the clock will have caught up.
func (l *leases) wantSuspect(want bool) time.Time {
	l.r.t.Helper()
	synctest.Wait()
	s := l.coverage()
	if s.ClockSuspect != want {
		l.r.t.Errorf("at %s the clock is suspect: %v", clockText(time.Now()), s.ClockSuspect)
	}
	return s.ClockTrusted
}

// halfHourAfter is what happens after the outage.
func (l *leases) halfHourAfter() {
	l.until(outageTo, 6*time.Minute)
	for i := 4; i < len(l.nodes); i += 16 {
		l.nodes[i].Reconnect()
	}
	// Cloudly dies again twice.
	l.until(outageTo, 7*time.Minute)
	l.cut(simulate.Serving)
	l.back()
	time.Sleep(time.Second)
	l.cut(simulate.Serving)
	l.back()
	l.whole()
	l.until(again-1, 5*time.Minute)
	l.cut(simulate.Unreachable)
	l.until(again, 3*time.Minute)
	l.back()
	l.whole()
}
