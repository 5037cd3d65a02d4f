package main

import (
	"cmp"
	"fmt"

	"serve.zone/relay/operator/client"
)

// requests is how many wait for an answer.
func requests(f client.InFlight) uint64 { return f.NodeRequests + f.CloudlyRequests }

// nodes shows the nodes' sessions, and who fills the socket to Cloudly.
func (l look) nodes(s *sheet) {
	const heading = "Nodes"
	f := l.Duties.Forward
	if f == nil {
		l.missing(s, heading, "forward")
		return
	}
	unconfirmed := 0
	for _, n := range f.Nodes {
		if !n.Confirmed {
			unconfirmed++
		}
	}
	st, text := normal, fmt.Sprintf("%d registered", len(f.Nodes)-unconfirmed)
	if unconfirmed > 0 {
		st, text = doubtful, text+fmt.Sprintf(", %d unconfirmed (to register again)", unconfirmed)
	}
	if !f.Attached {
		st, text = bad, text+"; without a session to Cloudly nothing passes"
	}
	s.say(label(heading), st, "%s", text)
	l.inFlight(s, f)
	l.sockets(s)

	l.carried(s, f.Nodes)
}

// carried shows the nodes in a table.
func (l look) carried(s *sheet, nodes []client.CarriedNode) {
	before := map[string]client.CarriedNode{}
	if l.before != nil && l.before.Duties.Forward != nil {
		for _, n := range l.before.Duties.Forward.Nodes {
			before[n.ID] = n
		}
	}
	held := map[string]client.EscrowNode{}
	if e := l.Duties.Escrow; e != nil {
		for _, n := range e.Nodes {
			held[n.ID] = n
		}
	}
	busy := func(n client.CarriedNode) float64 {
		was, known := before[n.ID]
		return l.busy(was.ToCloudly.Bytes, known, n.ToCloudly.Bytes) + l.busy(was.FromCloudly.Bytes, known, n.FromCloudly.Bytes)
	}
	chosen := pick(len(nodes), maximumRows, func(i, j int) int {
		a, b := nodes[i], nodes[j]
		return cmp.Or(first(!a.Confirmed, !b.Confirmed), cmp.Compare(b.InFlight.Bytes, a.InFlight.Bytes), cmp.Compare(busy(b), busy(a)))
	})
	var rows [][]piece
	for _, i := range chosen {
		n := nodes[i]
		was, known := before[n.ID]
		lasts := piece{text: nothingKnown}
		if e, known := held[n.ID]; known {
			lasts = l.coverage(e)
		}
		rows = append(rows, []piece{
			{text: squeeze(n.ID, nameWidth)}, l.session(n), lasts, {text: waiting(n.InFlight)},
			{text: l.amount(was.ToCloudly.Bytes, known, n.ToCloudly.Bytes)},
			{text: l.amount(was.FromCloudly.Bytes, known, n.FromCloudly.Bytes)}, {text: refusals(n)},
		})
	}
	s.table([]string{
		"NODE", "SESSION", " NAMES LAST", " WAITING", l.perSecond(" TO CLOUDLY"), l.perSecond(" FROM CLOUDLY"), "REFUSED",
	}, rows)
	s.more(len(nodes) - len(chosen))
}

// session says how long a node has had one.
func (l look) session(n client.CarriedNode) piece {
	if !n.Confirmed {
		return piece{doubtful, l.since(n.Since) + ", unconfirmed"}
	}
	return piece{text: l.since(n.Since)}
}

// waiting says how many requests of a node wait for an answer, and their size.
func waiting(f client.InFlight) string {
	if requests(f) == 0 {
		return nothingKnown
	}
	return countText(requests(f)) + ", " + sizeText(f.Bytes)
}

// refusals says how often a node was refused something, and what it was told last.
func refusals(n client.CarriedNode) string {
	if n.Refused == 0 {
		return nothingKnown
	}
	return countText(n.Refused) + " " + n.LastRefusal
}

// inFlight says what waits for an answer, and whose it is for the most part.
func (l look) inFlight(s *sheet, f *client.ForwardSection) {
	if requests(f.InFlight) == 0 {
		s.under(faint, "no request waits for an answer")
		return
	}
	text := fmt.Sprintf("%s for an answer, %s of %s", waits(requests(f.InFlight), "request"), sizeText(f.InFlight.Bytes), sizeText(f.InFlightLimit))
	var most client.CarriedNode
	for _, n := range f.Nodes {
		if n.InFlight.Bytes > most.InFlight.Bytes {
			most = n
		}
	}
	if most.ID != "" {
		text += fmt.Sprintf("; %s has most: %s, %s", squeeze(most.ID, nameWidth), things(requests(most.InFlight), "request"), sizeText(most.InFlight.Bytes))
	}
	s.under(normal, "%s", text)
}

// waits says that things wait.
func waits(n uint64, thing string) string {
	if n == 1 {
		return things(n, thing) + " waits"
	}
	return things(n, thing) + " wait"
}

// sockets says how many there are, what waits to be sent on them, and which node dials
// from two places (B055).
func (l look) sockets(s *sheet) {
	n := l.Duties.Listener
	if n == nil {
		return
	}
	st := faint
	if n.Sockets.Open >= n.Sockets.Limit {
		st = doubtful
	}
	text := fmt.Sprintf("%d of %s on %s", n.Sockets.Open, things(n.Sockets.Limit, "socket"), or(n.Address, nothingKnown))
	if n.Unbound > 0 {
		text += fmt.Sprintf(", %d of them not registered", n.Unbound)
	}
	var queued uint64
	var most client.BoundSocket
	for _, b := range n.Bound {
		if queued += b.QueuedBytes; b.QueuedBytes > most.QueuedBytes {
			most = b
		}
	}
	if queued > 0 {
		text += fmt.Sprintf("; %s wait to be sent, %s of it to %s", sizeText(queued), sizeText(most.QueuedBytes), squeeze(most.Node, nameWidth))
	}
	s.under(st, "%s", text)

	type end struct{ role, node string }
	seen, told := map[end]client.BoundSocket{}, 0
	for _, b := range n.Bound {
		other, twice := seen[end{b.Role, b.Node}]
		if seen[end{b.Role, b.Node}] = b; !twice {
			continue
		}
		if told++; told > maximumNames {
			continue
		}
		s.under(doubtful, "%s has two sockets: %s for %s, %s for %s", squeeze(b.Node, nameWidth),
			or(other.Address, nothingKnown), l.since(other.Since), or(b.Address, nothingKnown), l.since(b.Since))
	}
	if told > maximumNames {
		s.under(doubtful, "and %d more have; --json shows all", told-maximumNames)
	}
}

// coverage says how long names of a node last when Cloudly is away.
func (l look) coverage(n client.EscrowNode) piece {
	switch {
	case n.ExpiresAt.IsZero():
		return piece{doubtful, "no run"}
	case n.Held == 0:
		return piece{bad, "ended"}
	}
	return piece{text: l.until(n.ExpiresAt)}
}

// escrow shows the renewals that are held, and which nodes they do not help.
func (l look) escrow(s *sheet) {
	const heading = "Escrow"
	e := l.Duties.Escrow
	if e == nil {
		l.missing(s, heading, "escrow")
		return
	}
	text := fmt.Sprintf("%s held for %s, %s of %s", things(e.Renewals, "renewal"), things(e.Runs, "node"), sizeText(e.HeldBytes), sizeText(e.HeldLimit))
	switch {
	case e.ClockSuspect:
		s.say(label(heading), bad, "%s; nothing is released: the clock was set back", text)
	case !e.Attached && e.Renewals == 0 && e.PushesRunning == 0:
		s.say(label(heading), doubtful, "%s; Cloudly is away, and there is nothing to release", text)
	case !e.Attached:
		s.say(label(heading), doubtful, "%s; Cloudly is away, so they are released: %s under way", text, things(e.PushesRunning, "push"))
	default:
		s.say(label(heading), normal, "%s", text)
	}
	l.covered(s, e)
}

// covered says which nodes the escrow does not help, and until when it helps the others.
func (l look) covered(s *sheet, e *client.EscrowSection) {
	var bare, ended, gone []string
	var least client.EscrowNode
	helped := 0
	for _, n := range e.Nodes {
		switch {
		case !n.Reachable:
			gone = append(gone, n.ID)
		case n.ExpiresAt.IsZero():
			bare = append(bare, n.ID)
		case n.Held == 0:
			ended = append(ended, n.ID)
		default:
			if helped++; helped == 1 || n.ExpiresAt.Before(least.ExpiresAt) {
				least = n
			}
		}
	}
	if helped > 0 {
		s.under(normal, "names of %s last without Cloudly for %s at least, until %s", things(helped, "node"), l.until(least.ExpiresAt), timeText(least.ExpiresAt))
	}
	for _, group := range []struct {
		style style
		nodes []string
		why   string
	}{{bad, ended, "the last window has ended"}, {doubtful, bare, "nothing is held"}, {doubtful, gone, "there is no session to release it to"}} {
		if len(group.nodes) > 0 {
			s.under(group.style, "%s for %s", group.why, named(group.nodes))
		}
	}
}
