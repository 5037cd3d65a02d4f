package appliance

import (
	"time"

	"serve.zone/relay/simulate"
)

// outcomes are what became of the renewals of a run.
type outcomes struct {
	slots, relayed, cloudly   int // slots; those admitted from the relay, and from Cloudly
	early, late, doubled      int // of the relay's, by its own clock
	attached, suspect, notDue int // released though it must not be
	refused                   int // as early, by a node whose clock is behind the relay's
	replayed                  int // sent by Cloudly, which does not know what the relay gave meanwhile
	missing                   int
}

// judge looks at all that reached the nodes, from the first slot to the last.
func (l *leases) judge(last int64) outcomes {
	l.r.t.Helper()
	l.book()
	var sum outcomes
	for i, p := range l.nodes {
		l.judgeNode(&sum, l.ids[i], p.Judgements(), last)
	}
	return sum
}

func (l *leases) judgeNode(sum *outcomes, id string, judged []simulate.Judgement, last int64) {
	t := l.r.t
	t.Helper()
	admitted := map[int64]bool{}
	pushes := map[int64][]time.Time{} // by the relay
	for _, j := range judged {
		slot := j.Renewal.Sequence
		from := delivery{id, slot, j.At}
		byCloudly := l.sent[from] > 0
		if byCloudly {
			l.sent[from]--
			l.judgeCloudly(sum, id, j, admitted[slot])
		} else {
			l.judgeRelayed(sum, id, j, pushes[slot], admitted[slot])
			pushes[slot] = append(pushes[slot], j.At)
		}
		if j.Admission == simulate.Admitted {
			admitted[slot] = true
			sum.slots++
			if byCloudly {
				sum.cloudly++
			} else {
				sum.relayed++
				l.relayed[id] = append(l.relayed[id], slot)
			}
		}
	}
	for slot := int64(1); slot <= last; slot++ {
		gone := holds([]span{l.gone[id]}, l.opens(slot)) && slot < l.slotOf(l.gone[id].to)
		if admitted[slot] == gone {
			sum.missing++
			t.Errorf("%s: slot %d was admitted: %v, though the node was gone: %v", id, slot, admitted[slot], gone)
		}
	}
}

// slotOf returns the slot that a time lies in.
func (l *leases) slotOf(t time.Time) int64 { return simulate.SlotOf(t) - (l.first - 1) }

// judgeCloudly looks at a renewal that Cloudly sent.
func (l *leases) judgeCloudly(sum *outcomes, id string, j simulate.Judgement, before bool) {
	t := l.r.t
	t.Helper()
	opens := l.opens(j.Renewal.Sequence)
	switch late := j.At.Sub(opens); {
	case before && j.Admission == simulate.Replay:
		sum.replayed++
	case j.Admission != simulate.Admitted:
		t.Errorf("%s: slot %d of Cloudly: %q, %v", id, j.Renewal.Sequence, j.Admission, j.Refusal)
	case late == 0 || !holds(l.attached, opens) || !j.At.After(l.late[id]):
	default:
		t.Errorf("%s: slot %d came from Cloudly %s after it opened", id, j.Renewal.Sequence, late)
	}
}

// judgeRelayed looks at a renewal that the relay released, after these pushes of it.
func (l *leases) judgeRelayed(sum *outcomes, id string, j simulate.Judgement, before []time.Time, admitted bool) {
	t := l.r.t
	t.Helper()
	window, from := j.Renewal.DNS, l.opens(1)
	if len(before) > 0 {
		from = before[len(before)-1].Add(pushedAgain << (len(before) - 1))
	}
	wall, due := l.wall(j.At), l.due(time.UnixMilli(window.NotBefore), from)
	wrong := func(n *int, what string) {
		*n++
		t.Errorf("%s: slot %d was released at %s, %s; due at %s", id, j.Renewal.Sequence, clockText(j.At), what, clockText(due))
	}
	switch {
	case holds(l.attached, j.At):
		wrong(&sum.attached, "while Cloudly was there")
	case holds(l.suspect, j.At):
		wrong(&sum.suspect, "while the clock was suspect")
	case wall.UnixMilli() < window.NotBefore:
		wrong(&sum.early, "before its window opened")
	case admitted:
		wrong(&sum.doubled, "though the node has it")
	case due.IsZero() || j.At.Before(due):
		wrong(&sum.notDue, "though it was not due")
	case j.At.Sub(due) > releasedWithin || wall.UnixMilli() >= window.ExpiresAt:
		wrong(&sum.late, "too late")
	}
	switch {
	case j.Refusal == simulate.ErrRenewalEarly && wall.After(j.At):
		sum.refused++
	case j.Admission != simulate.Admitted:
		t.Errorf("%s: slot %d of the relay at %s: %q, %v", id, j.Renewal.Sequence, clockText(j.At), j.Admission, j.Refusal)
	}
}

func clockText(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// wantServed checks that no node that had its socket was ever without an open window:
// each renewal came before the one before it had ended.
func (l *leases) wantServed() {
	l.r.t.Helper()
	for i, p := range l.nodes {
		if _, gone := l.gone[l.ids[i]]; gone {
			continue
		}
		until := l.opens(0).Add(simulate.SlotWindow)
		for _, j := range p.Judgements() {
			if j.Admission != simulate.Admitted {
				continue
			}
			if j.At.After(until) {
				l.r.t.Errorf("%s served no names from %s to %s", l.ids[i], clockText(until), clockText(j.At))
			}
			until = time.UnixMilli(j.Renewal.DNS.ExpiresAt)
		}
	}
}
