package rig

import (
	"bytes"
	"errors"
	"net/http"
	"net/netip"
	"slices"

	"serve.zone/relay/simulate"
)

// searchedPage is a page of the operator endpoint that is searched for secrets. Another
// status than these is an error, none listed is any.
type searchedPage struct {
	path     string
	statuses []int
}

var (
	there = []int{http.StatusOK}
	// explained is also what a relay without a hub answers.
	explained = []int{http.StatusOK, http.StatusNotFound}
)

// searchedPages are those that are searched whatever has crossed Cloudly's sockets.
var searchedPages = []searchedPage{
	{"/status", there}, {"/metrics", there}, {"/events", there},
	// 503 while the relay is not ready, which is no fault here.
	{"/readyz?verbose", nil}, {"/readyz?verbose&format=json", nil},
	{"/livez", there}, {"/", nil}, {"/debug/pprof/cmdline", nil}, {"/debug/pprof/goroutine?debug=1", nil},
	{"/explain?from=192.0.2.1&to=192.0.2.2", explained}, // addresses of nobody
}

// maxExplained bounds the addresses between which explanations are searched: a test may
// have a thousand nodes, and every ordered pair is a page.
const maxExplained = 3

// explanations are the pages about packets between addresses of the networks that
// crossed Cloudly's sockets, the newest first.
func explanations(frames []simulate.Frame) []searchedPage {
	var known []netip.Addr
	add := func(a netip.Addr, err error) {
		if err == nil && len(known) < maxExplained && !slices.Contains(known, a) {
			known = append(known, a)
		}
	}
	for _, f := range slices.Backward(frames) {
		if f.Binary || !bytes.Contains(f.Text, []byte(`"controlAddress"`)) {
			continue
		}
		for _, value := range valuesOf(f.Text, "cidr") {
			prefix, err := netip.ParsePrefix(value)
			add(prefix.Addr(), err)
		}
		for _, value := range valuesOf(f.Text, "controlAddress") {
			add(netip.ParseAddr(value))
		}
		if len(known) == maxExplained {
			break
		}
	}
	var pages []searchedPage
	for _, from := range known {
		for _, to := range known {
			if from != to {
				pages = append(pages, searchedPage{"/explain?from=" + from.String() + "&to=" + to.String(), explained})
			}
		}
	}
	return pages
}

// Marker makes a secret and returns it: 64 lower-case hexadecimal digits, for a
// test to put where a secret stands. Name is what a finding calls it.
func (r *Rig) Marker(name string) string { return r.secrets.mark(name) }

// AddSecret makes a secret of other making known, of at least 12 bytes. Only what
// is secret belongs into it: a part that stands in public texts as well would be
// found there.
func (r *Rig) AddSecret(name string, secret []byte) {
	r.t.Helper()
	if err := r.secrets.add(name, secret); err != nil {
		r.t.Fatal(err)
	}
}

// AssertNoMarkers fails the test for every secret that stands in what the relay
// has written, in its operator endpoint's pages when it runs, or in a file; and
// for every file that it has written at all. Every rig asserts it at its end.
//
// Known secrets are: all markers, so bearers and node tokens; the keys of installed
// certificates; the identities and node keys that Cloudly gave out, as far as its
// record of frames still holds them.
func (r *Rig) AssertNoMarkers() {
	r.t.Helper()
	r.report(r.leaksOfPages())
	r.report(r.leaksOfOutput())
}

func (r *Rig) report(leaks []Leak, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Error(err)
	}
	for _, leak := range leaks {
		r.t.Errorf("a secret is shown: %s", leak)
	}
}

// leaksOfPages searches the pages of a running relay.
func (r *Rig) leaksOfPages() ([]Leak, error) {
	if !r.Running() {
		return nil, nil
	}
	frames := r.Cloudly.Frames().All()
	if err := r.secrets.harvest(frames); err != nil {
		return nil, err
	}
	var leaks []Leak
	var wrong []error
	for _, searched := range slices.Concat(searchedPages, explanations(frames)) {
		path := searched.path
		page, err := r.fetch(path)
		if err != nil {
			return leaks, err
		}
		if searched.statuses != nil && !slices.Contains(searched.statuses, page.Code) {
			wrong = append(wrong, errors.New("search "+path+": "+http.StatusText(page.Code)))
		}
		var header bytes.Buffer
		page.Header.Write(&header)
		leaks = append(leaks, r.secrets.find(path, append(header.Bytes(), page.Body...))...)
	}
	return leaks, errors.Join(wrong...)
}

// leaksOfOutput searches what the relay has written anywhere.
func (r *Rig) leaksOfOutput() ([]Leak, error) {
	if err := r.secrets.harvest(r.Cloudly.Frames().All()); err != nil {
		return nil, err
	}
	var leaks []Leak
	var wrong []error
	for name, stream := range map[string]*capture{"standard output": &r.stdout, "standard error": &r.stderr} {
		text, dropped := stream.bytes()
		leaks = append(leaks, r.secrets.find(name, text)...)
		if dropped > 0 {
			wrong = append(wrong, errors.New("search "+name+": not all of it was kept"))
		}
	}
	changes, err := r.ledger.changes()
	if err != nil {
		return leaks, err
	}
	for _, c := range changes {
		wrong = append(wrong, errors.New("the relay has "+c.what))
		leaks = append(leaks, r.secrets.find(c.what, c.content)...)
	}
	return leaks, errors.Join(wrong...)
}

// AssertNoViolations fails the test for everything that Cloudly and the nodes
// noticed and the contract forbids. Every rig asserts it at its end, unless
// TolerateViolations was given.
func (r *Rig) AssertNoViolations() {
	r.t.Helper()
	for _, v := range r.Cloudly.Violations() {
		r.t.Errorf("cloudly noticed %s", v)
	}
	for _, p := range r.nodes {
		for _, v := range p.Violations() {
			r.t.Errorf("a node noticed %s", v)
		}
	}
}
