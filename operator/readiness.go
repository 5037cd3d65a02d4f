package operator

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"serve.zone/relay/duty"
)

// readiness asks every duty for its checks and judges them. A duty that does not
// answer has one required check instead, that fails; one whose section could not
// be had when it was last asked for has a further one, as advice. Each has an age.
func (o *Operator) readiness(now time.Time) duty.Readiness {
	replies := ask(o, askedChecks, o.duties, func(d duty.Duty) ([]duty.Check, fault) { return d.Checks(now), answered })
	reports := make([]duty.Report, len(o.duties))
	for i, s := range o.duties {
		var checks []duty.Check
		if how := replies[i].fault; how == answered {
			checks = o.ages[i].fill(replies[i].value, now)
		} else {
			checks = []duty.Check{faultCheck(askedChecks, verdict{how, s.verdict(askedChecks).since})}
		}
		if v := s.verdict(askedStatus); v.fault != answered {
			check := faultCheck(askedStatus, v)
			check.Advice = true
			checks = append(checks[:len(checks):len(checks)], check)
		}
		reports[i] = duty.Report{Duty: s.name, Checks: checks}
	}
	return duty.Judge(now, reports)
}

// faultCheck is the check of a duty that did not answer a question.
func faultCheck(q question, v verdict) duty.Check {
	check := duty.Check{Name: v.fault.String(), State: duty.Failing, Reason: q.String(), Since: v.since}
	switch v.fault {
	case panicked:
		check.Hint = "The duty panicked when it was asked, which is a mistake in the relay; report it with the line panic-recovered of the log."
	case unresponsive:
		check.Hint = "The duty does not answer, which is a mistake in the relay; keep the goroutine profile and restart the relay."
	case unusable:
		check.Hint = "The duty's answer cannot be shown, which is a mistake in the relay; report it."
	}
	return check
}

// readyRequest is what /readyz is asked for.
type readyRequest struct{ verbose, json bool }

func readReady(r *http.Request) (readyRequest, error) {
	q, err := readQuery(r)
	if err != nil {
		return readyRequest{}, err
	}
	verbose, err := q.flag("verbose")
	if err != nil {
		return readyRequest{}, err
	}
	wanted := readyRequest{verbose: verbose, json: acceptsJSON(r.Header.Values("Accept"))}
	switch format := q.values["format"]; {
	case len(format) == 0:
	case len(format) == 1 && format[0] == "json":
		wanted.json = true
	case len(format) == 1 && format[0] == "text":
		wanted.json = false
	default:
		return readyRequest{}, fmt.Errorf("format must be given once, as text or json")
	}
	return wanted, nil
}

// acceptsJSON reports whether JSON is named among what a client takes. Wildcards
// are no wish.
func acceptsJSON(accept []string) bool {
	for _, line := range accept {
		for part := range strings.SplitSeq(line, ",") {
			kind, parameters, err := mime.ParseMediaType(part)
			if err != nil || kind != jsonType {
				continue
			}
			q, given := parameters["q"]
			if weight, err := strconv.ParseFloat(q, 64); !given || err == nil && weight > 0 {
				return true
			}
		}
	}
	return false
}

func (o *Operator) serveReady(w http.ResponseWriter, r *http.Request) outcome {
	wanted, err := readReady(r)
	if err != nil {
		return misuse(w, err)
	}
	readiness := o.readiness(o.cfg.Wall().UTC())
	status, became := http.StatusOK, served
	if !readiness.Ready {
		status, became = http.StatusServiceUnavailable, notReady
	}
	if !wanted.verbose {
		readiness.Findings = append([]duty.Finding{}, readiness.Against()...)
	}
	if wanted.json {
		sendJSON(w, status, readiness)
		return became
	}
	send(w, status, textType, readinessText(readiness, wanted.verbose))
	return became
}

// readinessText is "ok" or "not ready", and a line for each finding.
func readinessText(r duty.Readiness, verbose bool) []byte {
	b := []byte("ok\n")
	if !r.Ready {
		b = []byte("not ready\n")
	}
	for _, f := range r.Findings {
		if verbose {
			b = fmt.Appendf(b, "%s ", f.State)
		}
		b = fmt.Appendf(b, "%s %s", f.Duty, f.Check)
		for _, text := range [...]string{f.Reason, f.Hint} {
			if text != "" {
				b = append(append(b, ": "...), text...)
			}
		}
		if verbose {
			b = appendDetails(b, f)
		}
		b = append(b, '\n')
	}
	return b
}

// appendDetails appends, in brackets, what only ?verbose shows.
func appendDetails(b []byte, f duty.Finding) []byte {
	kind := "required"
	if f.Advice {
		kind = "advice"
	}
	b = fmt.Appendf(b, " [%s", kind)
	if !f.Since.IsZero() {
		age := time.Duration(f.AgeSeconds * float64(time.Second)).Round(time.Second)
		b = fmt.Appendf(b, ", for %s since %s", age, f.Since.UTC().Format(time.RFC3339))
	}
	for i, fact := range f.Facts {
		lead := " "
		if i == 0 {
			lead = ", "
		}
		b = fmt.Appendf(b, "%s%s=%s", lead, fact.Key(), fact)
	}
	return append(b, ']')
}
