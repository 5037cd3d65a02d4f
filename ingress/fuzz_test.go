package ingress

import (
	"bytes"
	"strings"
	"testing"

	"serve.zone/relay/contract"
)

// FuzzTables: what is held is what came, and what is refused says so without a value.
func FuzzTables(f *testing.F) {
	f.Add([]byte(pushOf(tableOf(5, "key"))))
	for table := range violations() {
		f.Add([]byte(pushOf(table)))
	}
	f.Add([]byte(`{"table":null}`))
	f.Add([]byte(` { "table" : {"revision":1,"issuedAt":0,"routes":[],"portRoutes":[]} } `))
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := judgeTable(body)
		if err != nil {
			if h != nil || reasonsOf(err) == "" || strings.Contains(reasonsOf(err), word) {
				t.Fatalf("%v, %v", h, err)
			}
			return
		}
		answer, err := contract.ReadRouteTableAnswer(tableMethod, h.answer)
		if err != nil || answer.Table == nil || answer.Table.Revision != h.revision || !bytes.Contains(body, h.answer[len(`{"table":`):len(h.answer)-1]) {
			t.Fatalf("%s became %s: %v", body, h.answer, err)
		}
		if takes, now := apply(0, h.revision); !takes || now != h.revision {
			t.Fatalf("revision %d is not taken over nothing", h.revision)
		}
		h.zero()
		if len(bytes.Trim(h.answer, "\x00")) != 0 {
			t.Fatalf("%q is left", h.answer)
		}
	})
}

// FuzzRegistrations: an offer that cannot be served is refused before anything else
// is judged, what is forwarded names a node, and no refusal quotes the bearer.
func FuzzRegistrations(f *testing.F) {
	good := registrationOf("node-a", word)
	f.Add([]byte(good))
	f.Add([]byte(strings.Replace(good, "32.40.1", "33.0.0", 1)))
	f.Add([]byte(strings.Replace(good, "node-a", "a.b", 1)))
	f.Add([]byte(`{"protocol":` + ownOfferText + `}`))
	f.Add([]byte(`{"protocol":{"interfacesVersion":"32.0.0","minimumPeerVersion":"32.0.0"},"protocol":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		node, refused, _ := judgeRegistration(ownOffer, body)
		if !bytes.Equal(body, before) {
			t.Fatalf("the body changed into %q", body)
		}
		if refused == nil {
			read, err := contract.ReadIngressRegistration(body)
			if err != nil || node != read.NodeID || !contract.IsNodeID(node) {
				t.Fatalf("forwarded for %q: %v", node, err)
			}
			return
		}
		data := refused.AppendData(nil)
		_, own := contract.ReadIngressRegistrationRefusal(data)
		_, incompatible := contract.ReadProtocolRefusal(data)
		if own == incompatible || node != "" {
			t.Fatalf("refused with %s, for %q", data, node)
		}
		if strings.Contains(refused.Error(), word) || bytes.Contains(data, []byte(word)) {
			t.Fatalf("%s, %s", refused.Error(), data)
		}
		if offer, err := contract.ReadOffer(body); err == nil && len(body) <= requestLimit {
			if _, compatible := contract.Negotiate(ownOffer, offer); compatible == incompatible {
				t.Fatalf("%s was refused with %s", body, data)
			}
		}
	})
}

// FuzzPages: a page that passes holds nothing that was not asked for, and comes out
// as it came.
func FuzzPages(f *testing.F) {
	f.Add([]byte(`{"statistics":[`+bucket("node-a", "2026-11-30")+`],"nextCursor":"x"}`), int64(2))
	f.Add([]byte(`{"statistics":[`+bucket("node-b", "2026-11-30")+`]}`), int64(1))
	f.Add([]byte(`{"statistics":[`+bucket("node-a", "2026-13-45")+`]}`), int64(1))
	f.Add([]byte(`{"statistics":[]}`), int64(256))
	f.Fuzz(func(t *testing.T, body []byte, limit int64) {
		asked := contract.TrafficRequest{FromDayUTC: "2026-11-29", ToDayUTC: "2026-11-30", Limit: limit}
		page, err := judgePage(body, asked, "node-a")
		if err != nil {
			if len(page.Statistics) != 0 || reasonsOf(err) == "" {
				t.Fatalf("%v, %v", page, err)
			}
			return
		}
		if int64(len(page.Statistics)) > limit {
			t.Fatalf("%d of %d buckets", len(page.Statistics), limit)
		}
		for _, b := range page.Statistics {
			if b.NodeID != "node-a" || b.DayUTC < asked.FromDayUTC || b.DayUTC > asked.ToDayUTC || !bytes.Contains(body, b.Encoded) {
				t.Fatalf("%+v of %s", b, body)
			}
		}
		cursor := behind([]string{"node-a", "node-b"}, "node-a", page.NextCursor)
		read, ok := contract.ParseTrafficCursor(*cursor)
		if !ok || page.NextCursor != nil && read != (contract.TrafficCursor{NodeID: "node-a", Inner: *page.NextCursor}) {
			t.Fatalf("%q reads as %v", *cursor, read)
		}
		page.NextCursor = cursor
		if _, err := contract.ReadTrafficPage(page.AppendJSON(nil)); err != nil {
			t.Fatalf("what Cloudly is answered is no page: %v", err)
		}
	})
}

// FuzzCursors: whatever Cloudly sends, a registered ingress is asked or nobody is,
// never one before the cursor, and with a cursor that it gave itself or none.
func FuzzCursors(f *testing.F) {
	f.Add(contract.TrafficCursor{NodeID: "node-b", Inner: "x"}.Text())
	f.Add(contract.TrafficCursor{NodeID: "node-c"}.Text())
	f.Add("bm9kZS1hCg==")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		body := contract.TrafficRequest{FromDayUTC: "2026-11-29", ToDayUTC: "2026-11-30", Cursor: &text, Limit: 1}.AppendJSON(nil)
		q, refused := judgeQuestion(body)
		if refused != nil {
			if refused.Name != RequestInvalid || q.cursor != nil {
				t.Fatalf("%v, %v", refused, q)
			}
			return
		}
		nodes := []string{"node-a", "node-b", "node-d"}
		turn, any := at(nodes, q.cursor)
		if any != (q.cursor.NodeID <= "node-d") || any && turn.NodeID < q.cursor.NodeID {
			t.Fatalf("%v is asked for %v", turn, q.cursor)
		}
		if any && turn.Inner != "" && turn != *q.cursor {
			t.Fatalf("%v is asked for %v", turn, q.cursor)
		}
		if asked := q.asked(turn); any && asked.Validate() != nil {
			t.Fatalf("asked %+v: %v", asked, asked.Validate())
		}
	})
}
