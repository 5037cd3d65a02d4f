package forward

import (
	"testing"
	"testing/synctest"
	"time"
)

// What a message spends inside is the time until it was written, not until it
// was queued; failures that the relay composes are no messages.
func TestInsideCountsFromReadToWritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		node, session := r.bound(cloud, "node-a")
		synctest.Wait()
		before := r.inside()
		cloud.gate.shut()
		node.send(report, body(session, `"x":1`)) // the read that waits takes it
		synctest.Wait()
		node.send(report, body(session, `"x":2`))
		synctest.Wait()
		time.Sleep(3 * time.Second)
		cloud.gate.open()
		f := cloud.recv()
		cloud.recv()
		synctest.Wait()
		time.Sleep(20 * time.Second) // Cloudly's time, not the relay's
		cloud.answer(f, `"response":{}`)
		node.recv()
		synctest.Wait()
		after := r.inside()
		if n, spent := after[aRequest].count-before[aRequest].count, after[aRequest].sum-before[aRequest].sum; n != 2 || spent != 3 {
			t.Errorf("%d requests spent %v s inside", n, spent)
		}
		if n, spent := after[anAnswer].count-before[anAnswer].count, after[anAnswer].sum-before[anAnswer].sum; n != 1 || spent != 0 {
			t.Errorf("%d answers spent %v s inside", n, spent)
		}

		node.send(report, body(session, `"x":1`))
		cloud.recv()
		r.lose(cloud)
		node.recv() // a failure
		synctest.Wait()
		if n := r.inside()[anAnswer].count - after[anAnswer].count; n != 0 {
			t.Errorf("%d failures count as answers", n)
		}
	})
}

type spent struct {
	count uint64
	sum   float64
}

// inside reads the histogram.
func (r *rig) inside() map[message]spent {
	found := map[message]spent{}
	for _, family := range r.Metrics().Snapshot() {
		if family.Name == "relay_forward_inside_seconds" {
			for i, sample := range family.Samples {
				found[message(i)] = spent{sample.Count, sample.Value}
			}
		}
	}
	return found
}
