package operator

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// SchemaVersion is the number of the schema of /status. Members may be added
// under the same number; it grows when one goes or changes its meaning.
//
//	schema     this number
//	build      version, revision, goVersion; "unknown" where nobody knows
//	start      when the relay was built up, by its wall clock
//	now        when the answer was made
//	draining   whether the relay is leaving
//	readiness  a duty.Readiness: ready, and every check of every duty
//	duties     the duties' sections, each named after its duty, by name
//	missing    duties whose section could not be had, and why
const SchemaVersion = 1

// document is what /status answers.
type document struct {
	Schema    int            `json:"schema"`
	Build     buildInfo      `json:"build"`
	Start     time.Time      `json:"start"`
	Now       time.Time      `json:"now"`
	Draining  bool           `json:"draining"`
	Readiness duty.Readiness `json:"readiness"`
	Duties    sections       `json:"duties"`
	Missing   []missing      `json:"missing"` // never nil
}

type buildInfo struct {
	Build
	GoVersion string `json:"goVersion"`
}

// missing says why a duty has no section: panicked, unresponsive or unusable.
type missing struct {
	Duty   string `json:"duty"`
	Reason string `json:"reason"`
}

// sections encodes itself as one object whose members stand in order.
type sections []section

type section struct {
	name string
	text json.RawMessage
}

// MarshalJSON returns the object.
func (s sections) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, part := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(field.AppendString(b, part.name), ':')
		b = append(b, part.text...)
	}
	return append(b, '}'), nil
}

// document asks every duty. Sections are encoded one by one, so that one that
// cannot be costs itself alone.
func (o *Operator) document(now time.Time) document {
	d := document{
		Schema: SchemaVersion, Build: buildInfo{Build: o.cfg.Build, GoVersion: goVersion()},
		Start: o.started, Now: now, Duties: sections{}, Missing: []missing{},
	}
	for i, r := range ask(o, askedStatus, o.duties, o.section) {
		if r.fault != answered {
			d.Missing = append(d.Missing, missing{Duty: o.duties[i].name, Reason: r.fault.String()})
			continue
		}
		d.Duties = append(d.Duties, r.value)
	}
	slices.SortFunc(d.Duties, func(a, b section) int { return strings.Compare(a.name, b.name) })
	// Behind the sections, so that it shows those that are missing.
	d.Readiness = o.readiness(now)
	o.mu.Lock()
	defer o.mu.Unlock()
	d.Draining = !o.draining.IsZero()
	return d
}

// section returns one duty's section as text.
func (o *Operator) section(d duty.Duty) (section, fault) {
	assembled, err := duty.Assemble(d)
	if err != nil || len(assembled) != 1 {
		o.log.Error("status-section-unusable", field.Duty(d.Name()), field.Error(err))
		return section{}, unusable
	}
	text, err := json.Marshal(assembled[0].Value)
	if err != nil {
		o.log.Error("status-section-unusable", field.Duty(assembled[0].Name), field.Error(err))
		return section{}, unusable
	}
	return section{name: assembled[0].Name, text: text}, answered
}

func (o *Operator) serveStatus(w http.ResponseWriter) outcome {
	sendJSON(w, http.StatusOK, o.document(o.cfg.Wall().UTC()))
	return served
}
