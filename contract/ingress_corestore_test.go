package contract

import (
	"fmt"
	"strings"
	"testing"
)

// R01: each member of the messages of ingress and Corestore that names a node takes the
// node vocabulary and not the canonical one.
func TestR01_NodeIDsOfIngressAndCorestore(t *testing.T) {
	for name, tc := range map[string]struct {
		body string // %s stands for the node id
		path string
		read func([]byte) error
	}{
		"ingress registration":    {with(t, ingressRegistrationText, "node-a", "%s"), "nodeId", errorOf(ReadIngressRegistration)},
		"traffic bucket":          {with(t, trafficPageText, "node-a", "%s"), "statistics[0].nodeId", errorOf(ReadTrafficPage)},
		"inventory request":       {`{"nodeId":"%s"}`, "nodeId", errorOf(readCorestoreNodeRequestOfInventory)},
		"inventory":               {with(t, reachableText, "node-a", "%s"), "inventory.nodeId", errorOf(ReadCorestoreInventoryAnswer)},
		"legacy inventory":        {`{"nodeId":"%s","checkedAt":1,"reachable":true,"services":[]}`, "nodeId", errorOf(ReadLegacyResources)},
		"backup":                  {with(t, backupRequestText, "node-a", "%s"), "nodeId", errorOf(ReadBackupServiceRequest)},
		"restore":                 {with(t, restoreRequestText, "node-a", "%s"), "nodeId", errorOf(ReadRestoreServiceRequest)},
		"prune":                   {with(t, pruneRequestText, "node-a", "%s"), "nodeId", errorOf(ReadPruneNodeArchiveRequest)},
		"closure":                 {with(t, closureBackupText, "node-a", "%s"), "nodeId", errorOf(ReadBackupDatabaseClosureRequest)},
		"closure to restore":      {`{"backupId":"b","serviceId":"s","nodeId":"%s"}`, "nodeId", errorOf(ReadRestoreDatabaseClosureRequest)},
		"isolated restore":        {with(t, restoreControlText, "node-a", "%s"), "nodeId", errorOf(readPrepareIsolatedRestore)},
		"isolated restore answer": {with(t, restoreAnswerText, "node-a", "%s"), "progress.nodeId", errorOf(readPrepareIsolatedRestoreAnswer)},
	} {
		for _, good := range []string{"-abc", "_abc", strings.Repeat("a", 128)} {
			if err := tc.read(fmt.Appendf(nil, tc.body, good)); err != nil {
				t.Errorf("%s: %s: %v", name, good, err)
			}
		}
		for _, bad := range []string{"a.b", strings.Repeat("a", 129), "a:b", ""} {
			reasons := reasonsIn(t, tc.read(fmt.Appendf(nil, tc.body, bad)))
			if len(reasons) != 1 || reasons[0] != tc.path+": is not a node id" {
				t.Errorf("%s: %q: %q", name, bad, reasons)
			}
		}
	}
}
