package cloudly

import (
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// The checks of the session.
const (
	checkSession = iota
	checkRefusal
	checkCredential
	checkConfiguration
	numChecks
)

// Names of the checks. They are API.
const (
	CheckSession       = "cloudly-session"       // required: a registered session stands
	CheckRefusal       = "cloudly-refusal"       // required: no custody or protocol refusal stands
	CheckCredential    = "cloudly-credential"    // advice: the credential file can be used
	CheckConfiguration = "cluster-configuration" // advice: the cluster configuration could be read
)

// Checks returns what readiness depends on. It never blocks.
func (s *Session) Checks(time.Time) []duty.Check {
	v := s.peek()
	checks := v.checks[:]
	checks[checkSession].Facts = s.attemptFacts(v)
	return checks
}

// attemptFacts are the figures of a session that does not stand: the attempt that was
// made last or is under way, and how long it is to the next while that is waited for.
func (s *Session) attemptFacts(v shown) field.List {
	if v.phase.stands() || v.attempts == 0 {
		return nil
	}
	facts := field.List{field.Attempt(v.attempts)}
	if v.wakeAt != 0 {
		facts = append(facts, field.Next(s.untilNext(v)))
	}
	return facts
}

// judge judges all checks but the configuration's, which showConfiguration does.
func (v *shown) judge(now time.Time) {
	v.put(checkSession, v.judgeSession(), now)
	v.put(checkRefusal, v.judgeRefusal(), now)
	v.put(checkCredential, v.judgeCredential(), now)
	if v.checks[checkConfiguration].Name == "" {
		v.put(checkConfiguration, duty.Check{Name: CheckConfiguration, Advice: true, Reason: "not-read",
			Hint: "The configuration is pulled after the registration."}, now)
	}
}

// put sets a check; Since stays while nothing changes.
func (v *shown) put(i int, c duty.Check, now time.Time) {
	c.Since = now
	v.checks[i] = c.After(v.checks[i])
}

func (v *shown) judgeSession() duty.Check {
	c := duty.Check{Name: CheckSession}
	switch {
	case v.phase.stands():
		c.State = duty.OK
	case v.phase == stopped:
		c.State, c.Reason, c.Hint = duty.Failing, "stopped", "The relay is ending."
	case v.troubled:
		c.State, c.Reason, c.Hint = duty.Failing, v.trouble.String(), advice[v.trouble].Hint
	default:
		c.Reason, c.Hint = "connecting", "The first attempt is under way."
	}
	return c
}

func (v *shown) judgeRefusal() duty.Check {
	c := duty.Check{Name: CheckRefusal, State: duty.OK}
	if v.refusal == nil || !v.refusal.Standing {
		return c
	}
	c.State, c.Reason = duty.Failing, v.refusal.Name
	c.Hint = "Cloudly does not dispatch to this relay; the reason names what has to be put right there."
	if v.refusal.Name == refusalProtocol {
		c.Reason = v.refusal.Reason
		c.Hint = "The releases of the relay and of Cloudly do not go together; upgrade one of them."
	}
	return c
}

func (v *shown) judgeCredential() duty.Check {
	c := duty.Check{Name: CheckCredential, Advice: true}
	switch {
	case !v.looked:
		c.Reason, c.Hint = "not-read", "The credential file has not been read yet."
	case v.fault != "":
		c.State, c.Reason = duty.Failing, v.fault
		c.Hint = "The file must hold exactly the exported bearer, without a line end, and have mode 0600."
	default:
		c.State = duty.OK
	}
	return c
}

// showConfiguration sets the check of the cluster configuration; fault is empty
// when all of it was valid.
func (s *Session) showConfiguration(fault string) {
	c := duty.Check{Name: CheckConfiguration, Advice: true, State: duty.OK}
	if fault != "" {
		c.State, c.Reason = duty.Failing, fault
		c.Hint = "Cloudly's cluster document is not as the contract states; what is not valid has changed nothing."
	}
	now := s.cfg.Wall()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown.put(checkConfiguration, c, now)
}
