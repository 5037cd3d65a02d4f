package rig

import (
	"bytes"
	"errors"
	"net/http"
)

// searchedPages are the pages of the operator endpoint that are searched for
// secrets; those marked must be there.
var searchedPages = []struct {
	path string
	must bool
}{
	{"/status", true}, {"/metrics", true}, {"/events", true},
	// 503 while the relay is not ready, which is no fault here.
	{"/readyz?verbose", false}, {"/readyz?verbose&format=json", false},
	{"/livez", true}, {"/", false}, {"/debug/pprof/cmdline", false}, {"/debug/pprof/goroutine?debug=1", false},
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
	if err := r.secrets.harvest(r.Cloudly.Frames().All()); err != nil {
		return nil, err
	}
	var leaks []Leak
	var wrong []error
	for _, searched := range searchedPages {
		path := searched.path
		page, err := r.fetch(path)
		if err != nil {
			return leaks, err
		}
		if searched.must && page.Code != http.StatusOK {
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
