package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	httpRouteText = `{"hostname":"a.example","destinations":[{"address":"10.0.4.7","port":30080}],` +
		`"certificate":{"privateKey":"KEY","chain":"C","chain":"D"},"basicAuth":{"password":"PASS"}}`
	portRouteText  = `{"transport":"udp","port":53,"destinations":[{"address":"10.0.4.8","port":30053}],"x":{"y":1}}`
	routeTableText = `{"revision":5,"issuedAt":1767225600000,"routes":[` + httpRouteText + `],"portRoutes":[` + portRouteText + `]}`
)

func TestRouteTable(t *testing.T) {
	const routes, ports = `"routes":[` + httpRouteText + `]`, `"portRoutes":[` + portRouteText + `]`
	route := func(members string) string { return with(t, routeTableText, httpRouteText, members) }
	port := func(members string) string { return with(t, routeTableText, portRouteText, members) }
	const least = `{"hostname":"a","destinations":[]}`
	checkBodies(t, ReadRouteTable, []bodyCase{
		{"whole", routeTableText, nil},
		{"nothing in it", `{"revision":1,"issuedAt":0,"routes":[],"portRoutes":[]}`, nil},
		{"opaque members may be anything", route(`{"hostname":"a","destinations":[],"x":"\ud800","x":1e9,"y":{"z":1,"z":2}}`), nil},
		{"port route says nothing that is read", port(`{}`), nil},
		{"missing", `{}`, []string{"revision: is missing", "issuedAt: is missing", "routes: is missing", "portRoutes: is missing"}},
		{"missing in a route", route(`{}`), []string{"routes[0].hostname: is missing", "routes[0].destinations: is missing"}},
		{"missing in destinations", strings.ReplaceAll(routeTableText, `"port":30`, `"prt":30`), []string{
			"routes[0].destinations[0]: unknown member", "routes[0].destinations[0].port: is missing",
			"portRoutes[0].destinations[0]: unknown member", "portRoutes[0].destinations[0].port: is missing"}},
		{"kinds", `{"revision":"5","issuedAt":null,"routes":{},"portRoutes":1}`, []string{"revision: is not a number",
			"issuedAt: is not a number", "routes: is not an array", "portRoutes: is not an array"}},
		{"kinds inside", `{"revision":5,"issuedAt":1,"routes":[{"hostname":1,"destinations":[1]}],"portRoutes":[7,{"transport":1,"port":"1","destinations":null}]}`,
			[]string{"routes[0].hostname: is not a string", "routes[0].destinations[0]: is not an object", "portRoutes[0]: is not an object",
				"portRoutes[1].transport: is not a string", "portRoutes[1].port: is not a number", "portRoutes[1].destinations: is not an array"}},
		{"no object", `[]`, []string{"body: is not an object"}},
		{"twice", with(t, routeTableText, routes, routes+`,"\u0072outes":[]`), []string{"routes: is given twice"}},
		{"twice in a route", route(`{"hostname":"a","h\u006fstname":"b","destinations":[]}`), []string{"routes[0].hostname: is given twice"}},
		{"revision", with(t, routeTableText, `"revision":5`, `"revision":0`), []string{"revision: is not a counter"}},
		{"issued before time", with(t, routeTableText, `"issuedAt":1767225600000`, `"issuedAt":-1`), []string{"issuedAt: is not a time in unix milliseconds"}},
		{"no hostname", route(`{"hostname":"","destinations":[]}`), []string{"routes[0].hostname: is not a hostname"}},
		{"longest hostname", route(`{"hostname":"` + strings.Repeat("a", 253) + `","destinations":[]}`), nil},
		{"longer hostname", route(`{"hostname":"` + strings.Repeat("a", 254) + `","destinations":[]}`), []string{"routes[0].hostname: is not a hostname"}},
		{"two routes for one hostname", route(least + `,{"hostname":"b","destinations":[]},` + least), []string{"routes[2].hostname: repeats the hostname of an earlier route"}},
		{"in another case", route(least + `,{"hostname":"A","destinations":[]}`), []string{"routes[1].hostname: repeats the hostname of an earlier route"}},
		{"destinations", route(`{"hostname":"a","destinations":[{"address":"127.0.0.1","port":1},{"address":"0.0.0.0","port":65535},{"address":"224.0.0.1","port":0},` +
			`{"address":"255.255.255.255","port":65536},{"address":"::1","port":1},{"address":"10.0.0.01","port":1},{"address":"host","port":1}]}`), []string{
			"routes[0].destinations[1].address: is not a unicast ipv4 literal",
			"routes[0].destinations[2].address: is not a unicast ipv4 literal", "routes[0].destinations[2].port: is not a port",
			"routes[0].destinations[3].address: is not a unicast ipv4 literal", "routes[0].destinations[3].port: is not a port",
			"routes[0].destinations[4].address: is not a unicast ipv4 literal", "routes[0].destinations[5].address: is not a unicast ipv4 literal",
			"routes[0].destinations[6].address: is not a unicast ipv4 literal"}},
		{"port routes", port(`{"transport":"tcp","port":53},{"transport":"udp","port":53},{"port":53},{"port":53},{"transport":"udp"},{"transport":"udp","port":53}`),
			[]string{"portRoutes[5].port: repeats the transport and port of an earlier route"}},
		{"port route's rules", port(`{"transport":"TCP","port":0,"destinations":[{"address":"","port":1}]}`), []string{
			"portRoutes[0].transport: is neither tcp nor udp", "portRoutes[0].port: is not a port",
			"portRoutes[0].destinations[0].address: is not a unicast ipv4 literal"}},
		{"unknown port route", with(t, routeTableText, ports, ports+`,"more":1`), []string{"body: unknown member"}},
	})
}

func TestRouteTableBounds(t *testing.T) {
	sized := func(n int) string {
		const front, back = `{"revision":1,"issuedAt":0,"routes":[{"hostname":"a","destinations":[],"x":"`, `"}],"portRoutes":[]}`
		return front + strings.Repeat("k", n-len(front)-len(back)) + back
	}
	destinations := func(n int) string {
		return `{"revision":1,"issuedAt":0,"routes":[{"hostname":"a","destinations":[` +
			strings.Repeat(`{"address":"10.0.0.1","port":1},`, n-1) + `{"address":"10.0.0.1","port":1}]}],"portRoutes":[]}`
	}
	list := func(routes, ports int) string {
		var b strings.Builder
		b.WriteString(`{"revision":1,"issuedAt":0,"routes":[`)
		for i := range routes {
			fmt.Fprintf(&b, `%s{"hostname":"%d","destinations":[]}`, ","[:min(i, 1)], i)
		}
		b.WriteString(`],"portRoutes":[` + strings.TrimSuffix(strings.Repeat(`{},`, ports), ",") + `]}`)
		return b.String()
	}
	for _, tc := range []struct {
		name, body string
		want       []string
	}{
		{"15 MiB", sized(15 << 20), nil},
		{"one byte more", sized(15<<20 + 1), []string{"body: is larger than 15 MiB encoded"}},
		{"destinations", destinations(1024), nil},
		{"one destination more", destinations(1025), []string{"routes[0].destinations: has more elements than are read"}},
		{"routes", list(65536, 131070), nil},
		{"one route more", list(65537, 131071), []string{"routes: has more elements than are read", "portRoutes: has more elements than are read"}},
	} {
		_, err := ReadRouteTable([]byte(tc.body))
		if diff := cmp.Diff(tc.want, reasonsIn(t, err)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

// R69: of a table that breaks any of the rules, and whose every value and unknown name
// is a marker, no reason quotes one.
func TestR69_RouteTableReasonsQuoteNothing(t *testing.T) {
	const marker = "markedsecret"
	secrets := fmt.Sprintf(`"certificate":{"privateKey":%[1]q,%[1]q:%[1]q},"basicAuth":{"user":%[1]q,"password":%[1]q},%[1]q:%[1]q`, marker)
	good := `{"hostname":"` + marker + `","destinations":[{"address":"10.0.0.1","port":1}],` + secrets + `}`
	goodPort := `{"transport":"tcp","port":1,` + secrets + `}`
	body := func(revision, routes, ports, more string) string {
		return `{"revision":` + revision + `,"issuedAt":1,"routes":[` + routes + `],"portRoutes":[` + ports + `]` + more + `}`
	}
	if _, err := ReadRouteTable([]byte(body("1", good, goodPort, ""))); err != nil {
		t.Fatal(err)
	}
	quoted := `"` + marker + `"`
	for _, bad := range []string{
		body(quoted, good, goodPort, ""),
		body("0", good, goodPort, ""),
		body("1e"+marker, good, goodPort, ""),
		body("1", good+","+good, goodPort, ""),
		body("1", quoted, quoted, ""),
		body("1", good, goodPort+","+goodPort, ""),
		body("1", good, goodPort, `,`+quoted+`:`+quoted),
		body("1", good, goodPort, `,"routes":`+quoted),
		body("1", good, goodPort, `,"\ud800`+marker+`":1`),
		body("1", `{"hostname":"`+marker+` `+marker+`","destinations":[{"address":`+quoted+`,"port":0,`+quoted+`:1}],`+secrets+`}`, "", ""),
		body("1", `{"hostname":["`+marker+`"],"destinations":`+quoted+`,`+secrets+`}`, `{"transport":`+quoted+`,"port":`+quoted+`}`, ""),
		body("1", `{"hostname":"a","destinations":[{"address":`+quoted+`,"port":99999}],`+secrets+`}`, `{"transport":`+quoted+`,"port":99999}`, ""),
		body("1", good, goodPort, "")[:200],
		body("1", good, goodPort, "") + marker,
		body("1", good, "{"+secrets+`,"`+marker+"\xff\"}", ""),
		body("1", good, strings.Repeat("[", 70)+quoted+strings.Repeat("]", 70), ""),
	} {
		for _, read := range []func(string) error{
			func(b string) error { _, err := ReadRouteTable([]byte(b)); return err },
			func(b string) error {
				_, err := ReadPushRouteTableRequest([]byte(`{"table":` + b + `}`))
				return err
			},
			func(b string) error {
				_, err := ReadRouteTableAnswer(MethodGetRouteTable, []byte(`{"table":`+b+`}`))
				return err
			},
		} {
			err := read(bad)
			reasons := reasonsIn(t, err)
			if len(reasons) == 0 || strings.Contains(strings.Join(reasons, "\n")+err.Error(), marker) {
				t.Errorf("%s: %q", bad, reasons)
			}
		}
	}
}

func TestRouteTablePrintsNoSecret(t *testing.T) {
	table, err := ReadRouteTable([]byte(routeTableText))
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		shown := fmt.Sprintf(verb, PushRouteTableRequest{table})
		if strings.Contains(shown, "KEY") || strings.Contains(shown, "PASS") || strings.Contains(shown, fmt.Sprintf("%x", "PASS")) {
			t.Errorf("%s shows %s", verb, shown)
		}
	}
}

func TestNewRouteTable(t *testing.T) {
	got, err := NewRouteTable(5, 1767225600000, []Raw{Raw(httpRouteText)}, []Raw{Raw(portRouteText)})
	if err != nil {
		t.Fatal(err)
	}
	udp, port := "udp", int64(53)
	want := RouteTable{Revision: 5, IssuedAt: 1767225600000,
		Routes:     []HTTPRoute{{"a.example", []Destination{{"10.0.4.7", 30080}}}},
		PortRoutes: []PortRoute{{&udp, &port, []Destination{{"10.0.4.8", 30053}}}},
		Encoded:    Raw(routeTableText)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, err = NewRouteTable(0, -1, []Raw{Raw(`{"hostname":"a"}`)}, nil)
	if diff := cmp.Diff([]string{"routes[0].destinations: is missing"}, reasonsIn(t, err)); diff != "" {
		t.Error(diff)
	}
}

// drawOpaque draws a value that passes as the bytes that came, odd ones included.
func drawOpaque(t *rapid.T, label string) Raw {
	return Raw(rapid.SampledFrom([]string{`{}`, `[]`, `null`, `true`, `""`, `-0`, `1.50e+3`, `12345678901234567890`,
		`"\ud800\u0041"`, `"é \u00e9 "`, `{"a":1,"a":{"b" : [ ]}}`, "[1,\n\t2]", `{"b":{"__proto__":null},"a":[[[]]]}`}).Draw(t, label))
}

// drawPlain draws a value that is held to design O1.
func drawPlain(t *rapid.T, label string) Raw {
	return Raw(rapid.SampledFrom([]string{`{}`, `[]`, `null`, `true`, `"\u0041"`, `1.50e+3`, `{"b" : [ 1 , {"a":1}] }`}).Draw(t, label))
}

func drawDestinations(t *rapid.T) string {
	octet, port := rapid.IntRange(0, 255), rapid.IntRange(1, 65535)
	var all []string
	for range rapid.IntRange(0, 3).Draw(t, "destinations") {
		all = append(all, fmt.Sprintf(`{"address":"10.%d.%d.%d","port":%d}`,
			octet.Draw(t, "octet"), octet.Draw(t, "octet"), octet.Draw(t, "octet"), port.Draw(t, "port")))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// drawRouteTable composes a table from routes whose other members are arbitrary.
func drawRouteTable(t *rapid.T) RouteTable {
	var routes, ports []Raw
	for i := range rapid.IntRange(0, 4).Draw(t, "routes") {
		routes = append(routes, Raw(fmt.Sprintf(`{"secret": %s,"hostname":"h%d" ,"destinations":%s}`, string(drawOpaque(t, "opaque")), i, drawDestinations(t))))
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "ports") {
		ports = append(ports, Raw(fmt.Sprintf(`{"port":%d,"transport":"tcp","opaque":%s,"destinations":%s}`, i+1, string(drawOpaque(t, "opaque")), drawDestinations(t))))
	}
	table, err := NewRouteTable(drawCounter(t, "revision"), drawCount(t, "issuedAt"), routes, ports)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestRouteTableIsKeptAsItCame(t *testing.T) {
	checkWritten(t, drawRouteTable, ReadRouteTable)
	const spaced = " { \"issuedAt\" : 1 ,\r\n\"portRoutes\":[ ], \"routes\" :[]\t, \"revision\":7}"
	answer, err := ReadRouteTableAnswer(MethodGetRouteTable, []byte(`{ "table" :`+spaced+` } `))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(answer.AppendJSON(nil)), `{"table":`+strings.TrimSpace(spaced)+`}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzReadRouteTable(f *testing.F) {
	fuzzReader(f, ReadRouteTable, routeTableText, `{"revision":1,"issuedAt":0,"routes":[],"portRoutes":[]}`,
		`{"revision":1,"issuedAt":0,"routes":[{"hostname":"A","destinations":[]},{"hostname":"a","destinations":[{"address":"::","port":-0}]}],"portRoutes":[{"port":null}]}`)
}
