package ingress_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/ingress"
	"serve.zone/relay/simulate"
)

// Days of the traffic here: long closed.
const day1, day2, day3 = "2026-03-30", "2026-03-31", "2026-04-01"

// buckets are n of an ingress's, over two days.
func buckets(node string, n int) []simulate.TrafficBucket {
	var list []simulate.TrafficBucket
	for i := range n {
		day := []string{day1, day2}[i*2/n]
		list = append(list, simulate.TrafficBucket{DayUTC: day, Hostname: fmt.Sprintf("h%d.%d.example", i, n), NodeID: node,
			Traffic: simulate.Traffic{Requests: int64(i) + 1, BytesIn: 20, BytesOut: 9007199254740991, Connections: 1,
				Failures: simulate.BackendFailures{Connect: 3, Handshake: 2, Request: 1}}})
	}
	return list
}

// question is a request of Cloudly, as its writer spells it.
func question(from, to, cursor string, limit int) string {
	if cursor != "" {
		cursor = fmt.Sprintf(`"cursor":%q,`, cursor)
	}
	return fmt.Sprintf(`{"fromDayUtc":%q,"toDayUtc":%q,%s"limit":%d}`, from, to, cursor, limit)
}

// three are the ingresses of three nodes, whose order is not that of their registrations.
func (c *cluster) three() (all map[string]*simulate.Ingress, want []simulate.TrafficBucket) {
	c.t.Helper()
	c.bearer = c.DesignateIngress("node-b", "-node", "Node")
	all = map[string]*simulate.Ingress{}
	for _, x := range []struct {
		node string
		n    int
	}{{"node-b", 4}, {"-node", 3}, {"Node", 1}} {
		all[x.node] = c.Ingress(x.node, c.bearer, func(cfg *simulate.IngressConfig) { cfg.Traffic = buckets(x.node, x.n) })
	}
	return all, slices.Concat(buckets("-node", 3), buckets("Node", 1), buckets("node-b", 4))
}

// R75: the counters of three ingresses, page by page: node by node in the order of their
// ids, each asked with its own cursor, under one that says nothing to Cloudly. Every
// bucket is there once.
func TestR75_PagesOfThreeIngresses(t *testing.T) {
	c := start(t)
	all, want := c.three()
	var got []simulate.TrafficBucket
	var sizes []string
	request := contract.TrafficRequest{FromDayUTC: day1, ToDayUTC: day2, Limit: 2}
	asked := map[string][]string{}
	for {
		page, err := c.Cloudly.TrafficPage(c.Soon(), request)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, fmt.Sprint(len(page.Statistics)))
		for _, b := range page.Statistics {
			if n := len(got); n < len(want) && string(b.Encoded) != string(want[n].AppendJSON(nil)) {
				t.Errorf("bucket %d is %s, want %s", n, b.Encoded, want[n].AppendJSON(nil))
			}
			got = append(got, simulate.TrafficBucket{})
		}
		if request.Cursor = page.NextCursor; request.Cursor == nil {
			break
		}
		// Opaque: only who made it can tell what it says (contract O17).
		decoded, err := base64.RawURLEncoding.DecodeString(*page.NextCursor)
		node, inner, ok := strings.Cut(string(decoded), "\n")
		if err != nil || !ok || all[node] == nil {
			t.Fatalf("the cursor is %q", *page.NextCursor)
		}
		asked[node] = append(asked[node], inner)
	}
	if fmt.Sprint(sizes) != "[2 1 1 2 2]" || len(got) != len(want) {
		t.Errorf("the pages hold %q, %d buckets in all, want %d", sizes, len(got), len(want))
	}
	for node, i := range all {
		received := i.Frames().Received(counting)
		var cursors []string
		for _, m := range received {
			r, err := contract.ReadTrafficRequest(m.Body)
			if err != nil {
				t.Fatal(err)
			}
			cursor := ""
			if r.Cursor != nil {
				cursor = *r.Cursor
			}
			cursors = append(cursors, cursor)
			if want := question(day1, day2, cursor, 2); string(m.Body) != want {
				t.Errorf("the ingress of %s was asked %s, want %s", node, m.Body, want)
			}
		}
		if node == "-node" {
			cursors = cursors[1:] // the first page of all has no cursor
		}
		if !slices.Equal(cursors, asked[node]) {
			t.Errorf("the ingress of %s was asked with the cursors %q, want %q", node, cursors, asked[node])
		}
	}
	// Read again, by a reader that judges the order itself.
	for _, limit := range []int64{1, 3, 256} {
		read, err := c.Cloudly.ReadTraffic(c.Soon(), day1, day2, limit)
		if err != nil || fmt.Sprint(read) != fmt.Sprint(want) {
			t.Errorf("read, %d a page: %v, %v", limit, read, err)
		}
	}
	if read, err := c.Cloudly.ReadTraffic(c.Soon(), day3, day3, 256); err != nil || len(read) != 0 {
		t.Errorf("a day without traffic: %v, %v", read, err)
	}
	if got := c.status().InFlight.Traffic; got != 0 {
		t.Errorf("%d questions are in flight", got)
	}
}

// R75: an ingress that leaves between two pages costs its own buckets and no other's.
func TestR75_AnIngressLeavesBetweenPages(t *testing.T) {
	c := start(t)
	all, want := c.three()
	request := contract.TrafficRequest{FromDayUTC: day1, ToDayUTC: day2, Limit: 2}
	var got []string
	for pages := 0; ; pages++ {
		page, err := c.Cloudly.TrafficPage(c.Soon(), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range page.Statistics {
			got = append(got, b.Hostname)
		}
		if request.Cursor = page.NextCursor; request.Cursor == nil {
			break
		}
		if pages == 0 { // the cursor says that -node goes on
			all["-node"].Close()
			c.Eventually("the end of its role", func() error {
				if s := speakers(c.status()); !slices.Equal(s, []string{"Node", "node-b"}) {
					return fmt.Errorf("the status shows ingresses of %q", s)
				}
				return nil
			})
		}
	}
	var left []string
	for n, b := range want {
		if n != 2 { // which its ingress took along
			left = append(left, b.Hostname)
		}
	}
	if !slices.Equal(got, left) {
		t.Errorf("read %q, want %q", got, left)
	}
}

// R75: a question that breaks a rule is refused here, and no ingress hears of it.
func TestR75_QuestionsThatBreakARule(t *testing.T) {
	c := start(t)
	ask := func(body string) (contract.Raw, error) { return c.Cloudly.Call(c.Soon(), counting, []byte(body)) }
	_, err := ask(question(day1, day2, "", 2))
	c.wantRefused("without an ingress", err, notRegistered, "")

	a := c.Ingress("node-a", c.bearer, func(cfg *simulate.IngressConfig) { cfg.Traffic = buckets("node-a", 3) })
	first, err := ask(question(day1, day2, "", 1))
	if err != nil {
		t.Fatal(err)
	}
	page, err := contract.ReadTrafficPage(first)
	if err != nil || page.NextCursor == nil {
		t.Fatalf("%s, %v", first, err)
	}
	given := *page.NextCursor
	encoded := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, row := range []struct{ body, says string }{
		{question("2026-13-45", day2, "", 2), "fromDayUtc: is not a utc day"},
		{question(day1, "2026-02-29", "", 2), "toDayUtc: is not a utc day"},
		{question(day1, "2026-4-1", "", 2), "toDayUtc: is not a utc day"},
		{question(day2, day1, "", 2), "toDayUtc: is before fromDayUtc"},
		{question(day1, day2, "", 0), "limit: is not within 1 to 256"},
		{question(day1, day2, "", 257), "limit: is not within 1 to 256"},
		{question(day1, day2, "", -1), "limit: is not within 1 to 256"},
		{strings.Replace(question(day1, day2, "", 2), `:2}`, `:2.0}`, 1), "limit: is not a plain safe integer"},
		{strings.Replace(question(day1, day2, "", 2), `{`, `{"nodeId":"node-a",`, 1), `body: unknown member "nodeId"`},
		{strings.Replace(question(day1, day2, "", 2), `,"limit":2`, ``, 1), "limit: is missing"},
		{`{}`, "fromDayUtc: is missing"},
		{question(day1, day2, "x", 2), "cursor: is none that this relay gave"},
		{question(day1, day2, encoded("node.a\nx"), 2), "cursor: is none that this relay gave"},
		{question(day1, day2, encoded("node-a"), 2), "cursor: is none that this relay gave"},
		{question(day1, day2, given+"=", 2), "cursor: is none that this relay gave"},
		{question(day1, day2, strings.Repeat("x", 5635), 2), "cursor: is not 1 to 5634 bytes long"},
		{strings.Replace(question(day1, day2, "", 2), `"limit"`, `"cursor":null,"limit"`, 1), "cursor: is not a string"},
		{question(day1, strings.Repeat("x", 64<<10), "", 2), "body: is larger than 65536 bytes"},
	} {
		_, err := ask(row.body)
		c.wantRefused(row.body[:min(90, len(row.body))], err, notValid, row.says)
	}
	if got := len(a.Frames().Received(counting)); got != 1 {
		t.Errorf("the ingress was asked %d times, want once", got)
	}
	// The cursor is still good.
	if rest, err := ask(question(day1, day2, given, 256)); err != nil || strings.Count(string(rest), `"nodeId"`) != 2 {
		t.Errorf("the rest: %s, %v", rest, err)
	}
	// One that names a node behind all others is one that this relay could have given.
	if none, err := ask(question(day1, day2, encoded("node-x\n"), 1)); err != nil || string(none) != `{"statistics":[]}` {
		t.Errorf("behind the last: %s, %v", none, err)
	}
}

// R75: a page that breaks a rule is refused, with the node that it came from, and quoted
// nowhere; one that breaks none goes on as it came. An error of an ingress goes on as well.
func TestR75_PagesThatBreakARule(t *testing.T) {
	c := start(t)
	a := c.Ingress("node-a", c.bearer)
	ask := func() (contract.Raw, error) {
		return c.Cloudly.Call(c.Soon(), counting, []byte(question(day1, day2, "", 2)))
	}
	marker := c.Marker("text of an ingress")
	bucket := func(day, node, hostname, requests string) string {
		return `{ "failures":{"\u0063onnect":1.50,"other":[-0,{}]},"dayUtc":"` + day + `" ,"hostname":"` + hostname + `","nodeId":"` + node +
			`","requests":` + requests + `,"bytesIn":2,"bytesOut":3,"connections":4,"note":"` + marker + `"}`
	}
	good := bucket(day1, "node-a", "a.example", "1")
	for _, row := range []struct{ page, says string }{
		{`{"statistics":[` + good + `,` + good + `,` + good + `]}`, "statistics: has more elements than were asked for"},
		{`{"statistics":[` + good + `,` + bucket(day1, "node-b", "b.example", "1") + `]}`, "statistics[1].nodeId: is not the node that was asked"},
		{`{"statistics":[` + bucket(day1, marker+"x", "b.example", "1") + `]}`, "statistics[0].nodeId: is not the node that was asked"},
		{`{"statistics":[` + bucket("2026-13-45", "node-a", "a.example", "1") + `]}`, "statistics[0].dayUtc: is not a utc day"},
		{`{"statistics":[` + bucket("2026-03-29", "node-a", "a.example", "1") + `]}`, "statistics[0].dayUtc: is outside the days that were asked for"},
		{`{"statistics":[` + bucket(day3, "node-a", "a.example", "1") + `]}`, "statistics[0].dayUtc: is outside the days that were asked for"},
		{`{"statistics":[` + bucket(day1, "node-a", "", "1") + `]}`, "statistics[0].hostname: is not a hostname"},
		{`{"statistics":[` + bucket(day1, "node-a", "a.example", "-1") + `]}`, "statistics[0].requests: is not a count"},
		{`{"statistics":[` + bucket(day1, "node-a", "a.example", "-0") + `]}`, "statistics[0].requests: is not a plain safe integer"},
		{`{"statistics":[` + bucket(day1, "node-a", "a.example", "1.5") + `]}`, "statistics[0].requests: is not a plain safe integer"},
		{`{"statistics":[` + bucket(day1, "node-a", "a.example", `"`+marker+`"`) + `]}`, "statistics[0].requests: is not a number"},
		{`{"statistics":"` + marker + `"}`, "statistics: is not an array"},
		{`{"statistics":[],"nextCursor":""}`, "nextCursor: is not 1 to 5634 bytes long"},
		{`{"statistics":[],"nextCursor":"` + strings.Repeat("x", 4097) + `"}`, "nextCursor: is longer than 4096 bytes"},
		{`{"` + marker + `":1}`, "statistics: is missing"},
		{`[]`, "body: is not an object"},
	} {
		a.Script(counting, anyway(row.page))
		_, err := ask()
		c.wantRefused(row.says, err, pageInvalid, "node node-a: "+row.says)
	}
	a.Script(counting, anyway(` { "nextCursor" : "in\u006eer", "novel":1,"statistics":[ `+good+"\n]}"))
	got, err := ask()
	if want := `{"statistics":[` + good + `],"nextCursor":"` + base64.RawURLEncoding.EncodeToString([]byte("node-a\ninner")) + `"}`; err != nil || string(got) != want {
		t.Errorf("a page that breaks no rule: %s, %v, want %s", got, err, want)
	}
	refusal := simulate.Refuse("its own \u00e9 words", []byte(`{ "x" : [ 1.0 ] }`))
	a.Script(counting, refusal)
	_, err = ask()
	if remote, ok := c.remote("an error of an ingress", err); ok && (remote.Text != refusal.Text || string(remote.Data) != string(refusal.Data)) {
		t.Errorf("an error of an ingress: %q %s", remote.Text, remote.Data)
	}
	told := 0
	for _, e := range c.Events(0) {
		if e.Type == string(ingress.TrafficPageRefused) && e.Text("node") == "node-a" {
			told++
		}
	}
	if told != 16 {
		t.Errorf("%d events tell of a page", told)
	}
	if a.Dials() != 1 {
		t.Errorf("the ingress has dialled %d times", a.Dials())
	}
}

// R75: questions that an ingress does not answer are bounded, and end with its socket.
func TestR75_QuestionsInFlightAreBounded(t *testing.T) {
	const most = 8
	c := start(t)
	h := c.ingress("node-a")
	ctx := c.Soon()
	ask := func() error {
		_, err := c.Cloudly.Call(ctx, counting, []byte(question(day1, day2, "", 2)))
		return err
	}
	answers := make(chan error, most)
	for range most {
		go func() { answers <- ask() }()
	}
	c.Eventually("as many questions as may wait", func() error {
		if got := c.status().InFlight.Traffic; got != most {
			return fmt.Errorf("%d wait", got)
		}
		return nil
	})
	c.wantRefused("one more", ask(), overloaded, "")
	h.reply(h.request(counting), `{"statistics":[]}`)
	if err := <-answers; err != nil {
		t.Errorf("one that was answered: %v", err)
	}
	h.Cut()
	for range most - 1 {
		c.wantRefused("one whose ingress left", <-answers, notRegistered, "node node-a has left")
	}
	c.Eventually("the end of all", func() error {
		if s := c.status(); s.InFlight.Traffic != 0 || len(s.Ingresses) != 0 {
			return errors.New("some are left")
		}
		return nil
	})
}
