package queue

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"serve.zone/relay/typedsocket/buffer"
)

var roomy = Limits{Own: 1 << 30, Flow: 1 << 30, Flows: 1 << 30}

// frame makes a frame of n bytes that begins with a label.
func frame(label string, n int) Item {
	p := make([]byte, n)
	copy(p, label)
	return Item{Buf: buffer.Of(p)}
}

func label(item Item, n int) string { return string(item.Buf.Bytes()[:n]) }

func mustPush(t testing.TB, q *Queue, flow string, item Item) {
	t.Helper()
	if err := q.Push(flow, item); err != nil {
		t.Fatal(err)
	}
}

func TestOwnFramesLeaveFirstAndInOrder(t *testing.T) {
	q := New(roomy)
	mustPush(t, q, "a", frame("f1", 10))
	for _, l := range []string{"o1", "o2"} {
		if err := q.PushOwn(frame(l, 10)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	q.Drain(func(i Item) { got = append(got, label(i, 2)) })
	if fmt.Sprint(got) != "[o1 o2 f1]" {
		t.Fatalf("left in order %v", got)
	}
	if !q.Empty() {
		t.Fatal("not empty after Drain")
	}
}

func TestBoundsRefuseByNameAndChangeNothing(t *testing.T) {
	size := buffer.Of(make([]byte, 10)).Size()
	q := New(Limits{Own: 2 * size, Flow: 2 * size, Flows: 3 * size})
	var full *FullError
	for range 2 {
		if err := q.PushOwn(frame("o", 10)); err != nil {
			t.Fatal(err)
		}
		mustPush(t, q, "a", frame("a", 10))
	}
	if err := q.PushOwn(frame("o", 10)); !errors.As(err, &full) || full.Flow != "" || full.Limit != 2*size || full.Queued != 2*size {
		t.Fatalf("own frames: %v", err)
	}
	if err := q.Push("a", frame("a", 10)); !errors.As(err, &full) || full.Flow != "a" || full.Whole {
		t.Fatalf("flow: %v", err)
	}
	mustPush(t, q, "b", frame("b", 10))
	if err := q.Push("c", frame("c", 10)); !errors.As(err, &full) || !full.Whole || full.Limit != 3*size {
		t.Fatalf("all flows: %v", err)
	}
	if own, flows := q.Bytes(); own != 2*size || flows != 3*size {
		t.Fatalf("holds %d and %d bytes after refusals", own, flows)
	}
	n := 0
	q.Drain(func(Item) { n++ })
	if own, flows := q.Bytes(); n != 5 || own != 0 || flows != 0 {
		t.Fatalf("%d frames left, %d and %d bytes remain", n, own, flows)
	}
}

// B031: of 256 flows with always something to send, one of them in frames of 1 MiB, no
// two differ after any number of bytes by more than a frame of each and a quantum.
func TestB031_OneFloodingFlowTakesNoMoreThanItsShare(t *testing.T) {
	const flows, small, large = 256, 4 << 10, 1 << 20
	q := New(roomy)
	sent := make(map[string]int)
	size := func(flow string) int {
		if flow == "flood" {
			return large
		}
		return small
	}
	names := []string{"flood"}
	for i := range flows - 1 {
		names = append(names, fmt.Sprintf("node-%03d", i))
	}
	for _, n := range names {
		mustPush(t, q, n, named(n, size(n)))
	}
	for total := 0; total < 600<<20; {
		item, ok := q.Pop()
		if !ok {
			t.Fatal("ran empty")
		}
		flow := flowOf(item)
		sent[flow] += item.Buf.Len()
		total += item.Buf.Len()
		mustPush(t, q, flow, item)
	}
	low, high := sent[names[1]], sent[names[1]]
	for _, n := range names[1:] {
		low, high = min(low, sent[n]), max(high, sent[n])
	}
	if high-low > small+quantum {
		t.Fatalf("equal flows sent between %d and %d bytes", low, high)
	}
	if d := sent["flood"] - high; d > large+quantum {
		t.Fatalf("the flood sent %d bytes more than the others", d)
	}
	if d := low - sent["flood"]; d > large+quantum {
		t.Fatalf("the flood sent %d bytes less than the others", d)
	}
}

func named(flow string, n int) Item {
	item := frame(flow, n)
	item.Buf.Bytes()[len(flow)] = 0
	return item
}

func flowOf(item Item) string {
	p := item.Buf.Bytes()
	for i, c := range p {
		if c == 0 {
			return string(p[:i])
		}
	}
	return string(p)
}

// oracle is deficit round robin without any short cut: every round is walked.
type oracle struct {
	own     []string
	ring    []string
	flows   map[string][]oracleFrame
	deficit map[string]int
}

type oracleFrame struct {
	label string
	size  int
}

func (o *oracle) push(flow string, f oracleFrame) {
	if len(o.flows[flow]) == 0 {
		o.ring = append(o.ring, flow)
		o.deficit[flow] = 0
	}
	o.flows[flow] = append(o.flows[flow], f)
}

func (o *oracle) pop() (string, bool) {
	if len(o.own) > 0 {
		l := o.own[0]
		o.own = o.own[1:]
		return l, true
	}
	for len(o.ring) > 0 {
		name := o.ring[0]
		f := o.flows[name][0]
		if o.deficit[name] >= f.size {
			o.deficit[name] -= f.size
			o.flows[name] = o.flows[name][1:]
			if len(o.flows[name]) == 0 {
				o.ring = o.ring[1:]
				if len(o.ring) > 0 {
					o.deficit[o.ring[0]] += quantum
				}
			}
			return f.label, true
		}
		o.ring = append(o.ring[1:], name)
		o.deficit[o.ring[0]] += quantum
	}
	return "", false
}

// drop forgets everything but the own frames.
func (o *oracle) drop() {
	o.ring = nil
	clear(o.flows)
}

func TestQueueAgreesWithTheSlowOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := New(roomy)
		o := &oracle{flows: map[string][]oracleFrame{}, deficit: map[string]int{}}
		next := 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch op := rapid.IntRange(0, 22).Draw(t, "op"); op / 4 {
			case 5:
				if op > 20 {
					owner := rapid.IntRange(0, next).Draw(t, "withdrawn")
					l := fmt.Sprintf("%06d", owner)
					at := slices.Index(o.own, l)
					item, ok := q.WithdrawOwn(owner)
					if ok != (at >= 0) || ok && label(item, 6) != l {
						t.Fatalf("withdrew %v %v, oracle says %d", item, ok, at)
					}
					if ok {
						o.own = slices.Delete(o.own, at, at+1)
						item.Buf.Release()
					}
					if own, _ := q.Bytes(); own == 0 != (len(o.own) == 0) {
						t.Fatalf("%d bytes of %d own frames", own, len(o.own))
					}
					continue
				}
				waiting := 0
				for _, f := range o.flows {
					waiting += len(f)
				}
				q.DropFlows(func(i Item) {
					if !i.OfFlow() {
						t.Fatal("dropped an own frame")
					}
					waiting--
					i.Buf.Release()
				})
				if _, flows := q.Bytes(); waiting != 0 || flows != 0 {
					t.Fatalf("%d frames too few were dropped, %d bytes remain", waiting, flows)
				}
				o.drop()
			case 0:
				l, item := fmt.Sprintf("%06d", next), frame(fmt.Sprintf("%06d", next), 6)
				item.Owner = next
				next++
				if err := q.PushOwn(item); err != nil {
					t.Fatal(err)
				}
				o.own = append(o.own, l)
			case 1, 2:
				l := fmt.Sprintf("%06d", next)
				next++
				flow := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "flow")
				size := rapid.SampledFrom([]int{6, 500, 1024, 1025, 5000, 70_000}).Draw(t, "size")
				if err := q.Push(flow, frame(l, size)); err != nil {
					t.Fatal(err)
				}
				o.push(flow, oracleFrame{l, size})
			default:
				item, ok := q.Pop()
				want, wantOK := o.pop()
				if ok != wantOK || ok && label(item, 6) != want {
					t.Fatalf("popped %v, oracle says %q %v", ok, want, wantOK)
				}
				if ok {
					item.Buf.Release()
				}
			}
		}
	})
}

// TestDropFlowsKeepsOwnFramesAndTheOrderOfAFlow.
func TestDropFlowsKeepsOwnFramesAndTheOrderOfAFlow(t *testing.T) {
	q := New(roomy)
	for _, l := range []string{"a1", "b1", "a2", "b2", "a3"} {
		mustPush(t, q, l[:1], frame(l, 70_000))
	}
	if err := q.PushOwn(frame("o1", 10)); err != nil {
		t.Fatal(err)
	}
	of := map[string]string{}
	q.DropFlows(func(i Item) { l := label(i, 2); of[l[:1]] += l[1:]; i.Buf.Release() })
	if of["a"] != "123" || of["b"] != "12" || len(of) != 2 || q.active != 0 || len(q.flows) != 0 {
		t.Fatalf("dropped %v, %d flows are left", of, q.active)
	}
	mustPush(t, q, "a", frame("a4", 10))
	got := ""
	q.Drain(func(i Item) { got += label(i, 2); i.Buf.Release() })
	if got != "o1a4" {
		t.Fatalf("left were %s", got)
	}
}

func TestAnEmptyQueueKeepsNoFlow(t *testing.T) {
	q := New(roomy)
	for i := range 1000 {
		mustPush(t, q, fmt.Sprint(i), frame("x", 10))
	}
	q.Drain(func(i Item) { i.Buf.Release() })
	if len(q.flows) != 0 || q.turn != nil || q.active != 0 {
		t.Fatalf("%d flows kept, %d active", len(q.flows), q.active)
	}
}

func BenchmarkPushPop256Flows(b *testing.B) {
	q := New(roomy)
	names := make([]string, 256)
	for i := range names {
		names[i] = fmt.Sprint(i)
		mustPush(b, q, names[i], frame("x", 500))
	}
	b.ReportAllocs()
	for b.Loop() {
		item, _ := q.Pop()
		if err := q.Push(names[b.N&255], item); err != nil {
			b.Fatal(err)
		}
	}
}
