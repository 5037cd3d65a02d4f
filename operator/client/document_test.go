package client

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/duty"
	"serve.zone/relay/operator"
	"serve.zone/relay/typedsocket/carriertest"
)

// lost is a duty that has no section.
type lost struct{ stub }

func (*lost) Name() string { return "hub" }
func (*lost) Status() any  { return 7 }

// A real endpoint's document is read: what it says of itself, of checks, and of a duty
// whose section it could not have.
func TestDocumentAgainstARealEndpoint(t *testing.T) {
	if SchemaVersion != operator.SchemaVersion {
		t.Fatalf("Document is made for schema %d, the endpoint's is %d", SchemaVersion, operator.SchemaVersion)
	}
	carriertest.Bubble(t, func(t *testing.T) {
		network := addressed{carriertest.NewNetwork()}
		catalogue, err := duty.NewCatalogue(operator.EventKinds)
		if err != nil {
			t.Fatal(err)
		}
		check := duty.Check{Name: "session", State: duty.Failing, Reason: "dial-failed", Hint: "Look.", Since: time.Now()}
		o := operator.New(operator.Config{
			Listen:  func(context.Context, string, string) (net.Listener, error) { return network, nil },
			Address: netip.MustParseAddrPort("127.0.0.1:9465"), Events: duty.NewEvents(duty.EventsConfig{Catalogue: catalogue}),
			Duties: []duty.Duty{&stub{check}, new(lost)}, Build: operator.Build{Version: "1.2.3"},
		})
		if err := o.Bind(t.Context()); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- o.Serve() }()
		t.Cleanup(func() {
			if err := errors.Join(o.Close(), <-ended); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
		})
		begin := time.Now().UTC()
		time.Sleep(time.Minute)
		text, err := Client{Base: base, Dial: network.Dial}.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d, err := ReadDocument(text)
		if err != nil || d.Partial || d.Schema != 1 || d.Build.Version != "1.2.3" || d.Draining || !d.Start.Equal(begin) || !d.Now.Equal(begin.Add(time.Minute)) {
			t.Errorf("%+v, %v", d, err)
		}
		if diff := cmp.Diff([]Missing{{Duty: "hub", Reason: "unusable"}}, d.Missing); diff != "" || d.Duties.Hub != nil {
			t.Error(diff, d.Duties.Hub)
		}
		if against := d.Readiness.Against(); d.Readiness.Ready || len(against) == 0 || against[0].Check != "session" || against[0].Hint != "Look." || against[0].AgeSeconds != 60 {
			t.Errorf("%+v", d.Readiness)
		}
		o.SetDraining()
		if text, err = (Client{Base: base, Dial: network.Dial}).Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d, err := ReadDocument(text); err != nil || !d.Draining {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// An older relay and a newer one are read as far as they are understood.
func TestReadDocument(t *testing.T) {
	start := time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name, text string
		want       Document
	}{
		{"hardly anything", `{"schema":1}`, Document{Schema: 1}},
		{"unknown members", `{"schema":1,"weather":{"rain":true},"duties":{"quantum":{},"hub":{"bound":"a","colour":7}}}`,
			Document{Schema: 1, Duties: Duties{Hub: &HubSection{Bound: "a"}}}},
		{"nothing in a section", `{"schema":1,"start":"2026-12-01T04:00:00Z","duties":{"tls":{},"hub":null}}`,
			Document{Schema: 1, Start: start, Duties: Duties{TLS: &TLSSection{}}}},
		{"another schema", `{"schema":2,"draining":true}`, Document{Schema: 2, Draining: true, Partial: true}},
		{"members of another type", `{"schema":1,"duties":{"hub":{"bound":7,"suspended":true,"members":{}},"tls":[1],"relay":{"phase":"serving"}}}`,
			Document{Schema: 1, Partial: true, Duties: Duties{Hub: &HubSection{Suspended: true}, TLS: &TLSSection{}, Relay: &RelaySection{Phase: "serving"}}}},
		{"a count below zero", `{"schema":1,"duties":{"escrow":{"runs":-1,"renewals":3}}}`,
			Document{Schema: 1, Partial: true, Duties: Duties{Escrow: &EscrowSection{Renewals: 3}}}},
		{"what has passed, and what was delivered last", `{"schema":1,"duties":{
			"forward":{"nodes":[{"id":"node-a","toCloudly":{"requests":1,"bytes":2},"fromCloudly":{"requests":3,"bytes":4}}]},
			"escrow":{"nodes":[{"id":"node-a","acknowledged":{"sequence":5,"at":"2026-12-01T04:00:00Z"}},{"id":"node-b","acknowledged":null},{"id":"node-c"}]},
			"hub":{"network":{"members":6,"prefixes":7},"members":[{"node":"node-a","sessions":8,"fromPackets":9,"fromBytes":10,"toPackets":11,"toBytes":12,
				"session":{"lane":"datagram","rttSeconds":0.5}},{"node":"node-b","session":null}]}}}`,
			Document{Schema: 1, Duties: Duties{
				Forward: &ForwardSection{Nodes: []CarriedNode{{ID: "node-a", ToCloudly: Carried{Requests: 1, Bytes: 2}, FromCloudly: Carried{Requests: 3, Bytes: 4}}}},
				Escrow:  &EscrowSection{Nodes: []EscrowNode{{ID: "node-a", Acknowledged: &EscrowDelivery{Sequence: 5}}, {ID: "node-b"}, {ID: "node-c"}}},
				Hub: &HubSection{Network: &HubNetwork{Members: 6, Prefixes: 7}, Members: []HubMember{
					{Node: "node-a", Sessions: 8, FromPackets: 9, FromBytes: 10, ToPackets: 11, ToBytes: 12, Session: &HubSession{Lane: "datagram", RTTSeconds: 0.5}},
					{Node: "node-b"},
				}},
			}}},
		{"a time that is none", `{"schema":1,"draining":true,"start":"yesterday"}`, Document{Schema: 1, Draining: true, Partial: true}},
	} {
		got, err := ReadDocument([]byte(test.text))
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", test.name, err, diff)
		}
	}
	for _, text := range []string{"", "null", "[]", "7", `"schema"`, `{}`, `{"schema":0}`, `{"schema":"one"}`, `{"schema":1`, `{"schema":1}}`} {
		if d, err := ReadDocument([]byte(text)); err != errNoDocument {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
	}
}
