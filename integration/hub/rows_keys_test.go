package hub_test

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// spoiled is a body with one thing wrong in it, and what a reason says of it.
type spoiled struct{ body, reason string }

// spoil returns a body with an unknown member in each of its objects, and without each of
// its members.
func spoil(t *testing.T, body string) (all []spoiled) {
	t.Helper()
	d := jsontext.NewDecoder(strings.NewReader(body))
	begun := map[int]int{} // where the member at a depth begins
	for {
		before := int(d.InputOffset())
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		at, depth := int(d.InputOffset()), d.StackDepth()
		kind, index := d.StackIndex(depth)
		switch isName := kind == '{' && index%2 == 1; {
		case token.Kind() == '{':
			all = append(all, spoiled{body[:at] + `"unknown":{"x":[1]},` + body[at:], placeOf(d.StackPointer(), "body") + `: unknown member "unknown"`})
		case isName:
			begun[depth] = before
		}
		if kind == '{' && index > 0 && index%2 == 0 { // behind a value
			all = append(all, spoiled{without(body, begun[depth], at), placeOf(d.StackPointer(), "body") + ": is missing"})
		}
	}
}

// without cuts a member out, with the comma before or behind it.
func without(body string, from, to int) string {
	before, behind := body[:from], body[to:]
	if strings.HasSuffix(before, "{") {
		behind = strings.TrimPrefix(behind, ",")
	}
	return before + behind
}

// placeOf spells a place as reasons do: "network.nodes[0].nodeId".
func placeOf(pointer jsontext.Pointer, root string) string {
	place := ""
	for token := range pointer.Tokens() {
		if n, err := strconv.Atoi(token); err == nil {
			place += fmt.Sprintf("[%d]", n)
		} else {
			place += "." + token
		}
	}
	if place == "" {
		return root
	}
	return place[1:]
}

// R04: an unknown member at any level of a pushed network refuses it, and so does one that
// is missing; the reason names its place. An answer to a pull with such a network is
// refused as well; what stands beside the network may be of a later release (contract O35).
func TestR04_NetworksHaveExactlyTheirMembers(t *testing.T) {
	c := beginHub(t)
	x := granted(grid(2, 2), 2)
	c.applied("the network as it is", x, 1)
	held := x
	c.Cloudly.SetNetwork(&held) // a pull that fails is tried again
	x.Revision = 2
	all := spoil(t, body(x))
	if want := 1 + 1 + 2 + 4 + 2 + 1 + 5 + 2*5 + 4*2 + 2*2; len(all) != want {
		t.Fatalf("%d bodies were made, want %d", len(all), want)
	}
	for _, s := range all {
		c.wantUnchanged(s.reason, func() {
			_, err := c.call(s.body)
			if reason := c.refusedAs(s.reason, err, networkInvalid); !strings.Contains("; "+reason, "; "+s.reason) {
				t.Errorf("%s: refused since %q", s.reason, reason)
			}
		})
	}
	for _, s := range all {
		if !strings.Contains(s.reason, "unknown") || strings.HasPrefix(s.reason, "body") { // one of a kind, and below
			continue
		}
		from := c.NextSeq()
		c.pulls(s.body, "invalid")
		told := c.WaitEvent("hub-network-refused", from)
		if told.Text("outcome") != "pulled" || told.Text("error") != "invalid-message" {
			t.Errorf("%s: the event says %v", s.reason, told.Fields)
		}
		if n := c.holds(); n != 1 {
			t.Fatalf("%s: revision %d is held", s.reason, n)
		}
	}
	c.pulls(strings.Replace(body(x), "{", `{"unknown":{"x":[1]},`, 1), "accepted")
	if n := c.holds(); n != 2 {
		t.Errorf("revision %d is held", n)
	}
}
