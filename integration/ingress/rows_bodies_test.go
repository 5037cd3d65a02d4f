package ingress_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/ingress"
)

// whole is a table in which every part is, for a test to change; its key is a secret.
func (c *cluster) whole(what string) string {
	c.t.Helper()
	return `{"revision":9,"issuedAt":1767225600000,"routes":[` +
		`{"hostname":"a.example","destinations":[{"address":"10.0.4.7","port":30080},{"address":"10.0.4.8","port":30080}],"certificate":{"chain":"C","privateKey":"` + c.Marker("key, "+what) + `"}},` +
		`{"hostname":"b.example","destinations":[{"address":"10.0.4.9","port":80}],"certificate":{"chain":"C"},"basicAuth":{"user":"u","password":"` + c.Marker("password, "+what) + `"}}],` +
		`"portRoutes":[{"transport":"tcp","port":5432,"destinations":[{"address":"10.0.4.9","port":15432}],"note":"` + c.Marker("note, "+what) + `"},{"transport":"udp","port":5432,"destinations":[]}]}`
}

// holds makes the relay hold a table that stays, and returns it with its ingress.
func (c *cluster) holds() (table string, h *hand) {
	c.t.Helper()
	h = c.ingress("node-a")
	table = c.odd(5, "app.example")
	c.pushed("the table that stays", table, 5)
	h.wantHint(5)
	return table, h
}

// R69: a table that breaks a rule is refused for named reasons, pushed as well as pulled,
// and the one that is held is served on. Key, password and whatever else a peer writes
// stand in no reason, and the rig finds them nowhere.
func TestR69_TablesThatBreakARule(t *testing.T) {
	c := start(t)
	held, h := c.holds()
	invalid := c.counted("relay_ingress_received_tables_total", "origin", "pushed", "outcome", "invalid")
	swap := func(old, with string) func(string) string {
		return func(table string) string { return strings.Replace(table, old, with, 1) }
	}
	const address, port = `"address":"10.0.4.8"`, `"port":30080},{`
	rows := []struct {
		says   string
		change func(table string) string // % becomes a secret of its own
	}{
		{"table.revision: is missing", swap(`"revision":9,`, ``)},
		{"table.revision: is not a counter", swap(`:9,`, `:0,`)},
		{"table.revision: is not a number", swap(`:9,`, `:"%",`)},
		{"table.issuedAt: is not a time in unix milliseconds", swap(`1767225600000`, `-1`)},
		{"table.routes: is not an array", swap(`"routes":[`, `"routes":"%","x":[`)},
		{"table.portRoutes: is missing", swap(`"portRoutes"`, `"%"`)},
		{"table.routes[0]: is not an object", swap(`"routes":[{`, `"routes":["%",{`)},
		{"table.routes[0].hostname: is missing", swap(`"hostname"`, `"%"`)},
		{"table.routes[0].hostname: is not a string", swap(`"a.example"`, `["%"]`)},
		{"table.routes[1].hostname: is not a hostname", swap(`"b.example"`, `"% %"`)},
		{"table.routes[1].hostname: is not a hostname", swap(`"b.example"`, `"`+strings.Repeat("%", 4)+`"`)},
		{"table.routes[1].hostname: repeats the hostname of an earlier route", swap(`"b.example"`, `"A.example"`)},
		{"table.routes[0].destinations: is missing", swap(`"destinations"`, `"%"`)},
		{"table.routes[0].destinations: is not an array", swap(`"destinations":[`, `"destinations":"%","x":[`)},
		{"table.routes[0].destinations[1].address: is not a unicast ipv4 literal", swap(address, `"address":"%"`)},
		{"table.routes[0].destinations[1].address: is not a unicast ipv4 literal", swap(address, `"address":"224.0.0.1"`)},
		{"table.routes[0].destinations[1].address: is not a unicast ipv4 literal", swap(address, `"address":"10.0.4.08"`)},
		{"table.routes[0].destinations[1].address: is not a unicast ipv4 literal", swap(address, `"address":"fd00::1"`)},
		{"table.routes[0].destinations[0].port: is not a port", swap(port, `"port":0},{`)},
		{"table.routes[0].destinations[0].port: is not a port", swap(port, `"port":65536},{`)},
		{"table.routes[0].destinations[0].port: is not a number", swap(port, `"port":"%"},{`)},
		{"table.portRoutes[0].transport: is neither tcp nor udp", swap(`"tcp"`, `"%"`)},
		{"table.portRoutes[0].port: is not a port", swap(`:5432`, `:70000`)},
		{"table.portRoutes[1].port: repeats the transport and port of an earlier route", swap(`"udp"`, `"tcp"`)},
		{"table: unknown member", swap(`"revision"`, `"&":"%","revision"`)},
		{"table.routes[0].destinations[1]: unknown member", swap(address, address+`,"&":"%"`)},
		{"table: is not an object", func(string) string { return `"%"` }},
		{"table: is not an object", func(string) string { return `null` }},
	}
	for _, row := range rows {
		marker := c.Marker("text, " + row.says)
		// & is as long as a name may be that is repeated where nothing is secret.
		broken := strings.NewReplacer("%", marker, "&", "x"+marker[:39]).Replace(row.change(c.whole(row.says)))
		_, err := c.push(`{"table":` + broken + `}`)
		c.wantRefused(row.says, err, tableInvalid, row.says)
	}
	h.wantTable("after all of them", held)
	h.wantNoHint("after all of them")

	pulled := 0
	for _, row := range rows {
		if !strings.Contains(row.says, "[0]") || pulled == 3 {
			continue
		}
		pulled++
		c.pulls(`{"table":`+strings.ReplaceAll(row.change(c.whole(row.says)), "%", c.Marker("pulled text"))+`}`, "invalid")
	}
	h.wantTable("after those that were pulled", held)
	events := map[string]int{}
	for _, e := range c.Events(0) {
		if e.Type == string(ingress.RouteTableRefused) {
			events[e.Text("outcome")]++
		}
	}
	if events["pushed"] != len(rows) || events["pulled"] != pulled {
		t.Errorf("the events tell of %v", events)
	}
	if got := c.counted("relay_ingress_received_tables_total", "origin", "pushed", "outcome", "invalid") - invalid; got != float64(len(rows)) {
		t.Errorf("%v pushed tables are counted as invalid, want %d", got, len(rows))
	}
	c.pushed("a table that breaks none", c.whole("the right one"), 9)
	c.AssertNoMarkers()
}

// R03: of Cloudly, what is no frame is dropped and counted and costs neither the session
// nor the table; of an ingress it costs that ingress's socket.
func TestR03_MalformedTablesAndIngresses(t *testing.T) {
	c := start(t)
	held, h := c.holds()
	good := `{"table":` + c.whole("malformed") + `}`
	behind := func(text, insert string) string { return strings.Replace(good, text, text+insert, 1) }
	noFrame := map[string]string{
		"no end":               good[:len(good)-1],
		"trailing data":        good + `} {`,
		"a number that isn't":  behind(`"revision":`, `0`),
		"bad UTF-8 far inside": behind(`"privateKey":"`, "\xff"),
		"too deep":             behind(`"certificate":{`, `"x":`+strings.Repeat(`[`, 61)+strings.Repeat(`]`, 61)+`,`),
	}
	before := c.counted("relay_cloudly_carrier_events_total", "event", "malformed")
	for what, body := range noFrame {
		ctx, cancel := context.WithCancel(c.Soon())
		answered := make(chan error, 1)
		go func() { _, err := c.Cloudly.Call(ctx, pushing, []byte(body)); answered <- err }()
		if err := c.Cloudly.Wait(c.Soon(), what, func() bool {
			sent := c.Cloudly.Frames().All()
			return strings.Contains(string(sent[len(sent)-1].Text), body)
		}); err != nil {
			t.Fatal(err)
		}
		c.pushed("behind it, on the same socket", plainTable(1), 5)
		cancel()
		if err := <-answered; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	c.Eventually("all of it to be counted", func() error {
		if got := c.counted("relay_cloudly_carrier_events_total", "event", "malformed") - before; got != float64(len(noFrame)) {
			return fmt.Errorf("%v are, of %d", got, len(noFrame))
		}
		return nil
	})
	for what, body := range map[string]string{
		"a name twice":             strings.Replace(good, `{`, `{"table":null,`, 1),
		"a name twice in a table":  behind(`"revision":9,`, `"revision":9,`),
		"a name twice, in escapes": behind(`"revision":9,`, `"r\u0065vision":8,`),
		"a name twice in a target": behind(`"port":30080`, `,"port":1`),
		"half a surrogate":         behind(`"a.example`, `\ud800`),
		"nothing":                  `{}`,
		"a list":                   `[` + good + `]`,
		"__proto__":                behind(`{`, `"__proto__":{},`),
		"another case":             strings.Replace(good, `"revision"`, `"Revision"`, 1),
	} {
		if answer, err := c.push(body); err == nil {
			t.Errorf("%s: answered %s", what, answer)
		} else {
			c.wantUnquoted(what, heardIn(err))
		}
	}
	h.wantTable("after all of them", held)
	h.wantNoHint("after all of them")
	if n := c.Upstream.Accepted(); n != 1 {
		t.Errorf("%d connections to cloudly", n)
	}

	other := c.ingress("node-b")
	for what, text := range map[string]string{
		"a name twice":  `{"method":"` + asking + `","method":"` + asking + `"}`,
		"trailing data": `{"method":"` + asking + `"} {}`,
		"bad UTF-8":     "{\"method\":\"" + asking + "\",\"request\":{\"x\":\"\xff\"}}",
		"depth 65":      `{"method":"m","request":` + strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64) + `}`,
	} {
		other.Send(text)
		if code, reason := other.WaitClose(); code != 1007 {
			t.Fatalf("%s of an ingress: closed with %d %q", what, code, reason)
		}
		other = c.ingress("node-b")
	}
	other.SendBinary([]byte(`{}`))
	if code, _ := other.WaitClose(); code != 1003 {
		t.Errorf("a binary message of an ingress: closed with %d", code)
	}
	h.wantTable("after other sockets were closed", held)
}

// R04: a member more is refused, in each body that the relay reads for itself. Where the
// body bears a secret not even the member's name is repeated.
func TestR04_AMemberMore(t *testing.T) {
	c := start(t)
	_, h := c.holds()
	stranger := c.byHand()
	const more = `"zzForeign":true,`
	for what, body := range map[string]string{
		"":              strings.Replace(c.registration("node-b"), `{`, `{`+more, 1),
		"in the offer":  strings.Replace(c.registration("node-b"), `"protocol":{`, `"protocol":{`+more, 1),
		"a session":     strings.Replace(c.registration("node-b"), `{`, `{"session":{"nodeId":"node-b"},`, 1),
		"no bearer":     strings.Replace(c.registration("node-b"), `"bearer"`, `"zzForeign"`, 1),
		"an empty body": `{}`,
	} {
		_, err := stranger.ask(registering, body)
		c.wantOwn("registration, "+what, err, contract.IngressRegistrationInvalid, "")
		if err != nil && strings.Contains(heardIn(err), "zzForeign") {
			t.Errorf("registration, %s: the name is repeated: %v", what, err)
		}
	}
	for what, body := range map[string]string{
		`body: unknown member "zzForeign"`: `{"zzForeign":true,"knownRevision":5}`,
		"knownRevision: is missing":        `{}`,
		"knownRevision: is not a counter":  `{"knownRevision":0}`,
		"knownRevision: is not a number":   `{"knownRevision":"5"}`,
		"knownRevision: is not a plain":    `{"knownRevision":5.0}`,
	} {
		_, err := h.ask(asking, body)
		c.wantRefused("the table: "+what, err, notValid, what)
	}
	_, err := c.push(`{"zzForeign":true,"table":` + plainTable(6) + `}`)
	c.wantRefused("a push with a member more", err, tableInvalid, "body: unknown member")
	if err != nil && strings.Contains(heardIn(err), "zzForeign") {
		t.Errorf("a push with a member more: the name is repeated: %v", err)
	}
	if got := len(c.Cloudly.Frames().Received(registering)); got != 1 {
		t.Errorf("cloudly received %d registrations, want that of node-a alone", got)
	}
	if got := c.revision(); got != 5 {
		t.Errorf("held is %d", got)
	}
}

// R05: a revision is a plain safe integer. The largest there is is taken, and nothing is
// above it.
func TestR05_RevisionsArePlainSafeIntegers(t *testing.T) {
	c := start(t)
	_, h := c.holds()
	for _, number := range []string{`6.0`, `6e0`, `60e-1`, `-6`, `-0`, `6.5`, `9007199254740992`, `1E400`} {
		_, err := c.push(`{"table":` + strings.Replace(plainTable(6), `:6,`, `:`+number+`,`, 1) + `}`)
		c.wantRefused("revision "+number, err, tableInvalid, "table.revision: ")
		_, err = c.push(`{"table":` + strings.Replace(plainTable(6), `1767225600000`, number, 1) + `}`)
		c.wantRefused("issued at "+number, err, tableInvalid, "table.issuedAt: ")
	}
	const highest = contract.MaximumSafeInteger
	c.pushed("2^53-1", plainTable(highest), highest)
	h.wantHint(highest)
	h.wantTable("2^53-1", plainTable(highest))
	c.pushed("a lower one", plainTable(highest-1), highest)
}
