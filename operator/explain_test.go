package operator

import (
	"net/netip"
	"strings"
	"testing"

	"serve.zone/relay/typedsocket/carriertest"
)

// explaining is a hub that explains every packet alike.
func explaining(asked *[]netip.Addr) func(*Config) {
	return func(c *Config) {
		c.Explain = func(from, to netip.Addr) Explanation {
			*asked = append(*asked, from, to)
			return Explanation{
				Admitted: true, Action: "relay", Revision: 3, Sentence: "It is relayed.",
				From: End{Address: from.String(), Node: "node-a", Prefix: "10.0.0.0/24", Domain: "web", Connected: true},
				To:   End{Address: to.String()},
			}
		}
	}
}

// The members are API: relay explain --json shows them.
func TestExplain(t *testing.T) {
	const want = `{"admitted":true,"action":"relay","reason":"","revision":3,` +
		`"from":{"address":"10.0.0.1","node":"node-a","prefix":"10.0.0.0/24","domain":"web","connected":true},` +
		`"to":{"address":"fd00::1","node":"","prefix":"","domain":"","connected":false},` +
		`"suspended":false,"sentence":"It is relayed."}` + "\n"
	carriertest.Bubble(t, func(t *testing.T) {
		var asked []netip.Addr
		r := newRig(t, explaining(&asked))
		got := r.get("/explain?from=10.0.0.1&to=fd00::1&more=ignored")
		if got.status != 200 || got.header.Get("Content-Type") != "application/json" || got.body != want {
			t.Errorf("%d %s", got.status, got.body)
		}
		wantSecured(t, got)
		if r.count(routeExplain, served) != 1 || len(asked) != 2 || asked[0].String() != "10.0.0.1" || asked[1].String() != "fd00::1" {
			t.Errorf("asked for %v", asked)
		}
	})
}

// It is for this machine alone, whatever a peer says of itself, and nothing is asked for
// anybody else; with or without a hub.
func TestExplain_IsForThisMachine(t *testing.T) {
	const far, foreign = "explanations are for peers with a loopback address\n", "explanations are not for pages of other sites\n"
	for _, test := range []struct {
		name   string
		peer   netip.AddrPort
		header string
		body   string // of a refusal, empty for none
	}{
		{"this machine", local, "X-Y: z", ""},
		{"this machine by IPv6", netip.MustParseAddrPort("[::1]:40001"), "X-Y: z", ""},
		{"a page of ours", local, "Sec-Fetch-Site: same-origin", ""},
		{"another machine", remote, "X-Y: z", far},
		{"another machine that says otherwise", remote, "X-Forwarded-For: 127.0.0.1", far},
		{"a page of another site", local, "Sec-Fetch-Site: cross-site", foreign},
	} {
		t.Run(test.name, func(t *testing.T) {
			carriertest.Bubble(t, func(t *testing.T) {
				var asked []netip.Addr
				with, without := newRig(t, explaining(&asked)), newRig(t)
				status := 200
				if test.body != "" {
					status = 403
				}
				if got := with.do(test.peer, "GET /explain?from=10.0.0.1&to=10.1.0.1", test.header); got.status != status || test.body != "" && got.body != test.body {
					t.Errorf("%d %q", got.status, got.body)
				}
				if (len(asked) > 0) != (test.body == "") {
					t.Errorf("asked for %v", asked)
				}
				if test.body == "" {
					return
				}
				for _, target := range []string{"/explain?from=10.0.0.1&to=10.1.0.1", "/explain", "/explain?%zz"} {
					if got := without.do(test.peer, "GET "+target, test.header); got.status != 403 || got.body != test.body {
						t.Errorf("%s without a hub: %d %q", target, got.status, got.body)
					}
				}
				if with.count(routeExplain, forbidden) != 1 || without.count(routeExplain, forbidden) != 3 {
					t.Error("not counted")
				}
			})
		})
	}
}

// A hub that makes a mistake costs its answer alone.
func TestExplain_Panic(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Explain = func(netip.Addr, netip.Addr) Explanation { panic("5ec2e7") } })
		got := r.get("/explain?from=10.0.0.1&to=10.1.0.1")
		if got.status != 500 || strings.Contains(got.body+r.log.String(), "5ec2e7") || r.count(routeExplain, broken) != 1 {
			t.Errorf("%d %s\n%s", got.status, got.body, r.log)
		}
		if again := r.get("/livez"); again.status != 200 {
			t.Errorf("and then: %d", again.status)
		}
	})
}
