package simulate

import (
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
)

// A table is either refused, with reasons that are bounded, or every hostname of it
// can be served.
func FuzzReadServedTable(f *testing.F) {
	ca, err := NewTLSAuthority(time.Now())
	if err != nil {
		f.Fatal(err)
	}
	certificate, err := ca.Issue("a.example")
	if err != nil {
		f.Fatal(err)
	}
	route := IngressRoute{"a.example", destinations{backend}, certificate, &BasicAuth{"u", "p"}}
	table, err := contract.NewRouteTable(1, 1, raws([]IngressRoute{route}), raws([]IngressPortRoute{{"tcp", 25, destinations{backend}}}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(tableAnswer(table)))
	f.Add([]byte(`{"table":null}`))
	f.Add([]byte(strings.Replace(tableAnswer(table), "a.example", "*.example", 1)))
	f.Fuzz(func(t *testing.T, body []byte) {
		table, err := readServedTable(body)
		if err != nil {
			if invalid, ok := err.(*contract.InvalidError); !ok || len(invalid.Reasons) == 0 || len(invalid.Reasons) > maximumReasons+1 {
				t.Errorf("refused with %v", err)
			}
			return
		}
		if table == nil {
			return
		}
		if len(table.routes) != len(table.Routes) {
			t.Errorf("%d of %d routes", len(table.routes), len(table.Routes))
		}
		for hostname, r := range table.routes {
			if r.certificate == nil || r.certificate.Leaf.VerifyHostname(hostname) != nil || hostname != strings.ToLower(hostname) {
				t.Errorf("%q cannot be served", hostname)
			}
		}
	})
}

// Only what was given is taken back.
func FuzzTrafficCursor(f *testing.F) {
	key := newCursorKey()
	request := contract.TrafficRequest{FromDayUTC: day1, ToDayUTC: day2}
	f.Add(key.text(bucketKey{day1, "a.example"}, request))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if place, ok := key.read(text, request); ok && key.text(place, request) != text {
			t.Errorf("%q is taken for another cursor", text)
		}
	})
}
