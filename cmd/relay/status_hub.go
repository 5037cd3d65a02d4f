package main

import (
	"cmp"
	"fmt"

	"serve.zone/relay/operator/client"
)

// ingress shows the route table and who has it.
func (l look) ingress(s *sheet) {
	const heading = "Ingress"
	i := l.Duties.Ingress
	if i == nil {
		l.missing(s, heading, "ingress")
		return
	}
	var revision int64
	if t := i.Table; t != nil {
		revision = t.Revision
		s.say(label(heading), normal, "route table %d, %s %s ago: %s, %s, %s", t.Revision, t.Origin, l.since(t.AppliedAt),
			things(t.Routes, "route"), things(t.PortRoutes, "port route"), sizeText(t.Bytes))
	} else {
		s.say(label(heading), faint, "no route table")
	}
	if len(i.Ingresses) == 0 {
		s.under(faint, "no ingress is registered")
	}
	for n, x := range i.Ingresses {
		if n == maximumNames {
			s.under(faint, "and %d more; --json shows all", len(i.Ingresses)-n)
			break
		}
		st, has := normal, fmt.Sprintf("has pulled table %d", x.Pulled)
		switch {
		case x.Pulled == 0:
			st, has = doubtful, "has pulled no table"
		case x.Pulled != revision:
			st = doubtful
		}
		s.under(st, "%s registered for %s, %s", squeeze(x.Node, nameWidth), l.since(x.Since), has)
	}
	if r := i.LastRefusal; r != nil {
		s.under(faint, "Cloudly refused one on %s %s ago: %s", squeeze(r.Node, nameWidth), l.since(r.At), r.Reason)
	}
}

// hub shows the VPN hub and its members.
func (l look) hub(s *sheet) {
	const heading = "Hub"
	h := l.Duties.Hub
	if h == nil {
		if !l.missing(s, heading, "hub") {
			s.say(label(heading), faint, "none")
		}
		return
	}
	at := "is not bound"
	if h.Bound != "" {
		at = "on " + h.Bound
	}
	switch n := h.Network; {
	case n == nil:
		s.say(label(heading), faint, "%s, without a network", at)
	default:
		st := normal
		if n.State != networkInForce {
			st = doubtful
		}
		s.say(label(heading), st, "%s, network %d %s, %s %s ago: %s, %s", at, n.Revision, networkState(n.State), n.Origin, l.since(n.AppliedAt),
			things(n.Prefixes, "prefix"), things(n.Grants, "grant"))
	}
	if h.Network != nil && h.Network.State == networkFailed {
		s.under(bad, "a later network could not be taken over")
	}
	if h.Suspended {
		s.under(bad, "nothing is carried: custody may be about to end")
	}
	if h.Socket != nil && h.Socket.DroppedPackets > 0 {
		s.under(doubtful, "the kernel dropped %s for want of room", things(h.Socket.DroppedPackets, "packet"))
	}
	l.members(s, h)
}

// States of the network that packets are judged by (contract §10.4): nothing is left to do,
// or that holds as well and a later network could not be taken over.
const (
	networkInForce = "idle"
	networkFailed  = "failed"
)

// networkState says in a person's words how a network stands: the wire's word for one in
// force sounds as if nothing passed.
func networkState(state string) string {
	switch state {
	case networkInForce, networkFailed:
		return "is in force"
	case "applying":
		return "is being applied"
	}
	return "is " + or(state, nothingKnown)
}

// members shows how many there are and what they carry, and then each in a table.
func (l look) members(s *sheet, h *client.HubSection) {
	before := map[string]client.HubMember{}
	if l.before != nil && l.before.Duties.Hub != nil {
		for _, m := range l.before.Duties.Hub.Members {
			before[m.Node] = m
		}
	}
	traffic := func(m client.HubMember) (from, to float64) {
		was, known := before[m.Node]
		return l.busy(was.FromBytes, known, m.FromBytes), l.busy(was.ToBytes, known, m.ToBytes)
	}
	connected, from, to := 0, 0.0, 0.0
	for _, m := range h.Members {
		if m.Session != nil {
			connected++
		}
		a, b := traffic(m)
		from, to = from+a, to+b
	}
	handshakes := ""
	if h.HalfOpen > 0 {
		handshakes = ", " + things(h.HalfOpen, "handshake") + " under way"
	}
	carried := ""
	if _, known := l.rate(0, 0); known || !l.rates {
		carried = fmt.Sprintf("; %s from them, %s to them", l.perSecond(sizeText(from)), l.perSecond(sizeText(to)))
	}
	s.under(normal, "%s, %d connected%s%s", things(len(h.Members), "member"), connected, handshakes, carried)

	chosen := pick(len(h.Members), maximumRows, func(i, j int) int {
		a, b := h.Members[i], h.Members[j]
		fromA, toA := traffic(a)
		fromB, toB := traffic(b)
		return cmp.Or(first(a.Expired || a.Alternating, b.Expired || b.Alternating), first(a.Session == nil, b.Session == nil),
			cmp.Compare(fromB+toB, fromA+toA))
	})
	var rows [][]piece
	for _, i := range chosen {
		m := h.Members[i]
		was, known := before[m.Node]
		session, address, path := connection(m)
		rows = append(rows, []piece{
			{text: squeeze(m.Node, nameWidth)}, session, {text: address},
			{text: l.amount(was.FromBytes, known, m.FromBytes)}, {text: l.amount(was.ToBytes, known, m.ToBytes)}, {text: path},
			l.drops(was, known, m),
		})
	}
	s.table([]string{"MEMBER", "SESSION", "ADDRESS", l.perSecond(" FROM IT"), l.perSecond(" TO IT"), " PATH", "DROPPED"}, rows)
	s.more(len(h.Members) - len(chosen))
}

// connection says how long a member has been connected, from where, and how large a
// datagram is that its path takes.
func connection(m client.HubMember) (session piece, address, path string) {
	session, address, path = piece{doubtful, "none"}, nothingKnown, nothingKnown
	if x := m.Session; x != nil {
		session, address = piece{text: ageText(secondsOf(x.Seconds))}, squeeze(or(x.Address, nothingKnown), addressWidth)
		if x.ToSize > 0 {
			path = fmt.Sprintf("%d B", x.ToSize)
		}
	}
	switch {
	case m.Expired:
		session = piece{bad, "expired"}
	case m.Alternating:
		session = piece{bad, session.text + ", two ends"}
	}
	return session, address, path
}

// drops says how many packets from a member and for it were dropped, how many more they
// are in a second, and the reason of most of them.
func (l look) drops(was client.HubMember, known bool, m client.HubMember) piece {
	all, most := dropped(m)
	if all == 0 {
		return piece{faint, nothingKnown}
	}
	text := countText(all)
	before, _ := dropped(was)
	if rate, ok := l.rate(before, all); ok && known && rate > 0 {
		text += fmt.Sprintf(", %.1f/s", rate)
	}
	return piece{doubtful, text + " " + most}
}

// dropped adds up a member's drops, and names the reason of the most.
func dropped(m client.HubMember) (all uint64, most string) {
	all, least := m.ToDropped, uint64(0)
	if m.ToDropped > 0 {
		least, most = m.ToDropped, "at its end"
	}
	for _, d := range m.Dropped {
		if all += d.Packets; d.Packets > least {
			least, most = d.Packets, d.Reason
		}
	}
	return all, most
}
