package appliance

import (
	"context"
	"slices"
	"sync"
	"time"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/forward"
	"serve.zone/relay/typedsocket"
)

// recorder stands for the duties that come later: it holds what Cloudly gives it,
// drops it with custody, and records what it was told.
type recorder struct {
	mu     sync.Mutex
	heard  []string
	held   []string // methods whose bodies it holds
	pulls  int
	refuse error // what a pull returns
	nodes  map[string]contract.ConfiguredNode
	sock   *typedsocket.Socket // of the last registration
}

var recorderKinds []duty.EventKind

// recorded are the own methods that later duties serve.
var recorded = []string{
	"applyClusterVpnNetwork", "getClusterCorestoreInventory", "pruneClusterNodeArchive", "getClusterCorestoreLegacyResources",
}

func (rec *recorder) part(a *Appliance) part {
	p := part{
		duty:       rec,
		serves:     map[string]func(*typedsocket.Request){},
		registered: func(sock *typedsocket.Socket, a cloudly.Accepted) { rec.keep(sock); rec.note(registeredNote(a)) },
		lost:       func(error) { rec.note("lost") },
		configured: rec.configured,
		quiesce:    func() { rec.note("quiesced") },
		bound:      func(b forward.Binding) { rec.note("bound " + b.NodeID) },
		unbound:    func(id string) { rec.note("unbound " + id) },
		pulls:      []func(context.Context, *typedsocket.Socket) error{rec.pull},
	}
	for _, method := range recorded {
		if a.hub != nil && method == contract.MethodApplyVPNNetwork {
			continue
		}
		p.serves[method] = func(r *typedsocket.Request) {
			rec.mu.Lock()
			rec.held = append(rec.held, method)
			rec.mu.Unlock()
			r.Answer([]byte(`{"held":1}`))
		}
	}
	return p
}

func registeredNote(a cloudly.Accepted) string {
	if a.First {
		return "registered first"
	}
	return "registered again"
}

func (rec *recorder) note(what string) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.heard = append(rec.heard, what)
}

func (rec *recorder) configured(c contract.ClusterConfiguration) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.heard = append(rec.heard, "configured "+c.Relay.String())
	rec.nodes = map[string]contract.ConfiguredNode{}
	for _, n := range c.Nodes {
		rec.nodes[n.ID] = n
	}
}

func (rec *recorder) pull(context.Context, *typedsocket.Socket) error {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.pulls++
	return rec.refuse
}

// take returns what was heard since the last call.
func (rec *recorder) take() []string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	heard := rec.heard
	rec.heard = nil
	return heard
}

func (rec *recorder) keep(sock *typedsocket.Socket) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.sock = sock
}

// socket returns the one that the relay was registered on last.
func (rec *recorder) socket() *typedsocket.Socket {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.sock
}

// holds returns what is held.
func (rec *recorder) holds() []string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return slices.Clone(rec.held)
}

// Name implements duty.Duty.
func (rec *recorder) Name() string { return "recorder" }

// Checks implements duty.Duty.
func (rec *recorder) Checks(time.Time) []duty.Check { return nil }

// RecorderStatus is what the recorder shows.
type RecorderStatus struct {
	Held int `json:"held"`
}

// Status implements duty.Duty.
func (rec *recorder) Status() any {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return RecorderStatus{Held: len(rec.held)}
}

// DropCustody implements duty.Duty.
func (rec *recorder) DropCustody(why string) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.heard = append(rec.heard, "dropped "+why)
	rec.held, rec.nodes = nil, nil
}

// Drain implements duty.Duty.
func (rec *recorder) Drain(context.Context) error { rec.note("drained"); return nil }
