package simulate

import (
	"net/http"
	"sync"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/carriertest"
)

// hop is the least that stands between a Pallet and Cloudly: it forwards
// whatever comes, and judges nothing. A test may answer a node's method itself.
type hop struct {
	t       *testing.T
	network *carriertest.Network
	up      *client // to Cloudly, nil when a test answers everything itself
	http    *http.Server

	mu      sync.Mutex
	answers map[string]func(*typedsocket.Request)
	nodes   map[string]*typedsocket.Socket // by the node that registered there
	sockets []*typedsocket.Socket
}

func newHop(t *testing.T) *hop {
	h := &hop{t: t, network: carriertest.NewNetwork(), answers: map[string]func(*typedsocket.Request){}, nodes: map[string]*typedsocket.Socket{}}
	h.http = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := typedsocket.Accept(w, r, typedsocket.Config{Peer: "node", Handler: typedsocket.HandlerFunc(h.fromNode)})
		if err != nil {
			return
		}
		h.mu.Lock()
		h.sockets = append(h.sockets, s)
		h.mu.Unlock()
	})}
	served := make(chan struct{})
	go func() { defer close(served); h.http.Serve(h.network) }()
	t.Cleanup(func() {
		h.http.Close()
		<-served
		for _, s := range h.all() {
			s.Cut(typedsocket.CloseNormal, "test over")
			<-s.Done()
		}
	})
	return h
}

// under puts the hop below a Cloudly and registers it there.
func (h *hop) under(s *stage) *hop {
	h.up = s.relay(typedsocket.HandlerFunc(h.fromCloudly))
	return h
}

// holding is under for a hop that takes runs of renewals, and notes them.
func (h *hop) holding(s *stage) (*hop, *[]contract.HoldDNSLeaseRenewalsRequest) {
	var held []contract.HoldDNSLeaseRenewalsRequest
	h.up = s.relay(typedsocket.HandlerFunc(func(r *typedsocket.Request) {
		if r.Method() != contract.MethodHoldDNSLeaseRenewals {
			h.fromCloudly(r)
			return
		}
		run, refusal := contract.AdmitHoldDNSLeaseRenewalsRequest(r.Body())
		if refusal != nil {
			h.t.Errorf("hold: %v", refusal)
		}
		held = append(held, run)
		r.Answer(contract.HoldDNSLeaseRenewalsAnswer{Held: int64(len(run.Renewals))}.AppendJSON(nil))
	}))
	return h, &held
}

func (h *hop) all() []*typedsocket.Socket {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*typedsocket.Socket(nil), h.sockets...)
}

// last returns the newest socket of a node.
func (h *hop) last() *typedsocket.Socket {
	all := h.all()
	return all[len(all)-1]
}

// answer lets the test answer a node's method.
func (h *hop) answer(method string, serve func(*typedsocket.Request)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers[method] = serve
}

func (h *hop) fromNode(r *typedsocket.Request) {
	h.mu.Lock()
	serve := h.answers[r.Method()]
	h.mu.Unlock()
	if serve != nil {
		serve(r)
		return
	}
	node := r.Socket()
	f := typedsocket.Forward{Method: r.Method()}
	if r.Method() == contract.MethodRegisterPalletRuntimeSession {
		id := string(r.Facts().NodeID)
		f.Judge = func(a *typedsocket.ForwardedAnswer) error {
			if a.Accepted {
				h.mu.Lock()
				h.nodes[id] = node
				h.mu.Unlock()
			}
			return nil
		}
	}
	if err := r.Forward(h.up.socket, f); err != nil {
		r.Refuse("relay-not-ready: no cloudly", nil)
	}
}

func (h *hop) fromCloudly(r *typedsocket.Request) {
	h.mu.Lock()
	node := h.nodes[string(r.Facts().SessionNodeID)]
	h.mu.Unlock()
	if node == nil || r.Forward(node, typedsocket.Forward{Method: r.Method()}) != nil {
		r.Refuse("relay-node-not-carried", nil)
	}
}

// pallet returns a started Pallet below the hop, for a node of the stage or,
// without one, for node-a.
func (h *hop) pallet(s *stage, id string, change func(*PalletConfig)) *Pallet {
	h.t.Helper()
	cfg := PalletConfig{URL: "ws://relay/", Dial: h.network.Dial, NodeID: id, Credential: NodeCredential{1, "palletToken_test"}, Wall: (&clock{}).now}
	if s != nil {
		cfg.Credential, cfg.Authority, cfg.Wall = s.credential(id), s.Authority(), s.clock.now
	}
	if change != nil {
		change(&cfg)
	}
	p, err := NewPallet(cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(p.Close)
	if err := p.Start(); err != nil {
		h.t.Fatal(err)
	}
	return p
}

// registered waits for the node's session and returns its socket.
func registered(t *testing.T, p *Pallet, newerThan int) int {
	t.Helper()
	number, err := p.WaitRegistered(soon(t), newerThan)
	if err != nil {
		t.Fatal(err)
	}
	return number
}
