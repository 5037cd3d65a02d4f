package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	reachableText   = `{"inventory":{"nodeId":"node-a","checkedAt":1767225600000,"reachable":true,"services":[{"id":"s"}]}}`
	unreachableText = `{"inventory":{"nodeId":"node-b","checkedAt":1767225600000,"reachable":false,"errorCode":"CORESTORE_ENDPOINT_UNKNOWN","services":[]}}`
)

func readCorestoreNodeRequestOfInventory(body []byte) (CorestoreNodeRequest, error) {
	return ReadCorestoreNodeRequest(MethodGetCorestoreInventory, body)
}

func TestCorestoreNodeRequest(t *testing.T) {
	checkBodies(t, readCorestoreNodeRequestOfInventory, []bodyCase{
		{"missing", `{}`, []string{"nodeId: is missing"}},
		{"twice", `{"nodeId":"a","node\u0049d":"b"}`, []string{"nodeId: is given twice"}},
		{"rule", `{"nodeId":"a.b"}`, []string{"nodeId: is not a node id"}},
	})
	checkExactKeys(t, `{"nodeId":"-abc"}`, nil, errorOf(readCorestoreNodeRequestOfInventory))
	checkWritten(t, func(t *rapid.T) CorestoreNodeRequest { return CorestoreNodeRequest{drawNodeID(t, "node")} }, readCorestoreNodeRequestOfInventory)
}

// R78: an inventory is reachable with services, or unreachable with a known error code
// and none; anything between the two is refused by name.
func TestR78_InventoryStatesAreNeverMixed(t *testing.T) {
	inventory := func(members string) string {
		return `{"inventory":{"nodeId":"node-a","checkedAt":1,` + members + `}}`
	}
	checkBodies(t, ReadCorestoreInventoryAnswer, []bodyCase{
		{"reachable", reachableText, nil},
		{"blank", inventory(`"reachable":true,"services":[]`), nil},
		{"unreachable", unreachableText, nil},
		{"reachable with a code", inventory(`"reachable":true,"errorCode":"CORESTORE_UNREACHABLE","services":[]`),
			[]string{"inventory.errorCode: is given although the node is reachable"}},
		{"unreachable without a code", inventory(`"reachable":false,"services":[]`),
			[]string{"inventory.errorCode: is missing although the node is not reachable"}},
		{"unreachable with services", inventory(`"reachable":false,"errorCode":"CORESTORE_UNREACHABLE","services":[ 1 ]`),
			[]string{"inventory.services: is not empty although the node is not reachable"}},
		{"unreachable with nothing in it", inventory(`"reachable":false,"errorCode":"CORESTORE_UNREACHABLE","services":[ ]`), nil},
		{"unknown code", inventory(`"reachable":false,"errorCode":"CORESTORE_GONE","services":[]`), []string{"inventory.errorCode: is not a known error code"}},
		{"code null", inventory(`"reachable":true,"errorCode":null,"services":[]`), []string{"inventory.errorCode: is not a string"}},
		{"no list", inventory(`"reachable":true,"services":null`), []string{"inventory.services: is not an array"}},
		{"largest", inventory(`"reachable":true,"services":[` + opaqueOf(4<<20-2) + `]`), nil},
		{"larger", inventory(`"reachable":true,"services":[` + opaqueOf(4<<20-1) + `]`), []string{"inventory.services: is larger than 4 MiB"}},
		{"missing", `{}`, []string{"inventory: is missing"}},
		{"missing inside", `{"inventory":{}}`, []string{"inventory.nodeId: is missing", "inventory.checkedAt: is missing",
			"inventory.reachable: is missing", "inventory.services: is missing"}},
		{"twice", `{"inventory":{"nodeId":"a","checkedAt":1,"reachable":false,"r\u0065achable":true,"services":[]}}`, []string{"inventory.reachable: is given twice"}},
		{"rules", `{"inventory":{"nodeId":"a:b","checkedAt":-1,"reachable":true,"services":[]}}`, []string{
			"inventory.nodeId: is not a node id", "inventory.checkedAt: is not a time in unix milliseconds"}},
	})
	for _, body := range []string{reachableText, unreachableText} {
		checkExactKeys(t, body, []string{"inventory.services[0]"}, errorOf(ReadCorestoreInventoryAnswer))
	}
}

// R78: an inventory that was not made by its constructors is invalid, and never a blank
// namespace.
func TestR78_HalfAnInventoryIsInvalid(t *testing.T) {
	x := NewCorestoreInventory("node-a", 1, nil)
	if diff := cmp.Diff([]string{"services: is not an array"}, x.Validate()); diff != "" {
		t.Error(diff)
	}
	if _, err := ReadCorestoreInventoryAnswer(CorestoreInventoryAnswer{x}.AppendJSON(nil)); err == nil {
		t.Error("it reads as a blank namespace")
	}
	x = CorestoreInventory{NodeID: "node-a"}
	if diff := cmp.Diff([]string{"errorCode: is missing although the node is not reachable",
		"services: is not empty although the node is not reachable"}, x.Validate()); diff != "" {
		t.Error(diff)
	}
}

// R77: a node whose endpoint is unknown is answered with CORESTORE_ENDPOINT_UNKNOWN and
// no services.
func TestR77_UnknownEndpointIsAnAnswerOfItsOwn(t *testing.T) {
	got := string(CorestoreInventoryAnswer{NewUnreadInventory("node-b", 1767225600000, CorestoreEndpointUnknown)}.AppendJSON(nil))
	if got != unreachableText {
		t.Error(got)
	}
}

func TestInventoryWritten(t *testing.T) {
	checkWritten(t, func(t *rapid.T) CorestoreInventoryAnswer {
		node, at := drawNodeID(t, "node"), drawCount(t, "checkedAt")
		if rapid.Bool().Draw(t, "reachable") {
			return CorestoreInventoryAnswer{NewCorestoreInventory(node, at, Raw("["+string(drawOpaque(t, "service"))+" ]"))}
		}
		return CorestoreInventoryAnswer{NewUnreadInventory(node, at, rapid.SampledFrom(
			[]CorestoreErrorCode{CorestoreEndpointUnknown, CorestoreUnreachable}).Draw(t, "code"))}
	}, ReadCorestoreInventoryAnswer)
	checkWritten(t, func(t *rapid.T) CorestoreServices {
		return CorestoreServices{Raw("[" + string(drawOpaque(t, "service")) + "]")}
	}, ReadCorestoreServices)
}

// R78: garbage and half an answer are errors, never a blank namespace.
func TestR78_CorestoreServices(t *testing.T) {
	checkBodies(t, ReadCorestoreServices, []bodyCase{
		{"whole", `{"ok":true,"services":[{"a":1}]}`, nil},
		{"cut", `{"services":[`, []string{"services: is not well-formed json"}},
		{"empty", ``, []string{"body: is not well-formed json"}},
		{"other", `{"ok":true}`, []string{"services: is missing"}},
		{"null", `{"services":null}`, []string{"services: is not an array"}},
		{"larger", `{"services":[` + opaqueOf(4<<20-1) + `]}`, []string{"services: is larger than 4 MiB"}},
		{"twice", `{"services":[],"s\u0065rvices":[]}`, []string{"services: is given twice"}},
	})
}

func FuzzReadCorestoreNodeRequest(f *testing.F) {
	fuzzReader(f, readCorestoreNodeRequestOfInventory, `{"nodeId":"-a"}`, `{"nodeId":""}`)
}

func FuzzReadCorestoreInventoryAnswer(f *testing.F) {
	fuzzReader(f, ReadCorestoreInventoryAnswer, reachableText, unreachableText, `{"inventory":{"services":[ ]}}`)
}

func FuzzReadCorestoreServices(f *testing.F) {
	fuzzReader(f, ReadCorestoreServices, `{"ok":true,"services":[{"a":1}]}`)
}
