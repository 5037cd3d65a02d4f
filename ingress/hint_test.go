package ingress

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// envelope is a hint as it travels, with its ids cut out.
var envelope = regexp.MustCompile(`^\{"method":"pushClusterIngressRouteTableChanged","request":(.*),"response":null,"requestInstanceId":"[^"]+","correlation":\{"id":"[^"]+","phase":"request"\}\}$`)

// hints returns the bodies of the hints that an ingress was given.
func (p *remote) hints() []string {
	p.t.Helper()
	var bodies []string
	for _, f := range p.got(hintMethod) {
		m := envelope.FindStringSubmatch(f)
		if m == nil {
			p.t.Fatalf("a hint has more than a body and its ids: %s", f)
		}
		bodies = append(bodies, m[1])
	}
	return bodies
}

// R73: a hint carries the revision alone, to every registered ingress, after every
// table that is newer and after no other.
func TestR73_AHintCarriesTheRevisionAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		a, b, stranger := r.ingress(cloud, "node-a"), r.ingress(cloud, "node-b"), r.node()
		for _, revision := range []int64{5, 4, 5, 6} {
			r.push(cloud, tableOf(revision, "k"))
			synctest.Wait()
		}
		for _, p := range []*remote{a, b} {
			if got := fmt.Sprint(p.hints()); got != `[{"revision":5} {"revision":6}]` {
				t.Errorf("hints %s", got)
			}
		}
		if got := stranger.hints(); got != nil {
			t.Errorf("an unregistered socket was told %v", got)
		}
		for _, s := range r.status().Ingresses {
			if s.Hinted != 6 || s.Acknowledged != 6 || s.AckedAt.IsZero() {
				t.Errorf("%+v", s)
			}
		}
	})
}

// R73: while a hint waits for its answer there is never a second one out, however many
// tables come; then the newest is told.
func TestR73_OfSeveralRevisionsTheNewestIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		r.register(cloud, p, "node-a")
		r.push(cloud, tableOf(1, "k"))
		q := p.next(hintMethod)
		for revision := int64(2); revision <= 50; revision++ {
			r.push(cloud, tableOf(revision, "k"))
		}
		if got := p.hints(); !slices.Equal(got, []string{`{"revision":1}`}) {
			t.Errorf("hints %s", got)
		}
		q.Answer([]byte(`{}`))
		p.next(hintMethod).Answer([]byte(`{}`))
		if got := fmt.Sprint(p.hints()); got != `[{"revision":1} {"revision":50}]` {
			t.Errorf("hints %s", got)
		}
		if s := r.status().Ingresses[0]; s.Acknowledged != 50 {
			t.Errorf("%+v", s)
		}
	})
}

// R73: a hint that is not answered in time, or refused, is not sent again; the next
// newer one is; and meanwhile others hear and the table is served.
func TestR73_ALostHintCostsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, silent := r.cloudly(), r.node()
		other := r.ingress(cloud, "node-b")
		r.register(cloud, silent, "node-a")
		r.push(cloud, tableOf(1, "k"))
		lost := silent.next(hintMethod)
		r.push(cloud, tableOf(2, "k"))
		if got := fmt.Sprint(other.hints()); got != `[{"revision":1} {"revision":2}]` {
			t.Errorf("the other one was told %s", got)
		}
		if a := silent.ask(tableMethod, `{"knownRevision":null}`); a.body != pushOf(tableOf(2, "k")) {
			t.Errorf("%.200s, %v", a.body, a.err)
		}
		time.Sleep(hintWait - time.Millisecond)
		if got := fmt.Sprint(silent.hints()); got != `[{"revision":1}]` {
			t.Errorf("before the wait was over: %s", got)
		}
		time.Sleep(time.Millisecond)
		if got := fmt.Sprint(silent.hints()); got != `[{"revision":1} {"revision":2}]` {
			t.Errorf("after it: %s", got)
		}
		lost.Answer([]byte(`{}`)) // too late
		silent.next(hintMethod).Refuse("no", nil)
		synctest.Wait()
		if s := r.status().Ingresses[0]; s.Node != "node-a" || s.Hinted != 2 || s.Acknowledged != 0 || s.Pulled != 2 || s.Pulls != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Hour)
		r.push(cloud, tableOf(3, "k"))
		silent.next(hintMethod).Answer([]byte(`{}`))
		synctest.Wait()
		if s := r.status().Ingresses[0]; s.Acknowledged != 3 {
			t.Errorf("%+v", s)
		}
		if got := fmt.Sprint(len(silent.hints()), r.metrics.hints.Of(hintUnanswered).Value(), r.metrics.hints.Of(hintRefused).Value()); got != "3 1 1" {
			t.Errorf("hints, unanswered, refused: %s", got)
		}
	})
}

// R73: a revision is told once, although the hint was not answered.
func TestR73_AHintIsGivenOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		r.register(cloud, p, "node-a")
		r.push(cloud, tableOf(1, "k"))
		p.next(hintMethod).Drop()
		time.Sleep(time.Hour)
		if got := fmt.Sprint(p.hints()); got != `[{"revision":1}]` {
			t.Errorf("hints %s", got)
		}
	})
}

// R73: neither a socket whose registration Cloudly refused, nor one whose it has not
// judged yet, is told of a table.
func TestR73_NobodyElseIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, refused, waiting := r.cloudly(), r.node(), r.node()
		c := refused.start(registerMethod, registrationOf("node-a", "b"))
		cloud.next(registerMethod).Refuse("x", []byte(ownData(contract.IngressBearerRefused)))
		<-c
		waiting.start(registerMethod, registrationOf("node-b", "b"))
		cloud.next(registerMethod).Drop()
		r.push(cloud, tableOf(1, "k"))
		refused.none(hintMethod)
		waiting.none(hintMethod)
	})
}

// TestATableThatCameWhileCloudlyJudgedIsTold behind the acceptance, which bears an
// older revision; otherwise nothing is.
func TestATableThatCameWhileCloudlyJudgedIsTold(t *testing.T) {
	for _, c := range []struct {
		held     int64
		accepted string
		want     string
	}{{0, "null", "[]"}, {3, "null", `[{"revision":3}]`}, {3, "2", `[{"revision":3}]`}, {3, "3", "[]"}, {3, "4", "[]"}} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			cloud, p := r.cloudly(), r.node()
			p.on(hintMethod, func(q *typedsocket.Request) { q.Answer([]byte("{}")) })
			if c.held > 0 {
				r.push(cloud, tableOf(c.held, "k"))
			}
			answer := p.start(registerMethod, registrationOf("node-a", "b"))
			cloud.next(registerMethod).Answer(fmt.Appendf(nil, `{"accepted":true,"revision":%s,"protocol":%s}`, c.accepted, offerText))
			<-answer
			if got := fmt.Sprint(p.hints()); got != c.want {
				t.Errorf("%d is held and %s was accepted: hints %s, want %s", c.held, c.accepted, got, c.want)
			}
		})
	}
}
