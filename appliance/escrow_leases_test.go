package appliance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/listener"
	"serve.zone/relay/simulate"
)

const (
	// releasedWithin is how soon a renewal leaves that may: a wall clock that was set
	// is noticed within a second (design §4, O36), anything else at once.
	releasedWithin = time.Second
	// pushedAgain is when a renewal follows that the node refused once (contract §9.5).
	pushedAgain = 5 * time.Second
	// reporters is how many nodes report in a slot.
	reporters = 32
)

// leases are a fleet whose DNS leases are kept going, by Cloudly while it is there
// and by the relay while it is not, with the account of what was done to them.
type leases struct {
	*fleet
	truth
	own   *clock // the relay's; Cloudly and the nodes keep the true time
	first int64  // the first slot that is renewed

	sent  map[delivery]int     // by Cloudly
	gone  map[string]span      // nodes without a socket while Cloudly was away, until it had them back
	late  map[string]time.Time // nodes whose socket broke under Cloudly, and by when they have its renewal
	turns int                  // how often nodes reported
	shut  atomic.Bool          // no node reaches the relay by a new connection

	relayed map[string][]int64 // slots that a node took from the relay, in order
	next    uint64             // the number of the event to be heard next
	heard   []shownEvent
}

// delivery is a renewal on its way to a node.
type delivery struct {
	node     string
	sequence int64
	at       time.Time
}

// leased starts so many nodes that hold a projection, with a Cloudly that renews it.
func leased(t *testing.T, size int, alter func(id string, c *simulate.PalletConfig)) *leases {
	t.Helper()
	own := &clock{}
	r := newRig(t, stepping(change{relay: func(*Config) {}}, own))
	l := &leases{fleet: r.fleet(0), own: own, sent: map[delivery]int{}, gone: map[string]span{}, late: map[string]time.Time{}, relayed: map[string][]int64{}}
	r.registered(0)
	l.attached = []span{{from: time.Now(), to: forever}}
	for i := range size {
		id := fmt.Sprintf("node-%03d", i)
		l.join(id, func(c *simulate.PalletConfig) {
			dial := c.Dial
			c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				if l.shut.Load() {
					return nil, errShut
				}
				return dial(ctx, network, address)
			}
			alter(id, c)
		})
	}
	l.wantRegistered(time.Minute)
	l.first = simulate.SlotOf(time.Now()) + 1
	for i, id := range l.ids {
		projection, err := r.cloudly.Project(id)
		if err != nil {
			t.Fatal(err)
		}
		l.nodes[i].AdmitProjection(projection)
	}
	if err := r.cloudly.KeepRenewed(); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return l
}

var errShut = errors.New("the network takes no new connections")

// forever is the end of what has not ended yet.
var forever = time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)

// opens returns when a slot opens, counted from the one before the first.
func (l *leases) opens(slot int64) time.Time { return simulate.SlotStart(l.first - 1 + slot) }

// until lets time pass until so long after a slot opened. Four minutes into each
// slot some nodes report.
func (l *leases) until(slot int64, after time.Duration) {
	end := l.opens(slot).Add(after)
	for {
		turn := l.opens(int64(l.turns)).Add(4 * time.Minute)
		if turn.After(end) {
			break
		}
		time.Sleep(time.Until(turn))
		l.turn()
	}
	time.Sleep(time.Until(end))
	synctest.Wait()
}

// turn has some nodes report and books what Cloudly sent since the turn before.
func (l *leases) turn() {
	l.turns++
	for i := range min(reporters, len(l.nodes)) {
		n := (l.turns*reporters + i) % len(l.nodes)
		l.report(l.r.t, l.nodes[n], l.ids[n])
	}
	l.book()
}

// book keeps of what Cloudly has sent the renewals, and forgets the rest.
func (l *leases) book() {
	l.r.t.Helper()
	frames := l.r.cloudly.Frames()
	if n := frames.Dropped(); n > 0 {
		l.r.t.Fatalf("%d frames of Cloudly were not recorded", n)
	}
	for _, m := range frames.Sent(contract.MethodApplyDNSLeaseRenewal) {
		request, err := contract.ReadApplyDNSLeaseRenewalRequest(m.Body)
		if err != nil {
			l.r.t.Fatal(err)
		}
		l.sent[delivery{request.Signed.Renewal.NodeID, request.Signed.Renewal.Sequence, m.At}]++
	}
	frames.Forget()
}

// set sets the relay's wall clock so far off the true time.
func (l *leases) set(off time.Duration) {
	l.own.stepTo(off)
	l.steps = append(l.steps, step{time.Now(), off})
}

// cut ends the session to Cloudly, which is not to be reached in this way then.
func (l *leases) cut(how simulate.Reachability) {
	l.r.cloudly.SetReachability(how)
	l.r.cloudly.CutSockets()
	if last := &l.attached[len(l.attached)-1]; last.to == forever {
		last.to = time.Now()
	}
	synctest.Wait()
}

// back has Cloudly return and waits until the relay is registered.
func (l *leases) back() {
	l.r.t.Helper()
	socket := l.r.cloudly.Opened()
	l.r.cloudly.Return()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if _, err := l.r.cloudly.WaitRegistered(ctx, socket); err != nil {
		l.r.t.Fatal(err)
	}
	l.attached = append(l.attached, span{from: time.Now(), to: forever})
	synctest.Wait()
}

// stand has Cloudly be back for so long and die again, before it answers a node that
// would register.
func (l *leases) stand(d time.Duration) {
	l.r.t.Helper()
	l.r.cloudly.ScriptAlways(contract.MethodRegisterPalletRuntimeSession, simulate.Ignore())
	defer l.r.cloudly.ClearScript(contract.MethodRegisterPalletRuntimeSession)
	l.back()
	time.Sleep(d)
	l.cut(simulate.Unreachable)
}

// whole waits until Cloudly has all nodes back.
func (l *leases) whole() {
	l.r.t.Helper()
	l.wantRegistered(2*time.Minute + allBack)
	for id, s := range l.gone {
		if s.to == forever {
			l.gone[id] = span{s.from, time.Now()}
		}
	}
}

// lost notes that a node has no socket while Cloudly is away.
func (l *leases) lost(id string) {
	l.gone[id] = span{from: time.Now(), to: forever}
}

// node returns a node by its id.
func (l *leases) node(id string) *simulate.Pallet { return l.nodes[slices.Index(l.ids, id)] }

// isGone reports whether a node has no socket now.
func (l *leases) isGone(id string) bool { return l.gone[id].to == forever }

// weighed is what the process holds once no node is on its way to the relay, without
// what nodes remember of the renewals they judged.
func (l *leases) weighed() weight {
	t := l.r.t
	t.Helper()
	l.book()
	l.shut.Store(true)
	defer l.shut.Store(false)
	time.Sleep(contract.FirstRegistrationTimeout + 5*time.Second) // and the end of the socket
	synctest.Wait()
	if n := l.r.relay.listener.Status().(listener.Status).Unbound; n > 0 {
		t.Errorf("%d sockets without a role are left", n)
	}
	w := l.weigh()
	w.heap -= l.remembered()
	return w
}

// remembered weighs what the nodes remember of the renewals they judged, which grows
// as long as a run lasts: as much as a copy of it.
func (l *leases) remembered() int {
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	copies := make([][]simulate.Judgement, len(l.nodes))
	before := heap()
	for i, p := range l.nodes {
		for _, j := range p.Judgements() {
			x := j.Renewal
			j.Renewal = contract.DNSLeaseRenewal{
				Controller: slices.Clone(x.Controller), NodeID: strings.Clone(x.NodeID), RuntimeNamespace: strings.Clone(x.RuntimeNamespace),
				Projection: contract.Reference{ID: strings.Clone(x.Projection.ID), Generation: x.Projection.Generation, Digest: strings.Clone(x.Projection.Digest)},
				Sequence:   x.Sequence, DNS: x.DNS, Digest: strings.Clone(x.Digest),
			}
			copies[i] = append(copies[i], j)
		}
	}
	after := heap()
	runtime.KeepAlive(copies)
	return after - before
}

// away returns the nodes that have no socket now, in order.
func (l *leases) away() []string {
	var names []string
	for id := range l.gone {
		if l.isGone(id) {
			names = append(names, id)
		}
	}
	slices.Sort(names)
	return names
}
