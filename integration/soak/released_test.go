package soak_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/integration/rig"
)

// The released relay has no failpoints: none of their names stands in the bytes of the
// program as it is built for everybody, nor how they are asked for. In the one that this
// package runs they all do, so the search sees them.
func TestTheReleasedRelayHasNoFailpoints(t *testing.T) {
	t.Parallel()
	tagged, err := os.ReadFile(rig.Program(t))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "relay")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", name, "serve.zone/relay/cmd/relay")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the relay: %v\n%s", err, output)
	}
	released, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{failpoint.Variable, "duty/failpoint/control"}
	for _, n := range failpoint.Names() {
		texts = append(texts, string(n))
	}
	for _, text := range texts {
		if bytes.Contains(released, []byte(text)) {
			t.Errorf("%q stands in the released program", text)
		}
		if !bytes.Contains(tagged, []byte(text)) {
			t.Errorf("%q does not stand in the program with the tag: the search is blind", text)
		}
	}
}
