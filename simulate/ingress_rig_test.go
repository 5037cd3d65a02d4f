package simulate

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

const (
	registerIngress = contract.MethodRegisterIngress
	pullTable       = contract.MethodGetIngressRouteTable
	hintTable       = contract.MethodPushIngressRouteTableChanged
	askTraffic      = contract.MethodGetTrafficStatistics
)

// relayOffer is what a relay in these tests states, which is not what Cloudly does.
func relayOffer() contract.Offer {
	return contract.Offer{InterfacesVersion: "32.44.1", MinimumPeerVersion: "32.0.0"}
}

func acceptedBy(offer contract.Offer, revision string) string {
	return `{"accepted":true,"revision":` + revision + `,"protocol":` + string(offer.AppendJSON(nil)) + `}`
}

// carrying is the least relay between ingresses and Cloudly: it holds one table,
// forwards registrations, and asks one ingress after the other for its counters.
type carrying struct {
	*hop
	mu        sync.Mutex
	table     *contract.RouteTable
	ingresses map[string]*typedsocket.Socket // by node
	hints     sync.WaitGroup
}

// carry puts the stand-in below a Cloudly and registers it there.
func carry(t *testing.T, s *stage) *carrying {
	c := &carrying{hop: newHop(t), ingresses: map[string]*typedsocket.Socket{}}
	c.up = s.relay(typedsocket.HandlerFunc(c.fromCloudly))
	c.answer(registerIngress, c.register)
	c.answer(pullTable, c.pulled)
	t.Cleanup(c.hints.Wait)
	return c
}

func (c *carrying) register(r *typedsocket.Request) {
	body, node, socket := append([]byte(nil), r.Body()...), string(r.Facts().NodeID), r.Socket()
	c.hints.Go(func() {
		answer, err := c.up.ask(registerIngress, body)
		if remote, ok := err.(*typedsocket.RemoteError); ok {
			r.Refuse(remote.Text, remote.Data)
			return
		}
		if err != nil {
			r.Refuse("relay-not-ready", nil)
			return
		}
		accepted, err := contract.ReadIngressAccepted([]byte(answer))
		if err != nil {
			c.t.Error(err)
		}
		c.mu.Lock()
		c.ingresses[node] = socket
		c.mu.Unlock()
		r.Answer(contract.IngressAccepted{Revision: accepted.Revision, Protocol: relayOffer()}.AppendJSON(nil))
	})
}

func (c *carrying) pulled(r *typedsocket.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Answer(contract.RouteTableAnswer{Table: c.table}.AppendJSON(nil))
}

func (c *carrying) fromCloudly(r *typedsocket.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.Method() {
	case contract.MethodPushRouteTable:
		push, err := contract.ReadPushRouteTableRequest(r.Body())
		if err != nil {
			c.t.Error(err)
		}
		c.table = &push.Table
		r.Answer(contract.PushRouteTableAnswer{AppliedRevision: push.Table.Revision}.AppendJSON(nil))
		for _, socket := range c.ingresses {
			c.hints.Go(func() { c.hint(socket, push.Table.Revision) })
		}
	case askTraffic:
		c.ask(r)
	default:
		r.RefuseMethod()
	}
}

func (c *carrying) hint(socket *typedsocket.Socket, revision int64) {
	answer, err := socket.Call(c.t.Context(), hintTable, contract.RouteTableChanged{Revision: revision}.AppendJSON(nil), typedsocket.CallOptions{})
	if err == nil {
		answer.Release()
	}
}

// ask asks the one ingress there is and wraps its cursor.
func (c *carrying) ask(r *typedsocket.Request) {
	request, err := contract.ReadTrafficRequest(r.Body())
	if err != nil {
		r.Refuse("request-invalid", nil)
		return
	}
	if request.Cursor != nil {
		cursor, _ := contract.ParseTrafficCursor(*request.Cursor)
		request.Cursor = &cursor.Inner
	}
	for node, socket := range c.ingresses {
		c.hints.Go(func() {
			answer, err := socket.Call(c.t.Context(), askTraffic, request.AppendJSON(nil), typedsocket.CallOptions{})
			if err != nil {
				r.Refuse("ingress-unanswered", nil)
				return
			}
			page, err := contract.ReadTrafficPage(answer.Response())
			if err != nil {
				c.t.Error(err)
			}
			answer.Release()
			if page.NextCursor != nil {
				text := contract.TrafficCursor{NodeID: node, Inner: *page.NextCursor}.Text()
				page.NextCursor = &text
			}
			r.Answer(page.AppendJSON(nil))
		})
		return
	}
	r.Refuse("cluster-ingress-not-registered", nil)
}

// ingress returns a started ingress below a hop, on node-a.
func (h *hop) ingress(change func(*IngressConfig)) *Ingress {
	h.t.Helper()
	cfg := IngressConfig{URL: "ws://relay/", Dial: h.network.Dial, NodeID: "node-a", Bearer: "ingress-bearer",
		Wall: (&clock{}).now, RelayOffer: relayOffer(), Random: func() float64 { return 0.999999 }}
	if change != nil {
		change(&cfg)
	}
	i, err := NewIngress(cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(i.Close)
	if err := i.Start(); err != nil {
		h.t.Fatal(err)
	}
	return i
}

// ingressAlone is a registered ingress behind a hop without a Cloudly, whose pulls
// are answered with what says holds, and the hop's end of its socket.
func ingressAlone(t *testing.T, says answers, change func(*IngressConfig)) (*Ingress, *hop, *client) {
	t.Helper()
	h := newHop(t)
	h.answer(registerIngress, func(r *typedsocket.Request) { r.Answer([]byte(acceptedBy(relayOffer(), "null"))) })
	if says[pullTable] == "" {
		says[pullTable] = `{"table":null}`
	}
	h.answer(pullTable, says.ServeRequest)
	i := h.ingress(change)
	if _, err := i.WaitRegistered(soon(t), 0); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return i, h, &client{t: t, socket: h.last()}
}

// authority is one for the certificates of a test, in fake time as in real.
func authority(t *testing.T) *TLSAuthority {
	t.Helper()
	a, err := NewTLSAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// route returns a route of a hostname to some destinations.
func (a *TLSAuthority) route(t *testing.T, hostname string, to ...contract.Destination) IngressRoute {
	t.Helper()
	certificate, err := a.Issue(hostname)
	if err != nil {
		t.Fatal(err)
	}
	return IngressRoute{Hostname: hostname, Destinations: to, Certificate: certificate}
}

func tableOf(t *testing.T, revision int64, routes ...IngressRoute) contract.RouteTable {
	t.Helper()
	table, err := contract.NewRouteTable(revision, 1, raws(routes), nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func tableAnswer(table contract.RouteTable) string {
	return string(contract.RouteTableAnswer{Table: &table}.AppendJSON(nil))
}

// replace replaces one text, which must be there.
func replace(t *testing.T, s, old, new string) string {
	t.Helper()
	if !strings.Contains(s, old) {
		t.Fatalf("%q is not in the text", old)
	}
	return strings.Replace(s, old, new, 1)
}
