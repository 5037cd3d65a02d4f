package startup_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

var update = flag.Bool("update", false, "write testdata/status-members.txt anew")

// R95: the members of /status, in all states that a relay of today can be in, are those
// of the list. Adding one is done by -update; a list that loses one, or whose type
// changes, is another schema, and operator.SchemaVersion has to grow with it.
func TestR95_StatusMembers(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.NotStarted())
	members := map[string]bool{}
	note := func() { collect(members, "", map[string]any(r.Status())) }

	// A relay that can be nothing yet.
	bearer, pair := r.NewBearer(), r.Issue(rig.Leaf{})
	r.WriteFile(rig.CredentialFile, []byte(bearer+"\n"), 0o600)
	r.RemoveFile(rig.CertificateFile)
	r.Start()
	r.WaitCheck(cloudly.Name, cloudly.CheckSession, "failing", "credential-unusable")
	note()
	// One that was refused.
	if err := r.Cloudly.RotateCredentialTo(bearer); err != nil {
		t.Fatal(err)
	}
	r.Cloudly.Script(register, simulate.RefuseProtocol(contract.PeerBelowMinimum))
	r.InstallCredential(bearer)
	r.InstallCertificate(pair)
	r.Restart()
	r.WaitCheck(cloudly.Name, cloudly.CheckRefusal, "failing", string(contract.PeerBelowMinimum))
	note()
	// One that carries a node, of which it has refused something, under an origin that
	// it does not serve.
	if err := r.Cloudly.EnableRelay(elsewhere); err != nil {
		t.Fatal(err)
	}
	r.Restart()
	r.WaitCheck("origin", "origin", "failing", "origin-mismatch")
	node := newPuppet(t, r, "node-a")
	node.Request(report, `{"session":{"nodeId":"node-b"}}`)
	if answer := node.next(); answer.Error == nil {
		t.Fatal("a report under a foreign session passed")
	}
	note()

	golden := filepath.Join("testdata", "status-members.txt")
	got := strings.Join(slices.Sorted(maps.Keys(members)), "\n") + "\n"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("members of /status (-listed +shown):\n%s", diff)
	}
}

// collect notes the path of every member with the type of its value. What a fact of a
// check is called is the check's own.
func collect(members map[string]bool, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		if strings.HasSuffix(path, ".facts") {
			members[path+" facts"] = true
			return
		}
		for name, v := range value {
			collect(members, strings.TrimPrefix(path+"."+name, "."), v)
		}
	case []any:
		members[path+" list"] = true
		for _, v := range value {
			collect(members, path+"[]", v)
		}
	case string:
		members[path+" text"] = true
	case float64:
		members[path+" number"] = true
	case bool:
		members[path+" yes or no"] = true
	default:
		members[path+" null"] = true
	}
}
