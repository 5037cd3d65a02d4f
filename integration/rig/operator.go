package rig

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// askWait bounds one request to the operator endpoint.
	askWait = 15 * time.Second
	// askTries is how often one is made. On a machine that gives the relay no time for
	// seconds, the deadlines of its endpoint are over before it has read a request, and it
	// closes the connection without an answer.
	askTries = 3
	// maxPage bounds an answer of it, beyond what its own rings hold.
	maxPage = 64 << 20
)

// Page is an answer of the operator endpoint.
type Page struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Get asks the operator endpoint for a path, with its query.
func (r *Rig) Get(path string) Page {
	r.t.Helper()
	page, err := r.fetch(path)
	if err != nil {
		r.t.Fatal(err)
	}
	return page
}

func (r *Rig) fetch(path string) (Page, error) {
	if r.operator == "" {
		return Page{}, errors.New("ask the operator endpoint: no relay has been started")
	}
	client := http.Client{
		Timeout: askWait,
		// A connection a request, so that nothing is left when the relay is gone.
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Get("http://" + r.operator + path)
	for try := 1; errors.Is(err, io.EOF) && try < askTries; try++ {
		response, err = client.Get("http://" + r.operator + path)
	}
	if err != nil {
		return Page{}, fmt.Errorf("ask the operator endpoint: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPage+1))
	if err != nil {
		return Page{}, fmt.Errorf("ask the operator endpoint for %s: %w", path, err)
	}
	if len(body) > maxPage {
		return Page{}, fmt.Errorf("ask the operator endpoint for %s: more than %d bytes", path, maxPage)
	}
	return Page{response.StatusCode, response.Header, body}, nil
}

// fetchOK is fetch for what must be answered 200.
func (r *Rig) fetchOK(path string) ([]byte, error) {
	page, err := r.fetch(path)
	if err == nil && page.Code != http.StatusOK {
		err = fmt.Errorf("ask the operator endpoint for %s: status %d: %.200s", path, page.Code, page.Body)
	}
	return page.Body, err
}

// Status is the status document as generic JSON.
type Status map[string]any

// At returns what stands at a path of members, nil when there is no such thing.
func (s Status) At(path ...string) any {
	var value any = map[string]any(s)
	for _, name := range path {
		members, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = members[name]
	}
	return value
}

// Status asks /status.
func (r *Rig) Status() Status {
	r.t.Helper()
	body, err := r.fetchOK("/status")
	if err != nil {
		r.t.Fatal(err)
	}
	var status Status
	if err := json.Unmarshal(body, &status); err != nil {
		r.t.Fatalf("/status: %v", err)
	}
	return status
}

// Section decodes one duty's part of the status document into the value that into
// points to, such as a *cloudly.Status.
func (r *Rig) Section(duty string, into any) {
	r.t.Helper()
	if err := r.section(duty, into); err != nil {
		r.t.Fatal(err)
	}
}

func (r *Rig) section(duty string, into any) error {
	body, err := r.fetchOK("/status")
	if err != nil {
		return err
	}
	var document struct {
		Duties map[string]jsontext.Value `json:"duties"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return fmt.Errorf("/status: %w", err)
	}
	part, ok := document.Duties[duty]
	if !ok {
		return fmt.Errorf("/status has no duty %s but %q", duty, slices.Sorted(maps.Keys(document.Duties)))
	}
	if err := json.Unmarshal(part, into); err != nil {
		return fmt.Errorf("/status: duty %s: %w", duty, err)
	}
	return nil
}

// SectionOf is Section for a type: SectionOf[cloudly.Status](r, "cloudly").
func SectionOf[T any](r *Rig, duty string) T {
	r.t.Helper()
	var section T
	r.Section(duty, &section)
	return section
}

// Metrics asks /metrics.
func (r *Rig) Metrics() Metrics {
	r.t.Helper()
	body, err := r.fetchOK("/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	m, err := ParseMetrics(string(body))
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}
