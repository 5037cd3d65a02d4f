package contract

import (
	"slices"
	"testing"
)

// TestValuesMadeHereAreJudgedToo: what a reader would never give, a program can
// make, and it would be written as JSON that no peer takes.
func TestValuesMadeHereAreJudgedToo(t *testing.T) {
	for name, tc := range map[string]struct {
		reasons []string
		want    string
	}{
		"an inventory without a list":   {NewCorestoreInventory("a", 1, Raw("null")).Validate(), "services: is not an array"},
		"an inventory with an object":   {NewCorestoreInventory("a", 1, Raw("{}")).Validate(), "services: is not an array"},
		"services without a list":       {CorestoreServices{}.Validate(), "services: is not an array"},
		"a restore without its control": {IsolatedRestoreRequest{NodeID: "a"}.Validate(), "control: is not an object"},
		"a backup without its service":  {BackupServiceRequest{NodeID: "a", BackupID: "b"}.Validate(), "service: is missing"},
		"a prune without its retention": {PruneNodeArchiveRequest{NodeID: "a"}.Validate(), "retention: is missing"},
		"a restore without its result":  {RestoreServiceAnswer{}.Validate(), "restored: is missing"},
		"a closure without its stream":  {BackupDatabaseClosureRequest{NodeID: "a"}.Validate(), "closure: is not an object"},
		"an answer without its stream":  {RestoreDatabaseClosureAnswer{}.Validate(), "closure: is not an object"},
	} {
		if !slices.Contains(tc.reasons, tc.want) {
			t.Errorf("%s: %q, want %q", name, tc.reasons, tc.want)
		}
	}
}
