package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	trafficRequestText = `{"fromDayUtc":"2026-11-29","toDayUtc":"2026-11-30","cursor":"c","limit":256}`
	bucketText         = `{"dayUtc":"2026-11-30","hostname":"a.example","nodeId":"node-a","requests":1,"bytesIn":2,"bytesOut":3,"connections":4,` +
		`"failures":{"connect":1,"handshake":0,"request":2}}`
	trafficPageText = `{"statistics":[` + bucketText + `],"nextCursor":"n"}`
)

// R75: a question names days that exist and are in order, a limit of 1 to 256 and a
// cursor of at most 5,634 bytes; each breach is refused by its path.
func TestR75_TrafficRequest(t *testing.T) {
	cursor := func(n int) string {
		return with(t, trafficRequestText, `"c"`, `"`+strings.Repeat("c", n)+`"`)
	}
	checkBodies(t, ReadTrafficRequest, []bodyCase{
		{"whole", trafficRequestText, nil},
		{"first page", `{"fromDayUtc":"2026-11-30","toDayUtc":"2026-11-30","limit":1}`, nil},
		{"missing", `{}`, []string{"fromDayUtc: is missing", "toDayUtc: is missing", "limit: is missing"}},
		{"null is not absent", with(t, trafficRequestText, `"c"`, "null"), []string{"cursor: is not a string"}},
		{"no such day", `{"fromDayUtc":"2026-13-45","toDayUtc":"2026-02-29","limit":1}`, []string{"fromDayUtc: is not a utc day", "toDayUtc: is not a utc day"}},
		{"no such day is not compared", `{"fromDayUtc":"2026-13-45","toDayUtc":"2026-11-30","limit":1}`, []string{"fromDayUtc: is not a utc day"}},
		{"backwards", `{"fromDayUtc":"2026-11-30","toDayUtc":"2026-11-29","limit":1}`, []string{"toDayUtc: is before fromDayUtc"}},
		{"limit", with(t, trafficRequestText, "256", "257"), []string{"limit: is not within 1 to 256"}},
		{"no limit", with(t, trafficRequestText, "256", "0"), []string{"limit: is not within 1 to 256"}},
		{"longest cursor", cursor(5634), nil},
		{"longer cursor", cursor(5635), []string{"cursor: is not 1 to 5634 bytes long"}},
		{"no cursor", cursor(0), []string{"cursor: is not 1 to 5634 bytes long"}},
		{"twice", with(t, trafficRequestText, `"limit"`, `"l\u0069mit":1,"limit"`), []string{"limit: is given twice"}},
		{"kinds", `{"fromDayUtc":20261130,"toDayUtc":null,"limit":"1"}`, []string{"fromDayUtc: is not a string", "toDayUtc: is not a string", "limit: is not a number"}},
	})
	checkExactKeys(t, trafficRequestText, nil, errorOf(ReadTrafficRequest))
}

// R75: a page of counters is read by its rules, each breach by its path; what a bucket
// holds besides is opaque.
func TestR75_TrafficPage(t *testing.T) {
	page := func(buckets int) string {
		return `{"statistics":[` + strings.TrimSuffix(strings.Repeat(bucketText+",", buckets), ",") + `]}`
	}
	cursor := func(n int) string {
		return with(t, trafficPageText, `"n"`, `"`+strings.Repeat("n", n)+`"`)
	}
	checkBodies(t, ReadTrafficPage, []bodyCase{
		{"whole", trafficPageText, nil},
		{"empty", `{"statistics":[]}`, nil},
		{"failures are opaque", with(t, trafficPageText, `{"connect":1,"handshake":0,"request":2}`, `[1.5]`), nil},
		{"failures under another name", with(t, trafficPageText, `"failures"`, `"backendFailures"`), nil},
		{"missing", `{}`, []string{"statistics: is missing"}},
		{"missing in a bucket", `{"statistics":[{}]}`, []string{"statistics[0].dayUtc: is missing", "statistics[0].hostname: is missing",
			"statistics[0].nodeId: is missing", "statistics[0].requests: is missing", "statistics[0].bytesIn: is missing",
			"statistics[0].bytesOut: is missing", "statistics[0].connections: is missing"}},
		{"of a later release", with(t, trafficPageText, `"nextCursor"`, `"more":true,"nextCursor"`), nil},
		{"twice", with(t, trafficPageText, `"nextCursor"`, `"st\u0061tistics":[],"nextCursor"`), []string{"statistics: is given twice"}},
		{"twice in a bucket", with(t, trafficPageText, `"hostname"`, `"d\u0061yUtc":"","hostname"`), []string{"statistics[0].dayUtc: is given twice"}},
		{"opaque twice in a bucket", with(t, trafficPageText, `"hostname"`, `"failures":1,"hostname"`), []string{"statistics[0]: gives an ignored member twice"}},
		{"rules", `{"statistics":[{"dayUtc":"2026-13-45","hostname":"","nodeId":"a.b","requests":-1,"bytesIn":-1,"bytesOut":-1,"connections":-1}],"nextCursor":""}`, []string{
			"statistics[0].dayUtc: is not a utc day", "statistics[0].hostname: is not a hostname", "statistics[0].nodeId: is not a node id",
			"statistics[0].requests: is not a count", "statistics[0].bytesIn: is not a count", "statistics[0].bytesOut: is not a count",
			"statistics[0].connections: is not a count", "nextCursor: is not 1 to 5634 bytes long"}},
		{"longest", page(256), nil},
		{"longer", page(257), []string{"statistics: has more than 256 elements"}},
		{"longer than is read", page(258), []string{"statistics: has more elements than are read"}},
		{"longest cursor", cursor(5634), nil},
		{"longer cursor", cursor(5635), []string{"nextCursor: is not 1 to 5634 bytes long"}},
	})
}

// R75: a page with more buckets than were asked for, other days, another node or too
// long a cursor is named as such.
func TestR75_TrafficPageAgainstItsRequest(t *testing.T) {
	bucket := func(day, node string) TrafficStatistics {
		return TrafficStatistics{DayUTC: day, Hostname: "h", NodeID: node}
	}
	request := TrafficRequest{FromDayUTC: "2026-11-29", ToDayUTC: "2026-11-30", Limit: 2}
	long, longest := strings.Repeat("n", 4097), strings.Repeat("n", 4096)
	for _, tc := range []struct {
		name string
		page TrafficPage
		want []string
	}{
		{"within", TrafficPage{[]TrafficStatistics{bucket("2026-11-29", "node-a"), bucket("2026-11-30", "node-a")}, &longest}, nil},
		{"empty", TrafficPage{}, nil},
		{"exceeding", TrafficPage{[]TrafficStatistics{bucket("2026-11-29", "node-a"), bucket("2026-11-29", "node-a"), bucket("2026-11-29", "node-a")}, nil},
			[]string{"statistics: has more elements than were asked for"}},
		{"other days, node and cursor", TrafficPage{[]TrafficStatistics{bucket("2026-11-28", "node-a"), bucket("2026-12-01", "node-b")}, &long}, []string{
			"statistics[0].dayUtc: is outside the days that were asked for", "statistics[1].dayUtc: is outside the days that were asked for",
			"statistics[1].nodeId: is not the node that was asked", "nextCursor: is longer than 4096 bytes"}},
	} {
		if diff := cmp.Diff(tc.want, tc.page.ValidateFor(request, "node-a")); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

func TestTrafficBucketIsHandedOnAsItCame(t *testing.T) {
	const odd = `{ "failures":{"request":1.50,"x":"\u00e9"},"requests":1,"bytesIn":2,"bytesOut":3,"connections":4,"nodeId":"n","hostname":"h","dayUtc":"2026-11-30" }`
	page, err := ReadTrafficPage([]byte(`{"nextCursor":"inner", "statistics" : [ ` + odd + ` , ` + odd + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	outer := TrafficCursor{"n", *page.NextCursor}.Text()
	page.NextCursor = &outer
	if got, want := string(page.AppendJSON(nil)), `{"statistics":[`+odd+`,`+odd+`],"nextCursor":"`+outer+`"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTrafficCursor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := TrafficCursor{drawNodeID(t, "node"), rapid.StringN(0, 40, MaximumIngressCursorBytes).Draw(t, "inner")}
		if got, ok := ParseTrafficCursor(want.Text()); !ok || got != want {
			t.Errorf("got %v, %v, want %v", got, ok, want)
		}
	})
	longest := TrafficCursor{strings.Repeat("a", 128), strings.Repeat("c", MaximumIngressCursorBytes)}
	if got, ok := ParseTrafficCursor(longest.Text()); !ok || got != longest || len(longest.Text()) != MaximumTrafficCursorBytes {
		t.Errorf("the longest cursor has %d bytes and reads as %v", len(longest.Text()), ok)
	}
	whole := TrafficCursor{"node-a", "inne"}.Text() // ends in a character with spare bits
	for _, s := range []string{
		"", "c", "!", whole + "=", whole + "\n", whole[:4] + "\n" + whole[4:], whole[:len(whole)-1] + "V", "bm9kZQ",
		TrafficCursor{"a.b", ""}.Text(), TrafficCursor{"", "x"}.Text(), TrafficCursor{"a", "\xff"}.Text(),
		TrafficCursor{"a", strings.Repeat("c", MaximumIngressCursorBytes+1)}.Text(),
		TrafficCursor{strings.Repeat("a", 129), ""}.Text(),
		strings.Repeat("A", MaximumTrafficCursorBytes+1),
	} {
		if got, ok := ParseTrafficCursor(s); ok || got != (TrafficCursor{}) {
			t.Errorf("%.40q: reads as %v", s, got)
		}
	}
}

func drawTrafficStatistics(t *rapid.T) TrafficStatistics {
	x := TrafficStatistics{
		DayUTC:   fmt.Sprintf("2026-%02d-%02d", rapid.IntRange(1, 12).Draw(t, "month"), rapid.IntRange(1, 28).Draw(t, "day")),
		Hostname: rapid.StringMatching(`[a-z*][a-z.]{0,20}`).Draw(t, "hostname"),
		NodeID:   drawNodeID(t, "node"),
		Requests: drawCount(t, "requests"), BytesIn: drawCount(t, "in"), BytesOut: drawCount(t, "out"), Connections: drawCount(t, "connections"),
	}
	x.Encoded = x.AppendJSON(nil)
	return x
}

func TestTrafficWritten(t *testing.T) {
	checkWritten(t, func(t *rapid.T) TrafficRequest {
		return TrafficRequest{"2026-01-01", fmt.Sprintf("2026-01-%02d", rapid.IntRange(1, 31).Draw(t, "day")),
			rapid.Ptr(rapid.StringN(1, 20, -1), true).Draw(t, "cursor"), rapid.Int64Range(1, 256).Draw(t, "limit")}
	}, ReadTrafficRequest)
	checkWritten(t, func(t *rapid.T) TrafficPage {
		return TrafficPage{rapid.SliceOfN(rapid.Custom(drawTrafficStatistics), 0, 5).Draw(t, "statistics"),
			rapid.Ptr(rapid.StringN(1, 20, -1), true).Draw(t, "cursor")}
	}, ReadTrafficPage)
}

func FuzzReadTrafficRequest(f *testing.F) {
	fuzzReader(f, ReadTrafficRequest, trafficRequestText, `{"fromDayUtc":"","toDayUtc":"","limit":0}`)
}

func FuzzReadTrafficPage(f *testing.F) {
	fuzzReader(f, ReadTrafficPage, trafficPageText, `{"statistics":[{}],"nextCursor":""}`)
}

func FuzzParseTrafficCursor(f *testing.F) {
	f.Add(TrafficCursor{"node-a", "inner"}.Text())
	f.Add("bm9kZS1hCg==")
	f.Fuzz(func(t *testing.T, s string) {
		if c, ok := ParseTrafficCursor(s); ok && c.Text() != s || ok && !IsNodeID(c.NodeID) {
			t.Errorf("%q reads as %v", s, c)
		}
	})
}
