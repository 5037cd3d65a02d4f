package contract

import (
	"testing"

	"pgregory.net/rapid"
)

const pushRouteTableText = `{"table":` + routeTableText + `}`

// R04: a member more is refused at every exact level of a pushed route table; which may
// hold a secret anywhere, so the member is not named.
func TestR04_PushRouteTable(t *testing.T) {
	const front = `{"table":{"revision":1,"issuedAt":1,"routes":[{"hostname":"a","destinations":[{"address":"10.0.0.1","port":1`
	checkBodies(t, ReadPushRouteTableRequest, []bodyCase{
		{"whole", pushRouteTableText, nil},
		{"missing", `{}`, []string{"table: is missing"}},
		{"null is no table", `{"table":null}`, []string{"table: is not an object"}},
		{"twice", `{"table":` + routeTableText + `,"t\u0061ble":null}`, []string{"table: is given twice"}},
		{"unknown", `{"marked":1,"table":` + routeTableText + `}`, []string{"body: unknown member"}},
		{"unknown in the table", front + `}]}],"portRoutes":[],"marked":1}}`, []string{"table: unknown member"}},
		{"unknown in a route is opaque", front + `}],"marked":1}],"portRoutes":[]}}`, nil},
		{"unknown in a destination", front + `,"marked":1}]}],"portRoutes":[]}}`, []string{"table.routes[0].destinations[0]: unknown member"}},
		{"rules", `{"table":{"revision":0,"issuedAt":1,"routes":[{"hostname":"","destinations":[]}],"portRoutes":[]}}`,
			[]string{"table.revision: is not a counter", "table.routes[0].hostname: is not a hostname"}},
	})
}

// R04: a member more is refused in each of the small messages about the route table,
// with its path.
func TestR04_RouteTableMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		read func([]byte) error
	}{
		"push answer":    {`{"appliedRevision":5}`, errorOf(ReadPushRouteTableAnswer)},
		"ingress pull":   {`{"knownRevision":5}`, errorOf(ReadIngressRouteTableRequest)},
		"first pull":     {`{"knownRevision":null}`, errorOf(ReadIngressRouteTableRequest)},
		"change hint":    {`{"revision":5}`, errorOf(ReadRouteTableChanged)},
		"hint's answer":  {`{}`, func(b []byte) error { _, err := ReadEmpty("answer", b); return err }},
		"cloudly's pull": {`{}`, func(b []byte) error { _, err := ReadEmpty("request", b); return err }},
	} {
		t.Run(name, func(t *testing.T) { checkKeys(t, tc.body, nil, name == "push answer", tc.read) })
	}
}

func TestRouteTableMessages(t *testing.T) {
	checkBodies(t, ReadPushRouteTableAnswer, []bodyCase{
		{"missing", `{}`, []string{"appliedRevision: is missing"}},
		{"twice", `{"appliedRevision":1,"applied\u0052evision":1}`, []string{"appliedRevision: is given twice"}},
		{"none", `{"appliedRevision":0}`, []string{"appliedRevision: is not a counter"}},
		{"highest", `{"appliedRevision":9007199254740991}`, nil},
		{"higher", `{"appliedRevision":9007199254740992}`, []string{"appliedRevision: is not a plain safe integer"}},
	})
	checkBodies(t, ReadIngressRouteTableRequest, []bodyCase{
		{"missing is not null", `{}`, []string{"knownRevision: is missing"}},
		{"zero is not null", `{"knownRevision":0}`, []string{"knownRevision: is not a counter"}},
		{"kind", `{"knownRevision":"5"}`, []string{"knownRevision: is not a number"}},
		{"twice", `{"knownRevision":null,"known\u0052evision":1}`, []string{"knownRevision: is given twice"}},
	})
	checkBodies(t, ReadRouteTableChanged, []bodyCase{
		{"missing", `{}`, []string{"revision: is missing"}},
		{"zero", `{"revision":0}`, []string{"revision: is not a counter"}},
		{"twice", `{"revision":1,"r\u0065vision":1}`, []string{"revision: is given twice"}},
	})
	checkBodies(t, readRouteTableAnswerOfCloudly, []bodyCase{
		{"none yet", `{"table":null}`, nil},
		{"table", pushRouteTableText, nil},
		{"missing is not null", `{}`, []string{"table: is missing"}},
		{"of a later release", `{"table":null,"marked":1}`, nil},
		{"twice", `{"table":null,"t\u0061ble":null}`, []string{"table: is given twice"}},
		{"rules", `{"table":{"revision":0,"issuedAt":0,"routes":[],"portRoutes":[]}}`, []string{"table.revision: is not a counter"}},
	})
}

func readRouteTableAnswerOfCloudly(body []byte) (RouteTableAnswer, error) {
	return ReadRouteTableAnswer(MethodGetRouteTable, body)
}

func TestRouteTableMessagesWritten(t *testing.T) {
	checkWritten(t, func(t *rapid.T) PushRouteTableRequest { return PushRouteTableRequest{drawRouteTable(t)} }, ReadPushRouteTableRequest)
	checkWritten(t, func(t *rapid.T) PushRouteTableAnswer { return PushRouteTableAnswer{drawCounter(t, "revision")} }, ReadPushRouteTableAnswer)
	checkWritten(t, func(t *rapid.T) RouteTableChanged { return RouteTableChanged{drawCounter(t, "revision")} }, ReadRouteTableChanged)
	checkWritten(t, func(t *rapid.T) IngressRouteTableRequest {
		return IngressRouteTableRequest{rapid.Ptr(rapid.Int64Range(1, MaximumSafeInteger), true).Draw(t, "known")}
	}, ReadIngressRouteTableRequest)
	checkWritten(t, func(t *rapid.T) RouteTableAnswer {
		return RouteTableAnswer{rapid.Ptr(rapid.Custom(drawRouteTable), true).Draw(t, "table")}
	}, readRouteTableAnswerOfCloudly)
}

// R73: a hint shows an ingress the revision and nothing else.
func TestR73_ChangeHintCarriesTheRevisionAlone(t *testing.T) {
	if got := string(RouteTableChanged{Revision: 6}.AppendJSON(nil)); got != `{"revision":6}` {
		t.Error(got)
	}
}

func FuzzReadPushRouteTableRequest(f *testing.F) {
	fuzzReader(f, ReadPushRouteTableRequest, pushRouteTableText, `{"table":null}`)
}

func FuzzReadPushRouteTableAnswer(f *testing.F) {
	fuzzReader(f, ReadPushRouteTableAnswer, `{"appliedRevision":5}`)
}

func FuzzReadIngressRouteTableRequest(f *testing.F) {
	fuzzReader(f, ReadIngressRouteTableRequest, `{"knownRevision":5}`, `{"knownRevision":null}`)
}

func FuzzReadRouteTableAnswer(f *testing.F) {
	fuzzReader(f, readRouteTableAnswerOfCloudly, pushRouteTableText, `{"table":null}`)
}

func FuzzReadRouteTableChanged(f *testing.F) {
	fuzzReader(f, ReadRouteTableChanged, `{"revision":5}`)
}
