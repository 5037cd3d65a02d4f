package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	legacyDatabaseText = `{"capability":"database","databaseName":"svc_orders_db","adoption":{"state":"unadopted","blocker":null}}`
	legacyBucketText   = `{"capability":"objectstorage","bucketName":"Svc.Orders","retention":{"mode":"x"},"adoption":{"state":"authorized","bindingId":"binding-17"}}`
	legacyText         = `{"services":[{"serviceId":"svc-orders","resources":[` + legacyDatabaseText + `,` + legacyBucketText + `]}]}`
)

// legacyResources is the inventory of one service with these resources.
func legacyResources(list string) string {
	return `{"services":[{"serviceId":"s","resources":[` + list + `]}]}`
}

// legacyAdoption is the inventory of one resource with this adoption.
func legacyAdoption(of, text string) string {
	if of == "database" {
		return legacyResources(`{"capability":"database","databaseName":"d","adoption":` + text + `}`)
	}
	return legacyResources(`{"capability":"objectstorage","bucketName":"b","retention":null,"adoption":` + text + `}`)
}

// R79: legacy services are read sorted and each once, with a database before an
// objectstorage and nothing else; each breach is refused by its path.
func TestR79_LegacyInventory(t *testing.T) {
	service := func(ids ...string) string {
		var all []string
		for _, id := range ids {
			all = append(all, `{"serviceId":"`+id+`","resources":[`+legacyDatabaseText+`]}`)
		}
		return `{"services":[` + strings.Join(all, ",") + `]}`
	}
	checkBodies(t, ReadLegacyInventory, []bodyCase{
		{"whole", legacyText, nil},
		{"none", `{"services":[]}`, nil},
		{"sorted", service("A", "Z", "a", "a-b", "a.b", "aB"), nil},
		{"unsorted", service("a", "B", "c"), []string{"services[1].serviceId: is not after the one before it"}},
		{"twice the same", service("a", "a"), []string{"services[1].serviceId: is not after the one before it"}},
		{"no identifier", service(".a"), []string{"services[0].serviceId: is not a canonical identifier"}},
		{"no resources", legacyResources(""), []string{"services[0].resources: does not have one or two elements"}},
		{"three resources", legacyResources(legacyDatabaseText + "," + legacyBucketText + "," + legacyBucketText), []string{"services[0].resources: does not have one or two elements"}},
		{"four resources", legacyResources(strings.Repeat(legacyBucketText+",", 3) + legacyBucketText), []string{"services[0].resources: has more elements than are read"}},
		{"bucket first", legacyResources(legacyBucketText + "," + legacyDatabaseText), []string{"services[0].resources: is not a database before an objectstorage"}},
		{"two databases", legacyResources(legacyDatabaseText + "," + legacyDatabaseText), []string{"services[0].resources: is not a database before an objectstorage"}},
		{"unknown capability", legacyResources(`{"capability":"volume","adoption":{"state":"unadopted","blocker":null}}`), []string{"services[0].resources[0].capability: is not a known capability"}},
		{"database with a bucket's members", legacyResources(`{"capability":"database","bucketName":"b","retention":null,"adoption":{"state":"unadopted","blocker":null}}`), []string{
			"services[0].resources[0].databaseName: is missing", "services[0].resources[0].bucketName: is given for a database",
			"services[0].resources[0].retention: is given for a database"}},
		{"bucket with a database's member", legacyResources(`{"capability":"objectstorage","databaseName":"d","adoption":{"state":"unadopted","blocker":null}}`), []string{
			"services[0].resources[0].bucketName: is missing", "services[0].resources[0].databaseName: is given for an objectstorage",
			"services[0].resources[0].retention: is missing"}},
		{"retention", legacyResources(`{"capability":"objectstorage","bucketName":"b","retention":[],"adoption":{"state":"unadopted","blocker":null}}`),
			[]string{"services[0].resources[0].retention: is neither an object nor null"}},
		{"name", legacyResources(`{"capability":"database","databaseName":"","adoption":{"state":"unadopted","blocker":null}}`),
			[]string{"services[0].resources[0].databaseName: is not 1 to 1024 bytes long"}},
		{"longest name", with(t, legacyText, "svc_orders_db", strings.Repeat("d", 1024)), nil},
		{"longer name", with(t, legacyText, "svc_orders_db", strings.Repeat("d", 1025)), []string{"services[0].resources[0].databaseName: is not 1 to 1024 bytes long"}},
		{"missing", `{}`, []string{"services: is missing"}},
		{"missing in a service", `{"services":[{}]}`, []string{"services[0].serviceId: is missing", "services[0].resources: is missing"}},
		{"missing in a resource", legacyResources(`{}`), []string{"services[0].resources[0].capability: is missing", "services[0].resources[0].adoption: is missing"}},
		{"twice", `{"services":[],"\u0073ervices":[]}`, []string{"services: is given twice"}},
	})
	checkExactKeys(t, legacyText, []string{"services[0].resources[1].retention"}, errorOf(ReadLegacyInventory))
}

// R79: an adoption is either unadopted with a blocker that is known, or authorized with
// its binding; each mixture is refused by its path.
func TestR79_LegacyAdoption(t *testing.T) {
	cases := []bodyCase{
		{"unknown state", legacyAdoption("database", `{"state":"consumed"}`), []string{"services[0].resources[0].adoption.state: is not a known state"}},
		{"unadopted without a blocker", legacyAdoption("database", `{"state":"unadopted"}`), []string{"services[0].resources[0].adoption.blocker: is missing"}},
		{"unadopted with a binding", legacyAdoption("database", `{"state":"unadopted","blocker":null,"bindingId":"b"}`),
			[]string{"services[0].resources[0].adoption.bindingId: is given although the adoption is not authorized"}},
		{"authorized with a blocker", legacyAdoption("database", `{"state":"authorized","bindingId":"b","blocker":null}`),
			[]string{"services[0].resources[0].adoption.blocker: is given although the adoption is authorized"}},
		{"authorized without a binding", legacyAdoption("database", `{"state":"authorized"}`), []string{"services[0].resources[0].adoption.bindingId: is missing"}},
		{"authorized with no identifier", legacyAdoption("database", `{"state":"authorized","bindingId":"-"}`), []string{"services[0].resources[0].adoption.bindingId: is not a canonical identifier"}},
		{"unknown blocker", legacyAdoption("database", `{"state":"unadopted","blocker":"other"}`), []string{"services[0].resources[0].adoption.blocker: is not a known blocker"}},
		{"blocker of no kind", legacyAdoption("database", `{"state":"unadopted","blocker":1}`), []string{"services[0].resources[0].adoption.blocker: is not a string"}},
		{"empty blocker is not null", legacyAdoption("database", `{"state":"unadopted","blocker":""}`), []string{"services[0].resources[0].adoption.blocker: is not a known blocker"}},
		{"fence of a database", legacyAdoption("database", `{"state":"unadopted","blocker":"fence-lineage-conflict"}`),
			[]string{"services[0].resources[0].adoption.blocker: is fence-lineage-conflict of a database"}},
		{"fence of a bucket", legacyAdoption("objectstorage", `{"state":"unadopted","blocker":"fence-lineage-conflict"}`), nil},
		{"missing in an adoption", legacyAdoption("database", `{}`), []string{"services[0].resources[0].adoption.state: is missing"}},
	}
	for _, of := range []string{"database", "objectstorage"} {
		for _, blocker := range []string{"not-adoptable", "ordinary-credentials-rotated", "owned-by-binding"} {
			cases = append(cases, bodyCase{of + " " + blocker, legacyAdoption(of, `{"state":"unadopted","blocker":"`+blocker+`"}`), nil})
		}
	}
	checkBodies(t, ReadLegacyInventory, cases)
}

// R79: 4,096 legacy services are read and one more is refused.
func TestR79_LegacyServicesBound(t *testing.T) {
	services := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{"serviceId":"s%04d","resources":[%s]}`, i, legacyDatabaseText))
		}
		return `{"services":[` + strings.Join(all, ",") + `]}`
	}
	checkBodies(t, ReadLegacyInventory, []bodyCase{
		{"most", services(4096), nil},
		{"more", services(4097), []string{"services: has more elements than are read"}},
	})
}

// R79: what Cloudly is told of legacy resources is a reachable node with its list or an
// unreachable one with its error code, never both.
func TestR79_LegacyResourcesUnion(t *testing.T) {
	answer := func(members string) string { return `{"nodeId":"node-a","checkedAt":1,` + members + `}` }
	whole := answer(`"reachable":true,` + legacyText[1:len(legacyText)-1])
	checkBodies(t, ReadLegacyResources, []bodyCase{
		{"whole", whole, nil},
		{"blank", answer(`"reachable":true,"services":[]`), nil},
		{"endpoint unknown", answer(`"reachable":false,"errorCode":"CORESTORE_ENDPOINT_UNKNOWN"`), nil},
		{"unreachable", answer(`"reachable":false,"errorCode":"CORESTORE_UNREACHABLE"`), nil},
		{"unreachable with a list", answer(`"reachable":false,"errorCode":"CORESTORE_UNREACHABLE","services":[]`),
			[]string{"services: is given although the node is not reachable"}},
		{"unreachable without a code", answer(`"reachable":false`), []string{"errorCode: is missing although the node is not reachable"}},
		{"reachable without a list", answer(`"reachable":true`), []string{"services: is missing although the node is reachable"}},
		{"reachable with a code", answer(`"reachable":true,"errorCode":"CORESTORE_UNREACHABLE","services":[]`), []string{"errorCode: is given although the node is reachable"}},
		{"unknown code", answer(`"reachable":false,"errorCode":"X"`), []string{"errorCode: is not a known error code"}},
		{"missing", `{}`, []string{"nodeId: is missing", "checkedAt: is missing", "reachable: is missing"}},
		{"twice", answer(`"reachable":true,"r\u0065achable":true,"services":[]`), []string{"reachable: is given twice"}},
		{"rules", `{"nodeId":"","checkedAt":-1,"reachable":true,"services":[{"serviceId":"","resources":[` + legacyDatabaseText + `]}]}`, []string{
			"nodeId: is not a node id", "checkedAt: is not a time in unix milliseconds",
			"services[0].serviceId: is not after the one before it", "services[0].serviceId: is not a canonical identifier"}},
	})
	checkExactKeys(t, whole, []string{"services[0].resources[1].retention"}, errorOf(ReadLegacyResources))
	checkExactKeys(t, answer(`"reachable":false,"errorCode":"CORESTORE_UNREACHABLE"`), nil, errorOf(ReadLegacyResources))
}

// R79: what Corestore wrote goes to Cloudly as it came, unusual spacing and all.
func TestR79_LegacyServicesAreForwardedInOrder(t *testing.T) {
	spaced := strings.ReplaceAll(legacyText, ",", " , ")
	inventory, err := ReadLegacyInventory([]byte(spaced))
	if err != nil {
		t.Fatal(err)
	}
	got := string(NewLegacyResources("node-a", 5, inventory.Services).AppendJSON(nil))
	if want := `{"nodeId":"node-a","checkedAt":5,"reachable":true,` + spaced[1:]; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	got = string(NewUnreadLegacyResources("node-a", 5, CorestoreUnreachable).AppendJSON(nil))
	if want := `{"nodeId":"node-a","checkedAt":5,"reachable":false,"errorCode":"CORESTORE_UNREACHABLE"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLegacyServicesMadeHere(t *testing.T) {
	database, bucket, binding := "svc_orders_db", "Svc.Orders", "binding-17"
	made := LegacyInventory{LegacyServices{List: []LegacyService{{"svc-orders", []LegacyResource{
		{Capability: LegacyDatabase, DatabaseName: &database, Adoption: LegacyAdoption{State: LegacyUnadopted}},
		{Capability: LegacyObjectStorage, BucketName: &bucket, Retention: Raw(`{"mode":"x"}`), Adoption: LegacyAdoption{State: LegacyAuthorized, BindingID: &binding}},
	}}}}}
	if got := string(made.AppendJSON(nil)); got != legacyText {
		t.Errorf("got %s, want %s", got, legacyText)
	}
	got, err := ReadLegacyInventory([]byte(legacyText))
	made.Services.Encoded = Raw(legacyText[len(`{"services":`) : len(legacyText)-1])
	if diff := cmp.Diff(made, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// R79: an adoption that was made here is judged by the same rules as one that was read.
func TestR79_LegacyAdoptionMadeHere(t *testing.T) {
	name, binding, blocker := "d", "binding-17", LegacyOwnedByBinding
	made := LegacyInventory{LegacyServices{List: []LegacyService{{"s", []LegacyResource{{Capability: LegacyDatabase, DatabaseName: &name,
		Adoption: LegacyAdoption{State: LegacyAuthorized, BindingID: &binding, Blocker: &blocker}}}}}}}
	if diff := cmp.Diff([]string{"services[0].resources[0].adoption.blocker: is given although the adoption is authorized"}, made.Validate()); diff != "" {
		t.Error(diff)
	}
}

func drawLegacyResource(t *rapid.T, of LegacyCapability) LegacyResource {
	x := LegacyResource{Capability: of, Adoption: LegacyAdoption{State: LegacyUnadopted}}
	name := rapid.StringN(1, 20, 1024).Draw(t, "name")
	blockers := []LegacyBlocker{LegacyNotAdoptable, LegacyCredentialsRotated, LegacyOwnedByBinding}
	if of == LegacyDatabase {
		x.DatabaseName = &name
	} else {
		x.BucketName = &name
		x.Retention = Raw(rapid.SampledFrom([]string{"null", `{"mode":"x"}`}).Draw(t, "retention"))
		blockers = append(blockers, LegacyFenceConflict)
	}
	if rapid.Bool().Draw(t, "authorized") {
		id := drawIdentifier(t, "binding")
		x.Adoption = LegacyAdoption{State: LegacyAuthorized, BindingID: &id}
	} else {
		x.Adoption.Blocker = rapid.Ptr(rapid.SampledFrom(blockers), true).Draw(t, "blocker")
	}
	return x
}

func drawLegacyServices(t *rapid.T) LegacyServices {
	x := LegacyServices{List: []LegacyService{}}
	for i := range rapid.IntRange(0, 4).Draw(t, "services") {
		service := LegacyService{ServiceID: fmt.Sprintf("s%d", i)}
		kinds := rapid.IntRange(1, 3).Draw(t, "kinds")
		if kinds&1 != 0 {
			service.Resources = append(service.Resources, drawLegacyResource(t, LegacyDatabase))
		}
		if kinds&2 != 0 {
			service.Resources = append(service.Resources, drawLegacyResource(t, LegacyObjectStorage))
		}
		x.List = append(x.List, service)
	}
	x.Encoded = x.AppendJSON(nil)
	return x
}

func TestLegacyWritten(t *testing.T) {
	checkWritten(t, func(t *rapid.T) LegacyInventory { return LegacyInventory{drawLegacyServices(t)} }, ReadLegacyInventory)
	checkWritten(t, func(t *rapid.T) LegacyResources {
		if rapid.Bool().Draw(t, "reachable") {
			return NewLegacyResources(drawNodeID(t, "node"), drawCount(t, "at"), drawLegacyServices(t))
		}
		return NewUnreadLegacyResources(drawNodeID(t, "node"), drawCount(t, "at"), CorestoreUnreachable)
	}, ReadLegacyResources)
}

func FuzzReadLegacyInventory(f *testing.F) {
	fuzzReader(f, ReadLegacyInventory, legacyText, `{"services":[{"serviceId":"s","resources":[{"capability":"database","adoption":{"blocker":""}}]}]}`)
}

func FuzzReadLegacyResources(f *testing.F) {
	fuzzReader(f, ReadLegacyResources, `{"nodeId":"a","checkedAt":1,"reachable":true,`+legacyText[1:], `{"nodeId":"a","checkedAt":1,"reachable":false,"errorCode":"CORESTORE_UNREACHABLE"}`)
}
