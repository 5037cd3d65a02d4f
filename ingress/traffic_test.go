package ingress

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// bucket is one day of a node, as no encoder writes it.
func bucket(node, day string) string {
	return fmt.Sprintf(`{ "failures":{"request":1.50},"dayUtc":%q,"hostname":"a.example","nodeId":%q,"requests":1,"bytesIn":2,"bytesOut":3,"connections":4 }`, day, node)
}

// question is a request of Cloudly, with a cursor or without.
func questionOf(cursor *string) string {
	if cursor == nil {
		return `{"fromDayUtc":"2026-11-29","toDayUtc":"2026-11-30","limit":2}`
	}
	return fmt.Sprintf(`{"fromDayUtc":"2026-11-29","toDayUtc":"2026-11-30","cursor":%q,"limit":2}`, *cursor)
}

// pages has an ingress answer pages: of its n days, two a page, under cursors of its
// own.
func (p *remote) pages(node string, n int) {
	p.on(trafficMethod, func(q *typedsocket.Request) {
		request, err := contract.ReadTrafficRequest(q.Body())
		if err != nil {
			p.t.Error(err)
		}
		from := 0
		if request.Cursor != nil {
			if _, err := fmt.Sscanf(*request.Cursor, "of "+node+" at %d", &from); err != nil {
				p.t.Errorf("%s was asked with the cursor %q", node, *request.Cursor)
			}
		}
		var list []string
		for at := from; at < min(from+2, n); at++ {
			list = append(list, strings.Replace(bucket(node, "2026-11-30"), "a.example", fmt.Sprintf("h%d.%s", at, node), 1))
		}
		more := ""
		if from+2 < n {
			more = fmt.Sprintf(`,"nextCursor":"of %s at %d"`, node, from+2)
		}
		q.Answer([]byte(`{"statistics":[` + strings.Join(list, ",") + `]` + more + `}`))
	})
}

// pageOf asks for one page.
func (r *rig) pageOf(cloud *remote, cursor *string) contract.TrafficPage {
	r.t.Helper()
	a := cloud.ask(trafficMethod, questionOf(cursor))
	page, err := contract.ReadTrafficPage([]byte(a.body))
	if err != nil {
		r.t.Fatalf("%v, %v", a.err, err)
	}
	return page
}

// read reads page after page to the end, and does something between two of them.
func (r *rig) read(cloud *remote, between func(pages int)) []string {
	r.t.Helper()
	var all []string
	var cursor *string
	for pages := 1; pages < 50; pages++ {
		page := r.pageOf(cloud, cursor)
		for _, b := range page.Statistics {
			all = append(all, b.Hostname)
		}
		if cursor = page.NextCursor; cursor == nil {
			return all
		}
		between(pages)
	}
	r.t.Fatal("no end")
	return nil
}

// R75: the pages of three ingresses come in the order of nodes, each whole, under one
// opaque cursor; and what happens between two pages costs at most its own node.
func TestR75_PagesOfThreeIngresses(t *testing.T) {
	nothing := func(*rig, *remote, map[string]*remote) {}
	leave := func(node string) func(*rig, *remote, map[string]*remote) {
		return func(_ *rig, _ *remote, of map[string]*remote) {
			of[node].own.Cut(typedsocket.CloseNormal, "")
			<-of[node].relay.Done()
			synctest.Wait()
		}
	}
	whole := []string{"h0.a", "h1.a", "h2.a", "h0.b", "h1.b", "h2.b", "h3.b", "h0.c"}
	for _, c := range []struct {
		name    string
		after   int // pages
		happens func(*rig, *remote, map[string]*remote)
		want    []string
	}{
		{"nothing", 1, nothing, whole},
		{"the one that is read leaves", 1, leave("a"), slices.Concat(whole[:2], whole[3:])},
		{"the next one leaves", 2, leave("b"), slices.Concat(whole[:3], whole[7:])},
		{"the one in its middle leaves", 3, leave("b"), slices.Concat(whole[:5], whole[7:])},
		{"the last one leaves", 4, leave("c"), whole[:7]},
		{"one before leaves", 3, leave("a"), whole},
		{"the session is lost and comes again", 3, func(r *rig, cloud *remote, _ map[string]*remote) {
			r.SessionLost()
			r.SessionRegistered(cloud.relay)
		}, whole},
		{"one comes in between", 2, func(r *rig, cloud *remote, _ map[string]*remote) {
			r.ingress(cloud, "aa").pages("aa", 1)
			r.ingress(cloud, "bb").pages("bb", 1)
		}, slices.Concat(whole[:7], []string{"h0.bb", "h0.c"})},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				cloud := r.cloudly()
				of := map[string]*remote{}
				for _, node := range []string{"c", "a", "b"} {
					of[node] = r.ingress(cloud, node)
				}
				of["a"].pages("a", 3)
				of["b"].pages("b", 4)
				of["c"].pages("c", 1)
				got := r.read(cloud, func(pages int) {
					if pages == c.after {
						c.happens(r, cloud, of)
					}
				})
				if !slices.Equal(got, c.want) {
					t.Errorf("read %q, want %q", got, c.want)
				}
			})
		})
	}
}

// R75: a page is handed on as it came, but for its cursor, and the request as well.
func TestR75_ThePageIsHandedOnAsItCame(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		first := cloud.start(trafficMethod, ` {"limit":2, "toDayUtc":"2026-11-30","fromDayUtc":"2026-11-29"}`)
		q := p.next(trafficMethod)
		if string(q.Body()) != questionOf(nil) {
			t.Errorf("the ingress was asked %s", q.Body())
		}
		q.Answer([]byte(`{"x":1, "nextCursor":"in\u006eer", "statistics":[ ` + bucket("node-a", "2026-11-29") + ` ]}`))
		outer := contract.TrafficCursor{NodeID: "node-a", Inner: "inner"}.Text()
		if a := <-first; a.body != `{"statistics":[`+bucket("node-a", "2026-11-29")+`],"nextCursor":"`+outer+`"}` {
			t.Errorf("Cloudly was answered %s, %v", a.body, a.err)
		}
		second := cloud.start(trafficMethod, questionOf(&outer))
		q = p.next(trafficMethod)
		if string(q.Body()) != questionOf(pointerTo("inner")) {
			t.Errorf("the ingress was asked %s", q.Body())
		}
		q.Answer([]byte(`{"statistics":[]}`))
		if a := <-second; a.body != `{"statistics":[]}` {
			t.Errorf("Cloudly was answered %s, %v", a.body, a.err)
		}
		// Behind the last of them nothing is left to be asked.
		gone := contract.TrafficCursor{NodeID: "node-b"}.Text()
		if a := cloud.ask(trafficMethod, questionOf(&gone)); a.body != `{"statistics":[]}` {
			t.Errorf("Cloudly was answered %s, %v", a.body, a.err)
		}
	})
}

// R75: questions that break a rule are refused here, and no ingress hears of them.
func TestR75_QuestionsThatBreakARule(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		good := questionOf(nil)
		with := func(old, next string) string { return strings.Replace(good, old, next, 1) }
		for _, c := range []struct{ body, reason string }{
			{with("2026-11-29", "2026-13-45"), "fromDayUtc: is not a utc day"},
			{with("2026-11-30", "2026-11-28"), "toDayUtc: is before fromDayUtc"},
			{with(`"limit":2`, `"limit":0`), "limit: is not within 1 to 256"},
			{with(`"limit":2`, `"limit":257`), "limit: is not within 1 to 256"},
			{with(`"limit"`, `"more":1,"limit"`), `body: unknown member "more"`},
			{questionOf(pointerTo("x")), "cursor: is none that this relay gave"},
			{questionOf(pointerTo(contract.TrafficCursor{NodeID: "a.b"}.Text())), "cursor: is none that this relay gave"},
			{with("2026-11-29", strings.Repeat("x", requestLimit)), "body: is larger than 65536 bytes"},
		} {
			if got := refusedWith(t, cloud.ask(trafficMethod, c.body), RequestInvalid); got != c.reason {
				t.Errorf("%.100s: %s, want %s", c.body, got, c.reason)
			}
		}
		if a := p.ask(tableMethod, `{}`); refusedWith(t, a, RequestInvalid) != "knownRevision: is missing" {
			t.Error(a.err)
		}
		if a := p.ask(tableMethod, `{"knownRevision":1,"x":2}`); refusedWith(t, a, RequestInvalid) != `body: unknown member "x"` {
			t.Error(a.err)
		}
		if a := p.ask(tableMethod, `{"knownRevision":0}`); refusedWith(t, a, RequestInvalid) != "knownRevision: is not a counter" {
			t.Error(a.err)
		}
		p.none(trafficMethod)
	})
}

// R75: pages that break a rule are refused by name, and nothing of them is quoted.
func TestR75_PagesThatBreakARule(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		good := bucket("node-a", "2026-11-30")
		const marker = "a-secret-marker"
		for _, c := range []struct{ body, reason string }{
			{`{"statistics":[` + good + `,` + good + `,` + good + `]}`, "statistics: has more elements than were asked for"},
			{`{"statistics":[` + bucket(marker, "2026-11-30") + `]}`, "statistics[0].nodeId: is not the node that was asked"},
			{`{"statistics":[` + good + `,` + bucket("node-a", "2026-11-28") + `]}`, "statistics[1].dayUtc: is outside the days that were asked for"},
			{`{"statistics":[` + bucket("node-a", "2026-12-01") + `]}`, "statistics[0].dayUtc: is outside the days that were asked for"},
			{`{"statistics":[` + bucket("node-a", "2026-13-45") + `]}`, "statistics[0].dayUtc: is not a utc day"},
			{`{"statistics":[` + strings.Replace(good, `"requests":1`, `"requests":"`+marker+`"`, 1) + `]}`, "statistics[0].requests: is not a number"},
			{`{"statistics":[` + strings.Replace(good, `"hostname"`, `"`+marker+`"`, 1) + `]}`, "statistics[0].hostname: is missing"},
			{`{"statistics":"` + marker + `"}`, "statistics: is not an array"},
			{`{"statistics":[],"nextCursor":"` + strings.Repeat(marker, 300) + `"}`, "nextCursor: is longer than 4096 bytes"},
			{`{"statistics":[],"nextCursor":null}`, "nextCursor: is not a string"},
			{`{"statistics":[],"nextCursor":""}`, "nextCursor: is not 1 to 5634 bytes long"},
			{`{"` + marker + `":1}`, "statistics: is missing"},
			{`null`, "body: is not an object"},
		} {
			a := cloud.start(trafficMethod, questionOf(nil))
			p.next(trafficMethod).Answer([]byte(c.body))
			if got := refusedWith(t, <-a, TrafficPageInvalid); got != "node node-a: "+c.reason {
				t.Errorf("%.200s: %s, want %s", c.body, got, c.reason)
			}
		}
		if got := r.told(TrafficPageRefused); len(got) != 13 || got[0] != "ingress-traffic-page-refused node=node-a" {
			t.Errorf("told %q", got)
		}
		for where, text := range r.shown() {
			if strings.Contains(text, marker) {
				t.Errorf("the marker is shown by the %s", where)
			}
		}
	})
}

// R75: with nobody to ask, nobody who answers, or an ingress that leaves, Cloudly is
// told so by name; the error of an ingress goes on as it came.
func TestR75_NobodyToAsk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		if got := refusedWith(t, cloud.ask(trafficMethod, questionOf(nil)), contract.ClusterIngressNotRegistered); got != "no ingress of this cluster is registered" {
			t.Error(got)
		}
		some := contract.TrafficCursor{NodeID: "node-a", Inner: "x"}.Text()
		refusedWith(t, cloud.ask(trafficMethod, questionOf(&some)), contract.ClusterIngressNotRegistered)

		p := r.ingress(cloud, "node-a")
		begun := time.Now()
		a := cloud.start(trafficMethod, questionOf(nil))
		q := p.next(trafficMethod)
		if got := refusedWith(t, <-a, IngressUnanswered); got != "the ingress of node node-a gave no valid answer within 20s" {
			t.Error(got)
		}
		if waited := time.Since(begun); waited != trafficWait || waited >= contract.ForwardTimeout {
			t.Errorf("it took %s", waited)
		}
		q.Answer([]byte(`{"statistics":[]}`)) // too late

		a = cloud.start(trafficMethod, questionOf(nil))
		p.next(trafficMethod).Refuse("its own words", []byte(`{"x":[ 1]}`))
		declinedWith(t, <-a, `{"x":[ 1]}`)

		a = cloud.start(trafficMethod, questionOf(nil))
		p.next(trafficMethod).Drop()
		p.own.Cut(typedsocket.CloseNormal, "")
		if got := refusedWith(t, <-a, contract.ClusterIngressNotRegistered); got != "the ingress of node node-a has left" {
			t.Error(got)
		}
		if got := r.status().InFlight; got != (InFlight{}) {
			t.Errorf("%+v", got)
		}
	})
}

// R75: questions do not pile up behind an ingress that is slow: those beyond the bound
// are refused.
func TestR75_BoundOfQuestions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		p := r.ingress(cloud, "node-a")
		var waiting []<-chan answered
		for range maxTraffic {
			waiting = append(waiting, cloud.start(trafficMethod, questionOf(nil)))
		}
		synctest.Wait()
		if got := r.status().InFlight.Traffic; got != maxTraffic {
			t.Errorf("%d in flight", got)
		}
		refusedWith(t, cloud.ask(trafficMethod, questionOf(nil)), contract.RelayOverloaded)
		for range waiting {
			p.next(trafficMethod).Answer([]byte(`{"statistics":[]}`))
		}
		for _, a := range waiting {
			if a := <-a; a.err != nil {
				t.Error(a.err)
			}
		}
		p.pages("node-a", 1)
		r.pageOf(cloud, nil)
	})
}

// TestTheTurnBehindAnIngressThatLeft while it was asked is that of the next one.
func TestTheTurnBehindAnIngressThatLeft(t *testing.T) {
	for _, c := range []struct {
		nodes []string
		want  string // "" for the end
	}{{[]string{"a", "b", "c"}, "c"}, {[]string{"a", "c", "d"}, "c"}, {[]string{"a", "b"}, ""}, {[]string{"a"}, ""}, {nil, ""}} {
		got := ""
		if text := behind(c.nodes, "b", nil); text != nil {
			next, _ := contract.ParseTrafficCursor(*text)
			got = next.NodeID
		}
		if got != c.want {
			t.Errorf("behind b of %q: %q, want %q", c.nodes, got, c.want)
		}
	}
}

// TestTheOrderOfIngresses: whatever nodes come and go, a read to the end asks every
// node that was there all the time, once for each of its pages, in order.
func TestTheOrderOfIngresses(t *testing.T) {
	names := []string{"-a", "A", "_b", "a", "b", "c"}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		pages := map[string]int{}
		for _, n := range names {
			pages[n] = rapid.IntRange(1, 3).Draw(t, "pages of "+n)
		}
		present := func() []string {
			return slices.DeleteFunc(slices.Clone(names), func(string) bool { return rapid.IntRange(0, 3).Draw(t, "gone") == 0 })
		}
		always := slices.Clone(names)
		var asked []contract.TrafficCursor
		var cursor *contract.TrafficCursor
		for step := 0; ; step++ {
			nodes := present()
			always = slices.DeleteFunc(always, func(n string) bool { return !slices.Contains(nodes, n) })
			turn, any := at(nodes, cursor)
			if !any {
				break
			}
			if !slices.Contains(nodes, turn.NodeID) {
				t.Fatalf("%q is asked, of %q", turn.NodeID, nodes)
			}
			asked = append(asked, turn)
			page := len(turn.Inner) + 1
			var inner *string
			if page < pages[turn.NodeID] {
				inner = pointerTo(strings.Repeat("x", page))
			}
			nodes = present()
			always = slices.DeleteFunc(always, func(n string) bool { return !slices.Contains(nodes, n) })
			text := behind(nodes, turn.NodeID, inner)
			if text == nil {
				break
			}
			next, ok := contract.ParseTrafficCursor(*text)
			if !ok {
				t.Fatalf("%q is no cursor", *text)
			}
			cursor = &next
			if step > 100 {
				t.Fatal("no end")
			}
		}
		for _, n := range always {
			for page := range pages[n] {
				want := contract.TrafficCursor{NodeID: n, Inner: strings.Repeat("x", page)}
				if count := len(slices.DeleteFunc(slices.Clone(asked), func(c contract.TrafficCursor) bool { return c != want })); count != 1 {
					t.Fatalf("page %d of %q was asked %d times: %v", page, n, count, asked)
				}
			}
		}
		if !slices.IsSortedFunc(asked, func(a, b contract.TrafficCursor) int {
			return strings.Compare(a.NodeID+"\n"+a.Inner, b.NodeID+"\n"+b.Inner)
		}) {
			t.Fatalf("out of order: %v", asked)
		}
	})
}
