package appliance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// reported is the method of the numbered reports.
const reported = "reportRuntimeNetworkProtection"

// ledger is the account of numbered reports: which of them Cloudly took, and
// which of them a node was answered.
type ledger struct {
	mu    sync.Mutex
	pad   map[string]string // by node: what makes its reports longer
	sent  map[string]int    // by node: the last number
	taken map[numbered]int
	acked map[numbered]bool
	told  map[string]int // by what a node was told instead
}

// numbered is a report, and its answer.
type numbered struct {
	Node string `json:"node"`
	N    int    `json:"n"`
}

func newLedger() *ledger {
	return &ledger{
		pad: map[string]string{}, sent: map[string]int{},
		taken: map[numbered]int{}, acked: map[numbered]bool{}, told: map[string]int{},
	}
}

// take is Cloudly's answer to a report.
func (l *ledger) take(node string, request []byte) ([]byte, error) {
	var body numbered
	if err := json.Unmarshal(request, &body); err != nil || body.Node != node {
		return nil, fmt.Errorf("a report of %s came as %s's: %v", body.Node, node, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken[body]++
	return json.Marshal(body)
}

// report sends the next report of a node and returns what came of it. An answer
// to anything but this report fails the test.
func (l *ledger) report(t *testing.T, p *simulate.Pallet, id string) error {
	l.mu.Lock()
	l.sent[id]++
	own, pad := numbered{id, l.sent[id]}, l.pad[id]
	l.mu.Unlock()
	body, err := json.Marshal(struct {
		numbered
		Pad string `json:"pad,omitempty"`
	}{own, pad})
	if err != nil {
		t.Error(err)
		return err
	}
	// Longer than the relay gives a forwarded call: it always has the last word.
	ctx, cancel := context.WithTimeout(context.Background(), contract.ForwardTimeout+10*time.Second)
	defer cancel()
	answer, err := p.Send(ctx, reported, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.told[toldOf(err)]++
		return err
	}
	var got numbered
	if err := json.Unmarshal(answer, &got); err != nil || got != own {
		t.Errorf("report %+v was answered as %+v: %v", own, got, err)
	}
	l.acked[own] = true
	return nil
}

// What a node may be told in place of an answer, beside the names of refusals.
const (
	overloaded = string(contract.RelayOverloaded)
	tooLate    = "unnamed: Internal server error" // no answer within the time that a forwarded call has
	notAsked   = "not registered"                 // it did not ask
	socketOver = "socket ended"
)

// toldOf names what a node was told in place of an answer.
func toldOf(err error) string {
	if name, ok := simulate.Named(err, contract.TransportRefusals()); ok {
		return string(name)
	}
	var remote *typedsocket.RemoteError
	switch {
	case err == nil:
		return "answered"
	case errors.As(err, &remote):
		return "unnamed: " + remote.Text
	case errors.Is(err, simulate.ErrNotRegistered):
		return notAsked
	case errors.Is(err, typedsocket.ErrClosed):
		return socketOver
	}
	return err.Error()
}

// wantBooks checks that what was acknowledged was taken, that nothing was taken
// twice, and that nobody was left without an answer. It returns how much was
// acknowledged and taken.
func (l *ledger) wantBooks(t *testing.T) (acked, taken int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range l.acked {
		if l.taken[n] == 0 {
			t.Errorf("%+v was acknowledged, and Cloudly has not taken it", n)
		}
	}
	for n, times := range l.taken {
		if times != 1 {
			t.Errorf("Cloudly took %+v %d times", n, times)
		}
	}
	for told, times := range l.told {
		switch told {
		case string(contract.RelayNotReady), string(contract.RelayNodeSessionNotCurrent), notAsked, socketOver, tooLate:
		default:
			t.Errorf("%d reports met %q", times, told)
		}
	}
	return len(l.acked), len(l.taken)
}

// close forgets the books, so that they weigh nothing.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken, l.acked = map[numbered]int{}, map[numbered]bool{}
}

// lengthen makes the reports of a node so many bytes longer.
func (l *ledger) lengthen(id string, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pad[id] = strings.Repeat("x", bytes)
}
