package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	snapshotText       = `{"kind":"database","databaseClosure":{"serviceId":"svc","descriptor":` + descriptorText + `,"path":"/database-backups/b/svc"},"more":1.5}`
	backupRequestText  = `{"nodeId":"node-a","backupId":"b","service":{"id":"svc"},"tags":["t"],"replication":null}`
	backupAnswerText   = `{"snapshots":[` + snapshotText + `,{"kind":"volume"},"s3"],"replication":{"x":1}}`
	restoreRequestText = `{"nodeId":"node-a","backupId":"b","service":{"id":"svc"},"snapshots":[` + snapshotText + `],"clear":true,` +
		`"resourceTypes":["database"],"replication":{"x":1}}`
	pruneRequestText = `{"nodeId":"node-a","retention":{"days":7},"dryRun":true}`
)

// opaqueOf is a value of exactly n bytes.
func opaqueOf(n int) string { return `"` + strings.Repeat("o", n-2) + `"` }

func TestBackupService(t *testing.T) {
	const most = 4 << 20
	checkBodies(t, ReadBackupServiceRequest, []bodyCase{
		{"whole", backupRequestText, nil},
		{"least", `{"nodeId":"n","backupId":"b","service":null}`, nil},
		{"missing", `{}`, []string{"nodeId: is missing", "backupId: is missing", "service: is missing"}},
		{"twice", with(t, backupRequestText, `"tags"`, `"t\u0061gs":1,"tags"`), []string{"tags: is given twice"}},
		{"rules", `{"nodeId":"a.b","backupId":"","service":1}`, []string{"nodeId: is not a node id", "backupId: is not 1 to 256 printable characters"}},
		{"largest members", `{"nodeId":"n","backupId":"b","service":` + opaqueOf(most) + `,"tags":` + opaqueOf(most) + `,"replication":` + opaqueOf(most) + `}`, nil},
		{"larger members", `{"nodeId":"n","backupId":"b","service":` + opaqueOf(most+1) + `,"tags":` + opaqueOf(most+1) + `,"replication":` + opaqueOf(most+1) + `}`,
			[]string{"service: is larger than 4 MiB", "tags: is larger than 4 MiB", "replication: is larger than 4 MiB"}},
	})
	checkExactKeys(t, backupRequestText, []string{"service"}, errorOf(ReadBackupServiceRequest))
	checkBodies(t, ReadBackupServiceAnswer, []bodyCase{
		{"whole", backupAnswerText, nil},
		{"none", `{"snapshots":[]}`, nil},
		{"more is ignored", `{"ok":true,"snapshots":[]}`, nil},
		{"missing", `{}`, []string{"snapshots: is missing"}},
		{"twice", `{"snapshots":[],"snap\u0073hots":[]}`, []string{"snapshots: is given twice"}},
		{"no list", `{"snapshots":{}}`, []string{"snapshots: is not an array"}},
		{"most", `{"snapshots":[` + strings.Repeat("1,", 1023) + `1]}`, nil},
		{"more", `{"snapshots":[` + strings.Repeat("1,", 1024) + `1]}`, []string{"snapshots: has more elements than are read"}},
		{"largest", `{"snapshots":[` + opaqueOf(most-10) + `,` + opaqueOf(10) + `]}`, nil},
		{"larger", `{"snapshots":[` + opaqueOf(most-10) + `,` + opaqueOf(11) + `],"replication":` + opaqueOf(most+1) + `}`,
			[]string{"snapshots: is larger than 4 MiB", "replication: is larger than 4 MiB"}},
	})
}

// R83: the member databaseClosure is read where it is an object, and only there.
func TestR83_SnapshotsThatAreClosures(t *testing.T) {
	snapshots := func(list string) string { return `{"snapshots":[` + list + `]}` }
	closure := func(members string) string { return snapshots(`{"databaseClosure":` + members + `}`) }
	checkBodies(t, ReadBackupServiceAnswer, []bodyCase{
		{"not an object", snapshots(`{"databaseClosure":true},{"databaseClosure":null},{"databaseClosure":[{}]},7,[{"databaseClosure":{}}]`), nil},
		{"opaque beside it", snapshots(with(t, snapshotText, `"more":1.5`, `"more":{"y":1,"y":2},"more":"\ud800"`)), nil},
		{"missing", closure(`{}`), []string{"snapshots[0].databaseClosure.serviceId: is missing",
			"snapshots[0].databaseClosure.descriptor: is missing", "snapshots[0].databaseClosure.path: is missing"}},
		{"unknown", snapshots(with(t, snapshotText, `"path"`, `"more":1,"path"`)), []string{`snapshots[0].databaseClosure: unknown member "more"`}},
		{"unknown in the descriptor", snapshots(with(t, snapshotText, `"size"`, `"more":1,"size"`)), []string{`snapshots[0].databaseClosure.descriptor: unknown member "more"`}},
		{"twice", snapshots(`{"databaseClosure":null,"databas\u0065Closure":null}`), []string{"snapshots[0].databaseClosure: is given twice"}},
		{"too large", snapshots(with(t, snapshotText, descriptorText, sizedDescriptor(256<<20+1))), []string{"snapshots[0].databaseClosure.descriptor.size: is larger than 256 MiB"}},
		{"contradicted", snapshots(with(t, snapshotText, `"size":5`, `"size":6`)), []string{"snapshots[0].databaseClosure.descriptor.size: is not receipt.closure.archiveBytes"}},
		{"rules", snapshots(with(t, with(t, snapshotText, `"serviceId":"svc"`, `"serviceId":"-"`), "/database-backups/b/svc", "//host/x")), []string{
			"snapshots[0].databaseClosure.serviceId: is not a canonical identifier", "snapshots[0].databaseClosure.path: is not a plain absolute path"}},
		{"two closures of one service", snapshots(snapshotText + "," + snapshotText), []string{"snapshots[1].databaseClosure.serviceId: repeats the service of an earlier closure"}},
		{"closures of two services", snapshots(snapshotText + "," + with(t, snapshotText, `"serviceId":"svc"`, `"serviceId":"other"`)), nil},
	})
	got, err := ReadBackupServiceAnswer([]byte(backupAnswerText))
	if err != nil {
		t.Fatal(err)
	}
	want := BackupServiceAnswer{
		Snapshots: []Snapshot{
			{&SnapshotClosure{"svc", DatabaseClosureDescriptor{5, zeroSHA, ClosureReceipt{5, zeroSHA, Raw(receiptText)}}, "/database-backups/b/svc"}, Raw(snapshotText)},
			{nil, Raw(`{"kind":"volume"}`)}, {nil, Raw(`"s3"`)},
		},
		Replication: Raw(`{"x":1}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if made := NewSnapshot(*want.Snapshots[0].Closure); string(made.AppendJSON(nil)) != `{"databaseClosure":{"serviceId":"svc","descriptor":`+descriptorText+`,"path":"/database-backups/b/svc"}}` {
		t.Errorf("%s", string(made.Encoded))
	}
}

func TestCorestorePath(t *testing.T) {
	for s, want := range map[string]bool{
		"/a": true, "/a/b-c_d.e~f:1/..x": true, "/" + strings.Repeat("p", 1023): true,
		"/" + strings.Repeat("p", 1024): false, "": false, "a": false, "/": false, "//a": false, "/a/": false, "/a//b": false,
		"/.": false, "/a/..": false, "/../a": false, "/a/./b": false, "/a%2f": false, "/a?b": false, "/a#b": false, `/a\b`: false,
		"/a b": false, "/a\n": false, "http://h/a": false, "/ä": false, "/a@b": false, "/a;b": false,
	} {
		if got := IsCorestorePath(s); got != want {
			t.Errorf("%.40q: got %v", s, got)
		}
	}
}

func TestRestoreService(t *testing.T) {
	checkBodies(t, ReadRestoreServiceRequest, []bodyCase{
		{"whole", restoreRequestText, nil},
		{"least", `{"nodeId":"n","backupId":"b","service":{},"snapshots":[]}`, nil},
		{"missing", `{}`, []string{"nodeId: is missing", "backupId: is missing", "service: is missing", "snapshots: is missing"}},
		{"flags repeat no name", with(t, with(t, restoreRequestText, `true`, `{"a":1,"a":1}`), `["database"]`, `["\ud800"]`), []string{
			"clear: repeats a name or holds a lone surrogate", "resourceTypes: repeats a name or holds a lone surrogate"}},
		{"twice", with(t, restoreRequestText, `"clear"`, `"cl\u0065ar":1,"clear"`), []string{"clear: is given twice"}},
		{"rules", `{"nodeId":"","backupId":" ","service":` + opaqueOf(4<<20+1) + `,"snapshots":[{"databaseClosure":{"serviceId":"s","descriptor":` + sizedDescriptor(0) +
			`,"path":"/x"}}],"clear":` + opaqueOf(4<<20+1) + `,"resourceTypes":` + opaqueOf(4<<20+1) + `,"replication":` + opaqueOf(4<<20+1) + `}`, []string{
			"nodeId: is not a node id", "backupId: is not 1 to 256 printable characters", "service: is larger than 4 MiB",
			"snapshots[0].databaseClosure.descriptor.size: is not a counter", "clear: is larger than 4 MiB",
			"resourceTypes: is larger than 4 MiB", "replication: is larger than 4 MiB"}},
	})
	checkExactKeys(t, with(t, restoreRequestText, snapshotText, ``), []string{"service", "replication"}, errorOf(ReadRestoreServiceRequest))
	checkBodies(t, ReadRestoreServiceAnswer, []bodyCase{
		{"whole", `{"restored":[1]}`, nil},
		{"more is ignored", `{"restored":null,"ok":true}`, nil},
		{"missing", `{}`, []string{"restored: is missing"}},
		{"twice", `{"restored":1,"r\u0065stored":1}`, []string{"restored: is given twice"}},
		{"larger", `{"restored":` + opaqueOf(4<<20+1) + `}`, []string{"restored: is larger than 4 MiB"}},
	})
}

func TestPruneNodeArchive(t *testing.T) {
	checkBodies(t, ReadPruneNodeArchiveRequest, []bodyCase{
		{"whole", pruneRequestText, nil},
		{"missing", `{}`, []string{"nodeId: is missing", "retention: is missing"}},
		{"the flag repeats no name", with(t, pruneRequestText, `true`, `{"a":1,"a":1}`), []string{"dryRun: repeats a name or holds a lone surrogate"}},
		{"twice", with(t, pruneRequestText, `"dryRun"`, `"dry\u0052un":1,"dryRun"`), []string{"dryRun: is given twice"}},
		{"rules", `{"nodeId":"a:b","retention":` + opaqueOf(4<<20+1) + `,"dryRun":` + opaqueOf(4<<20+1) + `}`, []string{
			"nodeId: is not a node id", "retention: is larger than 4 MiB", "dryRun: is larger than 4 MiB"}},
	})
	checkExactKeys(t, pruneRequestText, []string{"retention"}, errorOf(ReadPruneNodeArchiveRequest))
	checkBodies(t, ReadPruneNodeArchiveAnswer, []bodyCase{
		{"whole", `{"found":true,"result":{"x":1}}`, nil},
		{"none", `{"found":false}`, nil},
		{"missing", `{}`, []string{"found: is missing"}},
		{"twice", `{"found":true,"f\u006fund":true}`, []string{"found: is given twice"}},
		{"larger", `{"found":` + opaqueOf(4<<20+1) + `,"result":` + opaqueOf(4<<20+1) + `}`, []string{"found: is larger than 4 MiB", "result: is larger than 4 MiB"}},
	})
}

func drawAbsentOpaque(t *rapid.T, label string) Raw {
	if rapid.Bool().Draw(t, label+" absent") {
		return nil
	}
	return drawOpaque(t, label)
}

func drawSnapshots(t *rapid.T) []Snapshot {
	all := []Snapshot{}
	for i := range rapid.IntRange(0, 4).Draw(t, "snapshots") {
		if rapid.Bool().Draw(t, "closure") {
			all = append(all, NewSnapshot(SnapshotClosure{fmt.Sprintf("svc-%d", i), drawDescriptor(t), "/p/" + drawNodeID(t, "path")}))
		} else {
			all = append(all, Snapshot{Encoded: drawOpaque(t, "snapshot")})
		}
	}
	return all
}

func TestCorestoreServiceWritten(t *testing.T) {
	checkWritten(t, func(t *rapid.T) BackupServiceRequest {
		return BackupServiceRequest{drawNodeID(t, "node"), drawBackupID(t), drawOpaque(t, "service"), drawAbsentOpaque(t, "tags"), drawAbsentOpaque(t, "replication")}
	}, ReadBackupServiceRequest)
	checkWritten(t, func(t *rapid.T) BackupServiceAnswer {
		return BackupServiceAnswer{drawSnapshots(t), drawAbsentOpaque(t, "replication")}
	}, ReadBackupServiceAnswer)
	checkWritten(t, func(t *rapid.T) RestoreServiceRequest {
		return RestoreServiceRequest{drawNodeID(t, "node"), drawBackupID(t), drawOpaque(t, "service"), drawSnapshots(t),
			drawPlain(t, "clear"), drawPlain(t, "types"), drawAbsentOpaque(t, "replication")}
	}, ReadRestoreServiceRequest)
	checkWritten(t, func(t *rapid.T) RestoreServiceAnswer { return RestoreServiceAnswer{drawOpaque(t, "restored")} }, ReadRestoreServiceAnswer)
	checkWritten(t, func(t *rapid.T) PruneNodeArchiveRequest {
		return PruneNodeArchiveRequest{drawNodeID(t, "node"), drawOpaque(t, "retention"), drawPlain(t, "dryRun")}
	}, ReadPruneNodeArchiveRequest)
	checkWritten(t, func(t *rapid.T) PruneNodeArchiveAnswer {
		return PruneNodeArchiveAnswer{drawOpaque(t, "found"), drawAbsentOpaque(t, "result")}
	}, ReadPruneNodeArchiveAnswer)
}

func FuzzReadBackupServiceRequest(f *testing.F) {
	fuzzReader(f, ReadBackupServiceRequest, backupRequestText)
}

func FuzzReadBackupServiceAnswer(f *testing.F) {
	fuzzReader(f, ReadBackupServiceAnswer, backupAnswerText, `{"snapshots":[{"databaseClosure":{}},{"databaseClosure":1}]}`)
}

func FuzzReadRestoreServiceRequest(f *testing.F) {
	fuzzReader(f, ReadRestoreServiceRequest, restoreRequestText)
}

func FuzzReadRestoreServiceAnswer(f *testing.F) {
	fuzzReader(f, ReadRestoreServiceAnswer, `{"restored":[1]}`)
}

func FuzzReadPruneNodeArchiveRequest(f *testing.F) {
	fuzzReader(f, ReadPruneNodeArchiveRequest, pruneRequestText)
}

func FuzzReadPruneNodeArchiveAnswer(f *testing.F) {
	fuzzReader(f, ReadPruneNodeArchiveAnswer, `{"found":true,"result":{"x":1}}`)
}

func FuzzIsCorestorePath(f *testing.F) {
	f.Add("/a/b")
	f.Add("/a/../b")
	f.Fuzz(func(t *testing.T, s string) {
		if IsCorestorePath(s) && (s[0] != '/' || strings.ContainsAny(s, "%?#\\ @") || strings.Contains(s+"/", "/../") || strings.Contains(s, "//")) {
			t.Errorf("%q is taken", s)
		}
	})
}
