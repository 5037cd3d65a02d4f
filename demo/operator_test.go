package demo

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"serve.zone/relay/operator/client"
)

// pages is an operator endpoint that answers what a test says.
func pages(t *testing.T, answer func(path string, from uint64) string) console {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.ParseUint(r.URL.Query().Get("fromSeq"), 10, 64)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer(r.URL.Path, from))
	}))
	t.Cleanup(s.Close)
	return console{client.Client{Base: s.URL}}
}

// What is looked for in the status stands where the relay puts it.
func TestDocument(t *testing.T) {
	c := pages(t, func(string, uint64) string {
		return `{"schema":1,"duties":{"forward":{"nodes":[{"id":"node-a","confirmed":true,"toCloudly":{"requests":2,"bytes":5}},{"id":"node-b"}]},
			"hub":{"members":[{"node":"node-a","sessions":1,"toBytes":7,"dropped":[{"reason":"queue-full","packets":3},{"reason":"no-grant","packets":4}]}]},
			"cloudly":{},"escrow":{},"ingress":{}}}`
	})
	d, err := c.status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := d.node("node-a"); !ok || !n.Confirmed || n.ToCloudly.Requests != 2 || d.names() != "node-a, node-b" {
		t.Errorf("node-a is %+v of %s", n, d.names())
	}
	if _, ok := d.node("node-c"); ok {
		t.Error("a node that is not there was found")
	}
	if m := d.member("node-a"); drops(m, noGrant) != 4 || drops(m, "path-too-small") != 0 || m.ToBytes != 7 {
		t.Errorf("member %+v", m)
	}
	if m := d.member("node-c"); m.Node != "" {
		t.Errorf("a member that is not there is %+v", m)
	}
}

// No fact is made of a document that states less than is read of it.
func TestADocumentThatIsNotWholeIsAnError(t *testing.T) {
	sections := map[string]string{"cloudly": "{}", "escrow": "{}", "forward": "{}", "hub": "{}", "ingress": "{}"}
	with := func(duty, section string) string {
		changed := maps.Clone(sections)
		changed[duty] = section
		var members []string
		for name, text := range changed {
			members = append(members, fmt.Sprintf("%q:%s", name, text))
		}
		return `{"schema":1,"missing":[{"duty":"hub","reason":"panicked"}],"duties":{` + strings.Join(members, ",") + `}}`
	}
	said := with("escrow", "{}")
	c := pages(t, func(string, uint64) string { return said })
	if _, err := c.status(t.Context()); err != nil {
		t.Fatalf("a whole document: %v", err)
	}
	for duty := range sections {
		reason := "without a reason"
		if duty == "hub" {
			reason = "panicked"
		}
		said = with(duty, "null")
		want := Mismatch{Expected: "the section of " + duty + " in /status", Found: "none: " + reason}
		var got *Mismatch
		if _, err := c.status(t.Context()); !errors.As(err, &got) || *got != want {
			t.Errorf("without %s: %v", duty, err)
		}
	}
	for name, text := range map[string]string{
		"a count that is none": with("escrow", `{"runs":-1}`), "another schema": strings.Replace(with("escrow", "{}"), "1", "2", 1),
	} {
		said = text
		if _, err := c.status(t.Context()); err != errPartial {
			t.Errorf("%s: %v", name, err)
		}
	}
	said = `{}`
	if _, err := c.status(t.Context()); err == nil || isMismatch(err) {
		t.Errorf("no status document: %v", err)
	}
}

// Events are read from a number on, over as many pages as there are.
func TestEvents(t *testing.T) {
	c := pages(t, func(_ string, from uint64) string {
		if from = max(from, 1); from > 5 {
			return `{"events":[],"next":6}`
		}
		kind := "other"
		if from%2 == 1 {
			kind = "wanted"
		}
		return fmt.Sprintf(`{"events":[{"seq":%d,"time":"2026-12-01T04:00:00Z","type":%q,"fields":{"node":"node-%d","sequence":%d}}],"next":%d}`, from, kind, from, from, from+1)
	})
	if next, err := c.next(t.Context()); err != nil || next != 6 {
		t.Errorf("next is %d, %v", next, err)
	}
	found, err := c.since(t.Context(), 2, "wanted")
	if err != nil || len(found) != 2 || found[0].Seq != 3 || found[0].Node != "node-3" || found[1].Sequence != 5 {
		t.Errorf("found %+v, %v", found, err)
	}
	if first, err := c.awaitEvent(t.Context(), 1, "wanted"); err != nil || first.Seq != 1 || first.Time.IsZero() {
		t.Errorf("first %+v, %v", first, err)
	}
}

// A counter is what stands behind its whole name, and nothing else is a count.
func TestCounted(t *testing.T) {
	said := ""
	c := pages(t, func(path string, _ uint64) string {
		if path != "/metrics" {
			t.Errorf("asked for %s", path)
		}
		return said
	})
	said = "# HELP a_total Text.\n# TYPE a_total counter\na_total_more 3\nb_a_total 4\na_total 17\n"
	if n, err := c.counted(t.Context(), "a_total"); err != nil || n != 17 {
		t.Errorf("%d, %v", n, err)
	}
	for what, text := range map[string]string{
		"nothing": "", "only its text": "# HELP a_total 5\n# TYPE a_total counter\n", "another name": "a_total_more 3\nb_a_total 4\n",
		"with labels": "a_total{of=\"b\"} 3\n", "no number": "a_total many\n", "no count": "a_total -1\n", "a part": "a_total 1.5\n",
	} {
		said = text
		if n, err := c.counted(t.Context(), "a_total"); !isMismatch(err) {
			t.Errorf("%s: %d, %v", what, n, err)
		}
	}
	if _, err := (console{client.Client{Base: "http://127.0.0.1:1"}}).counted(t.Context(), "a_total"); err == nil || isMismatch(err) {
		t.Errorf("nobody answers: %v", err)
	}
}
