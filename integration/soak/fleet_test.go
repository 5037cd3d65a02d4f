package soak_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// Names of contract §8.
const (
	report     = "reportRuntimeNetworkProtection"
	assignment = "applyRuntimeAssignment"
	applying   = "applyRuntimeNetworkDnsLeaseRenewal"
)

const (
	// fleetSize is how many nodes a soak has, and smallFleet how many a run has that does
	// each thing once: the members of the hub, and as many of which renewals are held.
	fleetSize  = 64
	smallFleet = members + leasedNodes
	// everyReport and everyPush are how often a node reports, and something is pushed to
	// some node, at the mean: what two busy cores carry beside everything else.
	everyReport = pace * 200 * time.Millisecond
	everyPush   = pace * 10 * time.Millisecond
	// answerWait is longer than the relay gives a forwarded call, so that it always has
	// the last word.
	answerWait = contract.ForwardTimeout + 15*time.Second
	// nodeRecord bounds what is recorded of one node between two quiet points.
	nodeRecord = 8 << 20
)

// numbered is a message of a ledger as it crosses.
type numbered struct {
	Node string `json:"node"`
	N    int    `json:"n"`
	Pad  string `json:"pad,omitempty"`
}

// What nodes and Cloudly are told in place of an answer while one of them is away, or is
// not the one that registered last. What begins with "refused" the simulated peers say of
// a session that another has just taken the place of.
var (
	toldNodes = []string{
		string(contract.RelayNotReady), string(contract.RelayNodeSessionNotCurrent), string(contract.RelayOverloaded),
		notAsked, socketOver, noAnswer,
		"refused: the session is not the node's current one",
		"refused: no relay is verified on this socket", "refused: " + string(contract.RelayCredentialGenerationStale), // as custody ends
	}
	toldCloudly = []string{
		string(contract.RelayNotReady), string(contract.RelayNodeSessionNotCurrent), string(contract.RelayOverloaded),
		string(contract.RelayNodeNotCarried),
		notAsked, socketOver, noAnswer,
		"refused: the session is not this node's current one",
	}
)

// What a sender may be told beside names.
const (
	notAsked   = "not asked"                      // there was nobody to ask
	socketOver = "socket ended"                   // the answer was lost with it
	noAnswer   = "refused: Internal server error" // no answer came within the time that a forwarded call has, or its socket ended
)

// toldOf names what a sender was told in place of an answer, "" for an answer.
func toldOf(err error) string {
	if err == nil {
		return ""
	}
	if name, ok := simulate.Named(err, contract.TransportRefusals()); ok {
		return string(name)
	}
	var remote *typedsocket.RemoteError
	switch {
	case errors.As(err, &remote):
		return "refused: " + remote.Text
	case errors.Is(err, simulate.ErrNotRegistered), errors.Is(err, simulate.ErrNodeNotConnected), err.Error() == "no relay is registered":
		return notAsked
	case errors.Is(err, typedsocket.ErrClosed):
		return socketOver
	}
	return err.Error()
}

// fleet are the nodes with the account of what they and Cloudly send each other.
type fleet struct {
	s       *soak
	ids     []string
	nodes   []*simulate.Pallet
	reports *ledger
	pushes  *ledger
	logs    []int64        // by node: the last batch that was acknowledged
	folded  []int          // by node: judgements of renewals that were looked at
	beside  sync.WaitGroup // what events began that ends by itself
	faulted struct {
		sync.Mutex
		list []string
	}
}

// newFleet starts so many nodes and waits until all are registered.
func newFleet(s *soak, size int) *fleet {
	s.t.Helper()
	f := &fleet{s: s, reports: newLedger("reports", toldNodes...), pushes: newLedger("pushes", toldCloudly...),
		logs: make([]int64, size), folded: make([]int, size)}
	s.Cloudly.Handle(report, f.take)
	for i := range size {
		id := nodeName(i)
		f.ids = append(f.ids, id)
		f.nodes = append(f.nodes, s.StartNode(id, func(c *simulate.PalletConfig) {
			c.RecordLimit, c.Wall = nodeRecord, s.clock.now
		}))
	}
	ctx := s.Soon()
	for i, p := range f.nodes {
		if _, err := p.WaitRegistered(ctx, 0); err != nil {
			s.t.Fatalf("%s: %v", f.ids[i], err)
		}
	}
	return f
}

func nodeName(i int) string { return fmt.Sprintf("node-%02d", i) }

// fault notes what is wrong with a message. Any goroutine may call it.
func (f *fleet) fault(format string, args ...any) {
	f.faulted.Lock()
	defer f.faulted.Unlock()
	f.faulted.list = append(f.faulted.list, fmt.Sprintf(format, args...))
}

func (f *fleet) faults() []string {
	f.faulted.Lock()
	defer f.faulted.Unlock()
	return append([]string(nil), f.faulted.list...)
}

// take is Cloudly's answer to a report.
func (f *fleet) take(node string, request []byte) ([]byte, error) {
	var body numbered
	if err := json.Unmarshal(request, &body); err != nil || body.Node != node {
		f.fault("a report of %q came as one of %s: %v", body.Node, node, err)
	}
	f.reports.take(account{body.Node, body.N})
	return json.Marshal(numbered{Node: body.Node, N: body.N})
}

// within is a context of a call, which ends with it.
func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// report sends the next report of a node.
func (f *fleet) report(i int, pad string) {
	ctx, cancel := within(answerWait)
	defer cancel()
	a := f.reports.send(f.ids[i])
	body, _ := json.Marshal(numbered{Node: a.node, N: a.n, Pad: pad})
	answer, err := f.nodes[i].Send(ctx, report, body)
	if err == nil {
		var got numbered
		if json.Unmarshal(answer, &got) != nil || (account{got.Node, got.N}) != a {
			f.fault("report %d of %s was answered as %d of %s", a.n, a.node, got.N, got.Node)
		}
	}
	f.reports.over(a, toldOf(err))
}

// push has Cloudly assign something to a node.
func (f *fleet) push(i int) {
	ctx, cancel := within(answerWait)
	defer cancel()
	a := f.pushes.send(f.ids[i])
	body, _ := json.Marshal(map[string]numbered{"assignment": {Node: a.node, N: a.n}})
	_, err := f.s.Cloudly.CallNode(ctx, a.node, assignment, body)
	f.pushes.over(a, toldOf(err))
}

// log reports the next batch of a node's log, or the last one again that was not
// acknowledged, as an outbox does: Cloudly has each once and in order.
func (f *fleet) log(i int) {
	ctx, cancel := within(answerWait)
	defer cancel()
	next := f.logs[i] + 1
	status, err := f.nodes[i].ReportLogs(ctx, simulate.LogBatch{AssignmentID: "assignment-1", AttemptID: "attempt-1", CaptureID: "capture-1",
		Sequence: next, Entries: []contract.Raw{contract.Raw(`{"text":"a line"}`)}})
	switch {
	case err != nil:
		if told := toldOf(err); told != notAsked && errors.Is(err, context.DeadlineExceeded) {
			f.fault("batch %d of %s met %s", next, f.ids[i], told)
		}
	case status == "accepted", status == "replay":
		f.logs[i] = next
	default:
		f.fault("batch %d of %s was answered %q", next, f.ids[i], status)
	}
}

// secret asks for the VPN credential of a node, whose answer is the most secret thing
// that passes.
func (f *fleet) secret(i int) {
	ctx, cancel := within(answerWait)
	defer cancel()
	f.nodes[i].GetManagedVPNCredential(ctx) // what is wrong with an answer is a violation
}

// work has everybody work until the returned function is called, which waits for what is
// under way.
func (f *fleet) work(random *rand.Rand) (rest func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	often := func(every time.Duration, do func(own *rand.Rand)) {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		all.Go(func() {
			timer := time.NewTimer(0)
			defer timer.Stop()
			for {
				timer.Reset(time.Duration(own.Int64N(int64(2 * every))))
				select {
				case <-done:
					return
				case <-timer.C:
					do(own)
				}
			}
		})
	}
	for i := range f.nodes {
		often(everyReport, func(own *rand.Rand) { f.report(i, padding[:padded(own)]) })
		often(4*everyReport, func(*rand.Rand) { f.log(i) })
		if i < members {
			often(4*everyReport, func(*rand.Rand) { f.secret(i) })
		}
	}
	// A push to a node that is stalled takes as long as the stall: others go on.
	const pushers = 8
	for range pushers {
		often(everyPush*pushers, func(own *rand.Rand) { f.push(own.IntN(len(f.nodes))) })
	}
	return sync.OnceFunc(func() { close(done); all.Wait(); f.beside.Wait() })
}

// padding makes reports longer.
var padding = strings.Repeat("x", 256<<10)

// padded is how long a report is: most are short, a few as long as a batch.
func padded(own *rand.Rand) int {
	switch own.IntN(64) {
	case 0:
		return len(padding)
	case 1, 2, 3:
		return 16 << 10
	}
	return 0
}

// fold takes over what the nodes have recorded, at a quiet point, and forgets it.
func (f *fleet) fold() {
	for i, p := range f.nodes {
		if n := p.Frames().Dropped(); n > 0 {
			f.s.t.Fatalf("%s: %d frames were dropped from its record", f.ids[i], n)
		}
		for _, m := range p.Frames().Received(assignment) {
			var body struct{ Assignment numbered }
			if err := json.Unmarshal(m.Body, &body); err != nil || body.Assignment.Node != f.ids[i] {
				f.fault("a push for %q came to %s: %v", body.Assignment.Node, f.ids[i], err)
			}
			f.pushes.take(account{body.Assignment.Node, body.Assignment.N})
		}
		p.Frames().Forget()
	}
}
