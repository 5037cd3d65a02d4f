package duty

import (
	"time"

	"serve.zone/relay/duty/field"
)

// Report is what one duty's checks said.
type Report struct {
	Duty   string
	Checks []Check
}

// Finding is one check of one duty as it is shown.
type Finding struct {
	Duty       string     `json:"duty"`
	Check      string     `json:"check"`
	Advice     bool       `json:"advice"`
	State      State      `json:"state"`
	Reason     string     `json:"reason,omitempty"` // empty while State is OK
	Hint       string     `json:"hint,omitempty"`   // empty while State is OK
	Facts      field.List `json:"facts,omitempty"`
	Since      time.Time  `json:"since,omitzero"`
	AgeSeconds float64    `json:"ageSeconds"` // how long State has stood; 0 if nobody knows
}

// Readiness is the judgement over all checks.
type Readiness struct {
	Ready    bool      `json:"ready"`
	Findings []Finding `json:"findings"` // in the order of the reports
}

// Ask asks every duty for its checks and judges them.
func Ask(now time.Time, duties ...Duty) Readiness {
	reports := make([]Report, 0, len(duties))
	for _, d := range duties {
		reports = append(reports, Report{Duty: d.Name(), Checks: d.Checks(now)})
	}
	return Judge(now, reports)
}

// unstated is the reason of a check that is not OK and gave none.
const unstated = "unstated"

// Judge folds the checks into one answer. The relay is ready when every
// required check is OK and there is at least one: a relay that has nothing to
// show for itself is not ready. Advice never counts. Names and reasons that
// are not names are replaced by field.Withheld.
func Judge(now time.Time, reports []Report) Readiness {
	r := Readiness{Findings: []Finding{}}
	required, ok := 0, 0
	for _, report := range reports {
		for _, c := range report.Checks {
			r.Findings = append(r.Findings, finding(now, report.Duty, c))
			if c.Advice {
				continue
			}
			required++
			if c.State == OK {
				ok++
			}
		}
	}
	r.Ready = required > 0 && ok == required
	return r
}

// Against returns the findings that keep the relay from being ready.
func (r Readiness) Against() []Finding {
	var against []Finding
	for _, f := range r.Findings {
		if !f.Advice && f.State != OK {
			against = append(against, f)
		}
	}
	return against
}

func finding(now time.Time, duty string, c Check) Finding {
	f := Finding{
		Duty: field.Duty(duty).String(), Check: field.Check(c.Name).String(),
		Advice: c.Advice, State: c.State, Facts: field.Join(c.Facts), Since: c.Since,
	}
	if !c.Since.IsZero() {
		// A clock that was set back must not show an age below zero.
		f.AgeSeconds = max(0, now.Sub(c.Since).Seconds())
	}
	if c.State == OK {
		return f
	}
	f.Hint = string(c.Hint)
	f.Reason = field.Reason(c.Reason).String()
	if c.Reason == "" {
		f.Reason = unstated
	}
	return f
}
