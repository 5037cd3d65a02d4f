package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// brokenList is a value whose elements have rules.
type brokenList []Reference

func (x brokenList) judge(v *verdict) { inEach(v, "refs", x) }

func TestVerdictNamesMemberAndRule(t *testing.T) {
	for want, judge := range map[string]func(*verdict){
		"m: is not a canonical identifier":           func(v *verdict) { v.identifier("m", ":x") },
		"m: is not a node id":                        func(v *verdict) { v.nodeID("m", "a.b") },
		"m: is not a digest":                         func(v *verdict) { v.digest("m", "") },
		"m: is not a bare sha-256":                   func(v *verdict) { v.sha256("m", "") },
		"m: is not a counter":                        func(v *verdict) { v.counter("m", 0) },
		"m: is not a count":                          func(v *verdict) { v.count("m", -1) },
		"m: is not a port":                           func(v *verdict) { v.port("m", 65536) },
		"m: is not a time in unix milliseconds":      func(v *verdict) { v.unixMilliseconds("m", -1) },
		"m: is not a utc day":                        func(v *verdict) { v.utcDay("m", "2026-13-45") },
		"m: is not a canonical noise key":            func(v *verdict) { v.noiseKey("m", "") },
		"m: is not a canonical ipv4 literal":         func(v *verdict) { v.ipv4("m", "::1") },
		"m: is not a canonical ipv4 cidr":            func(v *verdict) { v.ipv4Prefix("m", "10.0.0.1/8") },
		"m: is a loopback address":                   func(v *verdict) { v.listenAddress("m", "127.0.0.1") },
		"m: is not a policy domain":                  func(v *verdict) { v.policyDomain("m", "") },
		"m: is not a release version":                func(v *verdict) { v.releaseVersion("m", "1.2") },
		"m: is not a canonical https origin":         func(v *verdict) { v.relayOrigin("m", "http://h") },
		"m: is not a canonical http or https origin": func(v *verdict) { v.httpOrigin("m", "ftp://h") },
		"a.b[7].m: breaks it": func(v *verdict) {
			v.enter("a")
			v.enter("b")
			v.enterIndex(7)
			v.require(true, "m", "holds")
			v.require(false, "m", "breaks it")
		},
		"body: breaks it":                func(v *verdict) { v.require(false, "", "breaks it") },
		"x.generation: is not a counter": func(v *verdict) { v.in("x", Reference{"a", 0, digestOfNothing}) },
		"refs[1].id: is not a canonical identifier": func(v *verdict) {
			brokenList{{"a", 1, digestOfNothing}, {"-a", 1, digestOfNothing}}.judge(v)
		},
	} {
		if diff := cmp.Diff([]string{want}, reasonsOf(judge)); diff != "" {
			t.Error(diff)
		}
	}
	if reasons := reasonsOf(func(v *verdict) {
		v.identifier("m", "a")
		v.nodeID("m", "-a")
		v.counter("m", 1)
		v.count("m", 0)
		v.port("m", 1)
		v.unixMilliseconds("m", 0)
		v.utcDay("m", "2026-01-31")
		v.ipv4("m", "0.0.0.0")
		v.ipv4Prefix("m", "10.0.0.0/8")
		v.listenAddress("m", "10.0.4.7")
		v.policyDomain("m", "a")
		v.releaseVersion("m", "1.2.3")
		v.relayOrigin("m", "https://h")
		v.httpOrigin("m", "http://h")
		v.in("x", Reference{"a", 1, digestOfNothing})
	}); reasons != nil {
		t.Errorf("valid values are refused: %q", reasons)
	}
}

const digestOfNothing = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestReference(t *testing.T) {
	reference := Reference{"a:b", 2, digestOfNothing}
	body := reference.AppendJSON(nil)
	if got, want := string(body), `{"id":"a:b","generation":2,"digest":"`+digestOfNothing+`"}`; got != want {
		t.Errorf("wrote %s", got)
	}
	if got, err := readAs[Reference]("reference", body, 0); got != reference || err != nil {
		t.Errorf("read %+v, %v", got, err)
	}
	want := []string{"id: is not a canonical identifier", "generation: is not a counter", "digest: is not a digest"}
	if diff := cmp.Diff(want, Reference{}.Validate()); diff != "" {
		t.Error(diff)
	}
}

func TestEmptyBody(t *testing.T) {
	body := Empty{}.AppendJSON(nil)
	if string(body) != "{}" {
		t.Errorf("wrote %s", body)
	}
	if _, err := ReadEmpty("nothing", body); err != nil {
		t.Error(err)
	}
	for body, want := range map[string]string{
		"":             "invalid nothing: body: is not well-formed json",
		"null":         "invalid nothing: body: is not an object",
		"[]":           "invalid nothing: body: is not an object",
		`{"a":1}`:      `invalid nothing: body: unknown member "a"`,
		"{} {}":        "invalid nothing: body: has data after its value",
		"{}\x00":       "invalid nothing: body: has data after its value",
		"{\"a\":\x80}": "invalid nothing: body: is not valid utf-8",
	} {
		if _, err := ReadEmpty("nothing", []byte(body)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", body, err, want)
		}
	}
}
