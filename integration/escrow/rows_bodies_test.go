package escrow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// R01: node ids are judged by the node rule, in a hold as everywhere.
func TestR01_NodeIDsOfAHold(t *testing.T) {
	c := start(t)
	ids := []string{"-abc", "_abc", strings.Repeat("a", 128)}
	nodes := map[string]*simulate.Pallet{}
	for _, id := range ids {
		nodes[id] = c.node(id)
		c.take(run{node: id, windows: grid(2)})
	}
	for _, id := range []string{"a.b", "a:b", "a b", "", "\u00e9", strings.Repeat("a", 129)} {
		for _, windows := range [][]window{grid(2), nil} {
			c.refused(fmt.Sprintf("%d renewals for %q", len(windows), id), c.compose(run{node: id, windows: windows}).AppendJSON(nil), runInvalid, "nodeId: ")
		}
	}
	if s := c.status(); s.Runs != len(ids) {
		t.Errorf("the status shows %+v", s)
	}
	c.lose()
	for id, p := range nodes {
		if x := c.waitPushes(p, 1); len(x) == 1 && x[0].renewal.NodeID != id {
			t.Errorf("%s received the renewal of %s", id, x[0].renewal.NodeID)
		}
	}
}

// R03: what is no frame is dropped and counted and costs neither the session nor the run;
// what is a frame with a body that breaks the rules for names and texts is refused.
func TestR03_MalformedHolds(t *testing.T) {
	c := start(t)
	c.node("node-a")
	good := string(c.take(run{node: "node-a", windows: grid(3)}).AppendJSON(nil))
	behind := func(text, insert string) string { return strings.Replace(good, text, text+insert, 1) }

	noFrame := map[string]string{
		"no end":               good[:len(good)-1],
		"trailing data":        good + `} {`,
		"a trailing comma":     behind(`"nodeId":"node-a",`, `,`),
		"a number that isn't":  behind(`"sequence":`, `0`),
		"bad UTF-8":            behind(`"nodeId":"`, "\xff"),
		"bad UTF-8 far inside": behind(`"signature":"`, "\xed\xa0\x80"),
		"too deep":             behind(`"authority":{`, `"x":`+strings.Repeat(`[`, 62)+strings.Repeat(`]`, 62)+`,`),
	}
	before, _ := c.Metrics().Value("relay_cloudly_carrier_events_total", "event", "malformed")
	for what, body := range noFrame {
		ctx, cancel := context.WithCancel(c.Soon())
		answered := make(chan error, 1)
		go func() {
			answer, err := c.Cloudly.Call(ctx, holding, []byte(body))
			if err == nil {
				err = fmt.Errorf("answered %s", answer)
			}
			answered <- err
		}()
		if err := c.Cloudly.Wait(c.Soon(), what, func() bool {
			sent := c.Cloudly.Frames().All()
			return strings.Contains(string(sent[len(sent)-1].Text), body)
		}); err != nil {
			t.Fatal(err)
		}
		c.reaches("node-a") // behind it, on the same socket
		cancel()
		if err := <-answered; err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
			t.Errorf("%s: %v", what, err)
		}
	}
	c.Eventually("all of it to be counted", func() error {
		got, _ := c.Metrics().Value("relay_cloudly_carrier_events_total", "event", "malformed")
		if got-before != float64(len(noFrame)) {
			return fmt.Errorf("%v are, of %d", got-before, len(noFrame))
		}
		return nil
	})

	for what, body := range map[string]string{
		"a name twice":             behind(`"nodeId":"node-a",`, `"nodeId":"node-a",`),
		"a name twice, in escapes": behind(`"nodeId":"node-a",`, `"n\u006fdeId":"node-a",`),
		"half a surrogate":         strings.Replace(good, `"node-a"`, `"node-\ud800"`, 1),
	} {
		if answer, err := c.send([]byte(body)); err == nil {
			t.Errorf("%s: answered %s", what, answer)
		}
	}
	for what, body := range map[string]string{
		"a name twice inside":         behind(`"issuedAt":`, `1,"issuedAt":`),
		"a name twice, deep inside":   behind(`"authority":{`, `"id":"x",`),
		"half a surrogate inside":     behind(`"signature":"`, `\udc00`),
		"half a surrogate in a name":  behind(`"authority":{`, `"\ud800":1,`),
		"nothing":                     `{}`,
		"__proto__":                   behind(`{`, `"__proto__":{},`),
		"a run that is null":          strings.Replace(good, good[strings.Index(good, `[`):len(good)-1], `null`, 1),
		"a renewal that is null":      behind(`"renewals":[`, `null,`),
		"a sequence that is a text":   strings.Replace(good, `"sequence":1`, `"sequence":"1"`, 1),
		"a controller that is a text": strings.Replace(good, `{"kind":"cloudly"}`, `"cloudly"`, 1),
		"another case":                strings.Replace(good, `"sequence"`, `"Sequence"`, 1),
	} {
		c.refused(what, []byte(body), runInvalid, "")
	}
	if n := c.shown("node-a"); n.Held != 3 || c.Upstream.Accepted() != 1 {
		t.Errorf("the status shows %+v, over %d connections", n, c.Upstream.Accepted())
	}
	c.taken("loosely spelled", []byte(loosely(good)), 3)
}

// R04: a member more, at each level of the body, is refused under its path. What is opaque
// may hold anything.
func TestR04_AMemberMoreInAHold(t *testing.T) {
	c := start(t)
	c.node("node-a")
	good := string(c.compose(run{node: "node-a", windows: grid(3)}).AppendJSON(nil))
	last := func(text string) string { // the last place of a text, which is in the third renewal
		at := strings.LastIndex(good, text) + len(text)
		return good[:at] + `"zzForeign":true,` + good[at:]
	}
	first := func(text string) string { return strings.Replace(good, text, text+`"zzForeign":true,`, 1) }
	const foreign, at = `zzForeign`, `: unknown member "`
	for says, body := range map[string]string{
		"body" + at + foreign:                           first(`{`),
		"projection" + at + foreign:                     first(`"projection":{`),
		"renewals[2]" + at + foreign:                    good[:len(good)-3] + `,"zzForeign":true}]}`,
		"renewals[2].renewal" + at + foreign:            last(`"renewal":{`),
		"renewals[2].renewal.projection" + at + foreign: last(`"projection":{`),
		"renewals[2].renewal.dns" + at + foreign:        last(`"dns":{`),
		// There is no offer in a hold: it was exchanged when the relay registered (contract §4).
		"body" + at + "protocol": strings.Replace(good, `{`, `{"protocol":`+string(simulate.DefaultOffer().AppendJSON(nil))+`,`, 1),
		"body" + at + "session":  strings.Replace(good, `{`, `{"session":{"nodeId":"node-a"},`, 1),
	} {
		c.refused(says, []byte(body), runInvalid, says)
	}
	for _, missing := range []string{`"nodeId":"node-a",`, `"runtimeNamespace":"default",`, `"sequence":1,`} {
		c.refused("without "+missing, []byte(strings.Replace(good, missing, ``, 1)), runInvalid, strings.Trim(strings.Split(missing, ":")[0], `"`)+": ")
	}
	c.taken("a member more in the authority", []byte(strings.ReplaceAll(good, `"authority":{`, `"authority":{"zzForeign":{"k":[null,true]},`)), 3)
	if s := c.status(); s.Runs != 1 {
		t.Errorf("the status shows %+v", s)
	}
}

// R05: the digest is one of canonical JSON: names by UTF-16 code units, texts as
// JSON.stringify writes them, plain safe integers. Everything else has no digest.
func TestR05_CanonicalJSONOfARun(t *testing.T) {
	// U+1F600 is D83D DE00 in UTF-16 and so before U+E000; by bytes and by code points it
	// comes behind.
	const (
		spelled   = `{"\ue000":1,"text":"\u2028<&\u007f\u00e9\/\u0001\t","\ud83d\ude00":2, "kind":"cloudly"}`
		canonical = "{\"kind\":\"cloudly\",\"text\":\"\u2028<&\u007f\u00e9/\\u0001\\t\",\"\U0001f600\":2,\"\ue000\":1}"
		byBytes   = "{\"kind\":\"cloudly\",\"text\":\"\u2028<&\u007f\u00e9/\\u0001\\t\",\"\ue000\":1,\"\U0001f600\":2}"
		escaped   = "{\"kind\":\"cloudly\",\"text\":\"\\u2028<&\u007f\u00e9/\\u0001\\t\",\"\U0001f600\":2,\"\ue000\":1}"
	)
	c := start(t, rig.Cloudly(func(cfg *simulate.CloudlyConfig) { cfg.Controller = contract.Raw(canonical) }))
	a := c.node("node-a", func(cfg *simulate.PalletConfig) { cfg.Controller = contract.Raw(canonical) })
	digested := func(form string) run {
		return run{node: "node-a", windows: []window{current}, controller: spelled, change: func(_ int, s *contract.SignedDNSLeaseRenewal) {
			s.Renewal.Digest = digestOf(s.Renewal, form)
		}}
	}
	c.refused("names by bytes", c.compose(digested(byBytes)).AppendJSON(nil), runInvalid, "digest")
	c.refused("U+2028 as an escape", c.compose(digested(escaped)).AppendJSON(nil), runInvalid, "digest")
	c.refused("as it is spelled", c.compose(digested(spelled)).AppendJSON(nil), runInvalid, "digest")
	good := string(c.take(digested(canonical)).AppendJSON(nil))

	for _, number := range []string{`1.0`, `1e0`, `-0`, `0.5`, `9007199254740992`, `1E400`, `-1`} {
		c.refused("sequence "+number, []byte(strings.Replace(good, `"sequence":1`, `"sequence":`+number, 1)), runInvalid, "sequence")
		if number == `-1` {
			continue // a plain safe integer
		}
		c.refused("an authority of "+number, []byte(strings.Replace(good, `"authority":{`, `"authority":{"x":[`+number+`],`, 1)), runInvalid, "authority")
	}
	c.taken("an authority of 2^53-1", []byte(strings.Replace(good, `"authority":{`, `"authority":{"x":[9007199254740991,-9007199254740991],`, 1)), 1)
	c.take(run{node: "node-a", controller: spelled, windows: []window{current}, change: func(_ int, s *contract.SignedDNSLeaseRenewal) {
		s.Renewal.Sequence = 9007199254740991
		s.Renewal.Digest = digestOf(s.Renewal, canonical)
	}})
	c.lose()
	c.waitPushes(a, 9007199254740991)
	c.waitAcknowledged("node-a", 9007199254740991)
}

// R06: the digest of each renewal is made again: one bit of one member, and the run is
// refused, whatever else is wrong then. What no digest covers is no concern of the relay's.
func TestR06_DigestOfEachRenewal(t *testing.T) {
	c := start(t)
	c.node("node-a")
	good := string(c.compose(run{node: "node-a", windows: grid(5)}).AppendJSON(nil))
	c.taken("unflipped", []byte(good), 5)
	third := func(member string, after int) int { // where a value begins in the third renewal
		at := 0
		for range 3 {
			at += strings.Index(good[at:], `"renewal":{`) + 1
		}
		at += strings.Index(good[at:], member) + len(member) + after
		return at
	}
	flipped := func(at int) []byte {
		body := []byte(good)
		body[at] ^= 1
		return body
	}
	for what, at := range map[string]int{
		"sequence":              third(`"sequence":`, 0),
		"issuedAt":              third(`"issuedAt":`, 12),
		"notBefore":             third(`"notBefore":`, 12),
		"expiresAt":             third(`"expiresAt":`, 12),
		"nodeId":                third(`"nodeId":"`, 5),
		"runtimeNamespace":      third(`"runtimeNamespace":"`, 0),
		"controller":            third(`"kind":"`, 1),
		"projection.id":         third(`"projection":{"id":"`, 0),
		"projection.generation": third(`"generation":`, 0),
		"projection.digest":     third(`"digest":"sha256:`, 0),
		"digest":                third(`"digest":"sha256:`, 0) + strings.Index(good[third(`"digest":"sha256:`, 0):], `"digest":"sha256:`) + len(`"digest":"sha256:`),
	} {
		c.refused(what, flipped(at), runInvalid, "renewals[2].renewal.")
	}
	c.taken("a flipped signature", flipped(third(`"signature":"`, 5)), 5)
	if n := c.shown("node-a"); n.Held != 5 {
		t.Errorf("the status shows %+v", n)
	}
}

// R93: a hold of a mebibyte of canonical JSON is taken, however it is spelled, and its
// renewals reach the node byte for byte. One byte more is refused, and so is a frame that
// is larger than any, at the cost of that request alone.
func TestR93_TheLargestHold(t *testing.T) {
	const largest, frame = 1 << 20, 16 << 20
	c := start(t)
	a := c.node("node-a")
	sized := func(size int) string {
		fill, signature := "", "signature:"+strings.Repeat("s", 80)
		for {
			x := c.compose(run{node: "node-a", windows: []window{current, opening(time.Hour)}, change: func(i int, s *contract.SignedDNSLeaseRenewal) {
				s.Authority = contract.Raw(`{"pad":"` + fill + `"}`)
				s.Signature = signature
				if fill != "" && i == 1 {
					s.Signature += strings.Repeat("s", size%2) // two equal authorities have an even length
				}
			}})
			body := string(x.AppendJSON(nil))
			if fill != "" {
				return body
			}
			size -= len(body)
			fill = strings.Repeat("x", size/2)
		}
	}
	good := sized(largest)
	if n, err := contract.CanonicalLength([]byte(good)); n != largest || err != nil {
		t.Fatalf("the hold has %d canonical bytes, %v", n, err)
	}
	c.taken("a mebibyte", []byte(good), 2)
	c.refused("a mebibyte and one byte", []byte(sized(largest+1)), runInvalid, "1048576")
	spaced := strings.Replace(good, `"signature"`, strings.Repeat(" \n", largest)+`"signature"`, 1)
	c.taken("a mebibyte, in three times its size", []byte(spaced), 2)
	held := c.status()
	if _, err := c.send([]byte(strings.Replace(good, `{`, `{`+strings.Repeat(" ", frame), 1))); err == nil {
		t.Error("a frame of more than 16 MiB was taken")
	}
	c.reaches("node-a")
	if s := c.status(); !s.Attached || s.HeldBytes != held.HeldBytes || s.Renewals != 2 || c.Upstream.Accepted() != 1 {
		t.Errorf("the status shows %+v, over %d connections", s, c.Upstream.Accepted())
	}

	c.lose()
	if x := c.waitPushes(a, 1); len(x) == 1 && !strings.Contains(spaced, `"renewals":[`+string(x[0].signed)+`,`) {
		t.Errorf("the record of %d bytes changed on its way", len(x[0].signed))
	}
}
