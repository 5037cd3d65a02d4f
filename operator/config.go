package operator

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// Name is the name of this duty.
const Name = "operator"

// Config is what an Operator is made from. Listen, Address and Events must be
// set.
type Config struct {
	// Listen opens the TCP listener: the seam.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
	// Address is bound exactly. An IPv4 wildcard means IPv4 alone; the IPv6
	// wildcard means both. Port 0 leaves the choice to the system; Addr tells it.
	Address netip.AddrPort
	// Duties are asked in this order, and then the operator itself, which is not
	// among them. Each has a name of its own.
	Duties []duty.Duty
	// Metrics are shown besides the operator's own; a nil one is left out.
	Metrics []*duty.Metrics
	// Events is what /events reads, and where the operator publishes EventKinds.
	Events *duty.Events
	// Explain says what the hub does with packets from one address to another; nil
	// means that the relay has no hub. It must not block.
	Explain func(from, to netip.Addr) Explanation
	Build   Build
	Wall    func() time.Time // time.Now if nil; its time at New is shown as the start
	Log     *duty.Logger
}

// Build says what program this is. An empty text is shown as "unknown".
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
}

// unknown stands for a part of Build that was left out.
const unknown = "unknown"

// goVersion is the third part of what is shown of the build.
func goVersion() string { return runtime.Version() }

// New returns an operator endpoint that is not bound yet. A configuration that
// cannot be right is a mistake of the program and panics.
func New(cfg Config) *Operator {
	if cfg.Listen == nil || cfg.Events == nil || !cfg.Address.IsValid() {
		panic("operator: Listen, Address and Events must be set")
	}
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	cfg.Build.Version = cmp.Or(cfg.Build.Version, unknown)
	cfg.Build.Revision = cmp.Or(cfg.Build.Revision, unknown)
	now := cfg.Wall()
	o := &Operator{
		cfg:      cfg,
		log:      cfg.Log.With(),
		metrics:  newMetrics(),
		started:  now.UTC(),
		answers:  newPlaces(maxAnswers),
		polls:    newPlaces(maxPolls),
		profiles: newPlaces(maxProfiles),
		dumps:    newPlaces(maxDumps),
		leaving:  make(chan struct{}),
		since:    now,
	}
	o.duties = subjectsOf(append(cfg.Duties[:len(cfg.Duties):len(cfg.Duties)], o))
	for range o.duties {
		o.ages = append(o.ages, newAges(o.started))
	}
	for _, set := range append(cfg.Metrics[:len(cfg.Metrics):len(cfg.Metrics)], o.metrics.set) {
		if set != nil {
			o.sets = append(o.sets, newSubject(set, ""))
		}
	}
	o.scrape = newScrape(o)
	o.http = &http.Server{
		Handler:                      http.HandlerFunc(o.serveHTTP),
		ReadHeaderTimeout:            headerWait,
		WriteTimeout:                 answerWait, // what takes longer sets its own
		IdleTimeout:                  idleWait,
		MaxHeaderBytes:               maxHeader,
		ErrorLog:                     cfg.Log.ErrorLog(Name),
		ConnContext:                  markSurplus,
		DisableGeneralOptionsHandler: true, // it would answer OPTIONS * with 200
		Protocols:                    new(http.Protocols),
	}
	o.http.Protocols.SetHTTP1(true)
	return o
}

// subjectsOf makes duties ready to be asked.
func subjectsOf(duties []duty.Duty) []*subject[duty.Duty] {
	var subjects []*subject[duty.Duty]
	seen := map[string]bool{}
	for _, d := range duties {
		name := d.Name()
		if !field.IsName(name) || seen[name] {
			panic(fmt.Sprintf("operator: %q is not the name of one duty", name))
		}
		seen[name] = true
		subjects = append(subjects, newSubject(d, name))
	}
	return subjects
}
