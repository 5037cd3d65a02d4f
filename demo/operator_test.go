package demo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
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
		return `{"duties":{"forward":{"nodes":[{"id":"node-a","confirmed":true,"toCloudly":{"requests":2,"bytes":5}},{"id":"node-b"}]},
			"hub":{"members":[{"node":"node-a","sessions":1,"toBytes":7,"dropped":[{"reason":"queue-full","packets":3},{"reason":"no-grant","packets":4}]}]}}}`
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
	if m := d.member("node-a"); m.dropped(noGrant) != 4 || m.dropped("path-too-small") != 0 || m.ToBytes != 7 {
		t.Errorf("member %+v", m)
	}
	if m := d.member("node-c"); m.Node != "" {
		t.Errorf("a member that is not there is %+v", m)
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
		return fmt.Sprintf(`{"events":[{"seq":%d,"type":%q,"fields":{"node":"node-%d","sequence":%d}}],"next":%d}`, from, kind, from, from, from+1)
	})
	if next, err := c.next(t.Context()); err != nil || next != 6 {
		t.Errorf("next is %d, %v", next, err)
	}
	found, err := c.since(t.Context(), 2, "wanted")
	if err != nil || len(found) != 2 || found[0].Seq != 3 || found[0].Node != "node-3" || found[1].Sequence != 5 {
		t.Errorf("found %+v, %v", found, err)
	}
	if first, err := c.awaitEvent(t.Context(), 1, "wanted"); err != nil || first.Seq != 1 {
		t.Errorf("first %+v, %v", first, err)
	}
}
