package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/operator/client"
)

// updateVariable names the variable of the environment that has the texts of
// testdata/status written anew. Read the difference.
const updateVariable = "RELAY_UPDATE_TEXTS"

// statusFile reads a document of testdata/status; the error is that of the file.
func statusFile(t testing.TB, name string) (client.Document, error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "status", name))
	if err != nil {
		return client.Document{}, err
	}
	d, err := client.ReadDocument(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d, nil
}

// isText compares a text with a file of testdata/status.
func isText(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "status", name)
	if os.Getenv(updateVariable) != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// What a person is shown of relays in many states.
func TestStatus_Texts(t *testing.T) {
	for _, name := range []string{"well", "away", "starting", "older", "newer", "hostile", "rates"} {
		t.Run(name, func(t *testing.T) {
			d, err := statusFile(t, name+".json")
			if err != nil {
				t.Fatal(err)
			}
			l := look{Document: d}
			if before, err := statusFile(t, name+".before.json"); err == nil {
				l.rates, l.before = true, &before
			}
			isText(t, name+".txt", written(statusLines(l, 0), false))
		})
	}
}

// A first look of a watch has no rate to tell, and tells no sum in its place.
func TestStatus_FirstLook(t *testing.T) {
	d, err := statusFile(t, "rates.json")
	if err != nil {
		t.Fatal(err)
	}
	isText(t, "first.txt", written(statusLines(look{Document: d, rates: true}, 0), false))
}

// What becomes of renewals, and how a network stands, is said as it is for a person.
func TestStatus_Sentences(t *testing.T) {
	network := func(state string) client.Duties {
		return client.Duties{Hub: &client.HubSection{Network: &client.HubNetwork{Revision: 3, State: state}}}
	}
	escrow := func(renewals, running uint64, attached bool) client.Duties {
		return client.Duties{Escrow: &client.EscrowSection{Renewals: renewals, PushesRunning: running, Attached: attached}}
	}
	for _, test := range []struct {
		duties client.Duties
		want   string
	}{
		{network("idle"), ", network 3 is in force, "},
		{network("applying"), ", network 3 is being applied, "},
		{network("failed"), ", network 3 is in force, "},
		{network("failed"), " a later network could not be taken over "},
		{network("another"), ", network 3 is another, "},
		{network(""), ", network 3 is -, "},
		{escrow(0, 0, true), "0 renewals held for 0 nodes, 0 B of 0 B\n"},
		{escrow(0, 0, false), "; Cloudly is away, and there is nothing to release\n"},
		{escrow(0, 1, false), "; Cloudly is away, so they are released: 1 push under way\n"},
		{escrow(1, 0, false), "; Cloudly is away, so they are released: 0 pushes under way\n"},
	} {
		shown := written(statusLines(look{Document: client.Document{Duties: test.duties}}, 0), false)
		if !strings.Contains(strings.ReplaceAll(shown, "\n             ", " "), test.want) {
			t.Errorf("no %q in:\n%s", test.want, shown)
		}
	}
}

// crowd is a relay with many nodes, of which few need a look.
func crowd() client.Document {
	const many = 250
	d := client.Document{Schema: 1, Duties: client.Duties{Forward: &client.ForwardSection{Attached: true}, Hub: &client.HubSection{}, Listener: &client.ListenerSection{}}}
	for i := range many {
		name := fmt.Sprintf("node-%03d", i)
		n := client.CarriedNode{ID: name, Confirmed: i != 200, InFlight: client.InFlight{NodeRequests: 1, Bytes: 10}}
		m := client.HubMember{Node: name, FromBytes: 5, Session: &client.HubSession{}, Expired: i == 201, Alternating: i == 202}
		switch i {
		case 203:
			n.InFlight.Bytes = 5000
		case 204:
			m.Session = nil
		case 205:
			m.ToBytes = 5000
		}
		d.Duties.Forward.Nodes = append(d.Duties.Forward.Nodes, n)
		d.Duties.Hub.Members = append(d.Duties.Hub.Members, m)
		if i < 5 {
			d.Duties.Listener.Bound = append(d.Duties.Listener.Bound, client.BoundSocket{Role: "node", Node: name}, client.BoundSocket{Role: "node", Node: name})
		}
	}
	return d
}

// Of many those are shown that matter most, in the order of their names.
func TestStatus_Crowd(t *testing.T) {
	isText(t, "crowd.txt", written(statusLines(look{Document: crowd()}, 0), false))
}

// Rates are of one life of the relay and of time that went on, and of counters that grew.
func TestStatus_Rate(t *testing.T) {
	now, _ := statusFile(t, "rates.json")
	before, _ := statusFile(t, "rates.before.json")
	l := look{Document: now, rates: true, before: &before}
	if rate, ok := l.rate(10, 13); rate != 1.5 || !ok {
		t.Errorf("%v, %v", rate, ok)
	}
	if _, ok := l.rate(13, 10); ok {
		t.Error("a counter that shrank has a rate")
	}
	for what, change := range map[string]func(*client.Document){
		"another life":             func(d *client.Document) { d.Start = d.Start.Add(1) },
		"a clock that stands":      func(d *client.Document) { d.Now = now.Now },
		"a clock that was set off": func(d *client.Document) { d.Now = now.Now.Add(1) },
	} {
		other := before
		change(&other)
		l.before = &other
		if rate, ok := l.rate(10, 13); ok {
			t.Errorf("%s: %v", what, rate)
		}
	}
	l.before = nil
	if rate, ok := l.rate(10, 13); ok {
		t.Errorf("without a look before: %v", rate)
	}
}

// Colour adds nothing to the text and takes nothing from it.
func TestStatus_Colour(t *testing.T) {
	d, _ := statusFile(t, "away.json")
	lines := statusLines(look{Document: d}, 0)
	coloured := written(lines, true)
	for _, want := range []string{
		"\x1b[1mrelay 0.2.0 on node-relay\x1b[0m is \x1b[31mNOT READY\x1b[0m\n",
		"\x1b[31mWRONG        \x1b[0m\x1b[31mcloudly-session failing", "\x1b[33madvice       \x1b[0m\x1b[33mhub-key failing",
		"\x1b[1mCertificate  \x1b[0m\x1b[31mthat of relay.example,",
	} {
		if !strings.Contains(coloured, want) {
			t.Errorf("%q is not in %q", want, coloured)
		}
	}
	for _, code := range append(styles[1:], plainStyle) {
		coloured = strings.ReplaceAll(coloured, code, "")
	}
	if diff := cmp.Diff(written(lines, false), coloured); diff != "" {
		t.Error(diff)
	}
}

// wellBehaved fails the test where lines are wider than they may be, or would make a
// terminal do something.
func wellBehaved(t *testing.T, lines []line, columns int) {
	t.Helper()
	for _, l := range lines {
		text := l.text(false)
		if n := utf8.RuneCountInString(text); n > columns {
			t.Errorf("%d columns of %d: %q", n, columns, text)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != utf8.RuneError }); i >= 0 {
			t.Errorf("a character that is not printable: %q", text)
		}
		if text != strings.TrimRight(text, " ") {
			t.Errorf("it ends with a space: %q", text)
		}
	}
}

// Terminals differ in width; lines are never wider.
func TestStatus_Widths(t *testing.T) {
	for _, name := range []string{"well", "away", "hostile"} {
		d, _ := statusFile(t, name+".json")
		for given, want := range map[int]int{0: 100, 300: 100, 100: 100, 80: 80, 60: 60, 20: 60} {
			wellBehaved(t, statusLines(look{Document: d}, given), want)
		}
	}
}

// Whatever a relay answers is shown, or said to be no status document.
func FuzzStatusLines(f *testing.F) {
	for _, name := range []string{"older", "newer", "starting", "rates", "hostile"} { // the small ones
		text, err := os.ReadFile(filepath.Join("testdata", "status", name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := client.ReadDocument(text)
		if err != nil {
			return
		}
		before := d
		before.Now = d.Now.Add(-time.Second)
		for _, l := range []look{{Document: d}, {Document: d, rates: true, before: &before}} {
			wellBehaved(t, statusLines(l, 0), widest)
		}
	})
}
