package main

import (
	"fmt"
	"strings"

	"serve.zone/relay/operator/client"
)

// head says which relay this is, and in a word how it is.
func (l look) head(s *sheet) {
	name, phase := "relay", ""
	if l.Build.Version != "" {
		name += " " + l.Build.Version
	}
	if r := l.Duties.Relay; r != nil {
		name += " on " + squeeze(or(r.NodeID, nothingKnown), nameWidth)
		phase = r.Phase + ", "
	}
	how := piece{good, "ready"}
	if !l.Readiness.Ready {
		how = piece{bad, "NOT READY"}
	}
	s.add(piece{strong, name}, piece{text: " is "}, how)
	if !l.Now.IsZero() {
		s.add(piece{faint, phase + "started " + l.since(l.Start) + " ago; its clock says " + timeText(l.Now)})
	}
	if l.Draining {
		s.add(piece{doubtful, "It is leaving."})
	}
	if l.Partial {
		s.add(piece{doubtful, "Its status is not quite of the form that this program knows; --json shows all of it."})
	}
}

// trouble says what is wrong and what to do: what keeps the relay from being ready, then
// what is worth a look, each with its hint, then what is awaited.
func (l look) trouble(s *sheet) {
	against := l.Readiness.Against()
	var advice []client.Finding
	var awaited []string
	for _, f := range l.Readiness.Findings {
		switch {
		case !f.Advice || f.State == "ok":
		case f.State == "failing":
			advice = append(advice, f)
		default:
			awaited = append(awaited, fmt.Sprintf("%s (%s)", checkName(f), f.Reason))
		}
	}
	sayFindings(s, against)
	sayFindings(s, advice)
	switch {
	case len(against)+len(advice) > 0:
	case l.Readiness.Ready:
		s.add(piece{good, "Nothing is wrong."})
	default:
		s.add(piece{bad, "It does not say why it is not ready."})
	}
	if len(awaited) > 0 {
		s.say(piece{faint, "awaited"}, faint, "%s", strings.Join(awaited, ", "))
	}
}

// sayFindings says what is wrong with each, and what can be done.
func sayFindings(s *sheet, findings []client.Finding) {
	for _, f := range findings {
		head := piece{doubtful, "advice"}
		switch {
		case f.Advice:
		case f.State == "pending":
			head.text = "pending"
		default:
			head = piece{bad, "WRONG"}
		}
		age := ""
		if !f.Since.IsZero() {
			age = " for " + ageText(secondsOf(f.AgeSeconds))
		}
		facts := factsText(f.Facts)
		if facts != "" {
			facts = " (" + facts + ")"
		}
		s.say(head, head.style, "%s %s%s: %s%s", checkName(f), f.State, age, or(f.Reason, nothingKnown), facts)
		if f.Hint != "" {
			s.under(normal, "%s", f.Hint)
		}
	}
}

// checkName names a check. Most of them bear their duty's name themselves.
func checkName(f client.Finding) string {
	if strings.HasPrefix(f.Check, f.Duty) {
		return f.Check
	}
	return f.Duty + " " + f.Check
}

// cloudly shows the session to Cloudly.
func (l look) cloudly(s *sheet) {
	const heading = "Cloudly"
	c := l.Duties.Cloudly
	if c == nil {
		l.missing(s, heading, "cloudly")
		return
	}
	if c.Registered {
		s.say(label(heading), normal, "%s for %s as %s", c.State, l.since(c.RegisteredChanged), or(c.Origin, nothingKnown))
	} else {
		next := ""
		if !c.NextAttemptAt.IsZero() {
			next = ", next attempt in " + l.until(c.NextAttemptAt)
		}
		s.say(label(heading), bad, "no session for %s; %s for %s%s", l.since(c.RegisteredChanged), c.State, l.since(c.Since), next)
		if c.LastTrouble != "" {
			s.under(bad, "%s; %s in a row came to nothing", c.LastTrouble, things(uint64(max(0, c.Failures)), "attempt"))
		}
	}
	where := ""
	if r := l.Duties.Relay; r != nil && r.CloudlyOrigin != "" {
		where = r.CloudlyOrigin + "; "
	}
	s.under(faint, "%s%s accepted, %s", where, things(c.AcceptedRegistrations, "registration"), things(c.Attempts, "attempt"))
	if r := c.LastRefusal; r != nil {
		st, how := faint, "not in force any more"
		if r.Standing {
			st, how = bad, "in force"
		}
		reason := ""
		if r.Reason != "" {
			reason = " (" + r.Reason + ")"
		}
		s.under(st, "refused %s ago: %s%s, %s", l.since(r.At), r.Name, reason, how)
	}
	if c.CredentialFault != "" {
		s.under(doubtful, "the credential file cannot be used: %s", c.CredentialFault)
	}
}

// certificate shows how long the origin's certificate lasts.
func (l look) certificate(s *sheet) {
	const heading = "Certificate"
	c := l.Duties.TLS
	if c == nil {
		l.missing(s, heading, "tls")
		return
	}
	names := or(named(c.Names), nothingKnown)
	switch c.State {
	case "pending":
		s.say(label(heading), bad, "none yet")
	case "expired":
		s.say(label(heading), bad, "that of %s expired %s ago, at %s", names, l.since(c.NotAfter), timeText(c.NotAfter))
	case "not-yet-valid":
		s.say(label(heading), bad, "that of %s is not valid before %s", names, timeText(c.NotBefore))
	default:
		s.say(label(heading), normal, "that of %s is %s for another %s, until %s", names, c.State, l.until(c.NotAfter), timeText(c.NotAfter))
	}
	if c.Refused != "" {
		s.under(doubtful, "what stands in the files now is refused for %s: %s", l.since(c.RefusedSince), c.Refused)
	}
}
