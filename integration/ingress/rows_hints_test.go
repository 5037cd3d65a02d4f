package ingress_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"serve.zone/relay/simulate"
)

// namesOf are the members of an object, in order.
func namesOf(t *testing.T, text []byte) []string {
	t.Helper()
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if _, err := d.ReadToken(); err != nil {
		t.Fatalf("%v in %.300q", err, text)
	}
	var names []string
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err == nil {
			names = append(names, name.String())
			err = d.SkipValue()
		}
		if err != nil {
			t.Fatalf("%v in %.300q", err, text)
		}
	}
	return names
}

// R73: the hint is a request whose body is the revision and nothing else, to every
// registered ingress, each time that a newer table is held.
func TestR73_TheHintCarriesTheRevisionAlone(t *testing.T) {
	c := start(t)
	ingresses := []*hand{c.ingress("node-a"), c.ingress("node-b")}
	for _, revision := range []int64{1, 2, 9007199254740991} {
		c.pushed("a table", c.odd(revision, "app.example"), revision)
		for _, h := range ingresses {
			m := h.request(hinting)
			h.reply(m, `{}`)
			if want := fmt.Sprintf(`{"revision":%d}`, revision); string(m.Body) != want {
				t.Errorf("the hint says %.300s, want %s", m.Body, want)
			}
			names := slices.Sorted(slices.Values(namesOf(t, m.Text)))
			if want := []string{"correlation", "method", "request", "requestInstanceId", "response"}; !slices.Equal(names, want) {
				t.Errorf("the hint's envelope has %q, want %q", names, want)
			}
			c.wantUnquoted("the hint", string(m.Text))
		}
	}
	c.Eventually("all hints to be answered", func() error {
		if got := c.counted("relay_ingress_sent_hints_total", "outcome", "answered"); got != 6 {
			return fmt.Errorf("%v are", got)
		}
		return nil
	})
}

// R73: a hint that is lost, refused or repeated costs nothing: the table is there for who
// pulls, and the next hint comes.
func TestR73_ALostHintCostsNothing(t *testing.T) {
	c := start(t)
	a := c.Ingress("node-a", c.bearer)
	if err := a.Wait(c.Soon(), "the first answer", func() bool { return len(a.Tables()) == 1 }); err != nil {
		t.Fatal(err)
	}
	authority := c.authority()
	publish := func() (revision int64) {
		t.Helper()
		table, err := c.Cloudly.PublishRoutes(c.Soon(), []simulate.IngressRoute{c.route(authority, "app.example", "127.0.0.1:9")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return table.Revision
	}
	hints := 0
	for what, step := range map[string]simulate.Step{
		"refused":                simulate.Refuse("not today", nil),
		"answered with anything": anyway(`{"revision":7}`),
		"answered with null":     anyway(`null`),
	} {
		a.Script(hinting, step)
		revision := publish()
		hints++
		if err := a.WaitReceived(c.Soon(), hinting, hints); err != nil {
			t.Fatal(err)
		}
		if a.Revision() == revision {
			t.Errorf("a hint that was %s led to a pull", what)
		}
		if j, err := a.Pull(c.Soon()); err != nil || j.Outcome != simulate.TableApplied || j.Revision != revision {
			t.Errorf("a pull behind a hint that was %s: %+v, %v", what, j, err)
		}
	}
	// One that is never answered keeps no table back.
	a.Script(hinting, simulate.Ignore())
	revision := publish()
	if err := a.WaitReceived(c.Soon(), hinting, hints+1); err != nil {
		t.Fatal(err)
	}
	next := publish()
	if j, err := a.Pull(c.Soon()); err != nil || j.Revision != next || next != revision+1 {
		t.Errorf("a pull behind a hint that was lost: %+v, %v", j, err)
	}
	// The one that waited says the newest, which the ingress has: it is not pulled again.
	if err := a.WaitReceived(c.Soon(), hinting, hints+2); err != nil {
		t.Fatal(err)
	}
	if got := a.Frames().Received(hinting); string(got[hints+1].Body) != fmt.Sprintf(`{"revision":%d}`, next) {
		t.Errorf("the last hint says %s", got[hints+1].Body)
	}
	if got := len(a.Frames().Sent(asking)); got != hints+2 {
		t.Errorf("the ingress has pulled %d times", got)
	}
	if a.Dials() != 1 {
		t.Errorf("the ingress has dialled %d times", a.Dials())
	}
}

// R73: a table that came between Cloudly's judgement of an ingress and its acceptance is
// told behind the acceptance.
func TestR73_ATableThatCameMeanwhileIsTold(t *testing.T) {
	c := start(t)
	c.pushed("a table", plainTable(5), 5)
	for _, row := range []struct {
		revision string
		told     bool
	}{{"null", true}, {"4", true}, {"5", false}, {"6", false}} {
		h := c.byHand()
		c.Cloudly.Script(registering, anyway(`{"accepted":true,"revision":`+row.revision+`,"protocol":`+cloudlyOffer+`}`))
		answer, err := h.ask(registering, c.registration("node-a"))
		if want := `{"accepted":true,"revision":` + row.revision + `,"protocol":` + relayOffer + `}`; err != nil || string(answer) != want {
			t.Errorf("answered %s, %v", answer, err)
		}
		if row.told {
			h.wantHint(5)
		}
		// What was not told is told first of all by the next table.
		if !row.told {
			h.wantTable("accepted with "+row.revision, plainTable(5))
			h.wantNoHint("accepted with " + row.revision)
		}
	}
}
