package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	restoreControlText  = `{"nodeId":"node-a","control":{"grant":"eyJhbGciOiJSUzI1NiJ9.marked-claims.marked-signature","expectedRevision":0}}`
	restoreMembersText  = `"restoreId":"restore-9","stagingArchiveId":"staging-9","status":"executed","revision":4,"lastFence":2,"expectedObjects":12,"receivedObjects":12,"completedMappings":2,"totalMappings":2,"preparedAt":1767225600000,"updatedAt":1767225600001,"executedAt":1767225600001,"stagedObject":{"nextIndex":3}}`
	restoreSummaryText  = `{` + restoreMembersText
	restoreProgressText = `{"nodeId":"node-a",` + restoreMembersText
	restoreAnswerText   = `{"progress":` + restoreProgressText + `}`
)

func readPrepareIsolatedRestore(body []byte) (IsolatedRestoreRequest, error) {
	return ReadIsolatedRestoreRequest(MethodPrepareIsolatedRestore, body)
}

func readPrepareIsolatedRestoreAnswer(body []byte) (IsolatedRestoreAnswer, error) {
	return ReadIsolatedRestoreAnswer(MethodPrepareIsolatedRestore, body)
}

// R04: the request of an isolated restore is exact but for its control, which may hold
// anything.
func TestR04_IsolatedRestoreRequest(t *testing.T) {
	checkBodies(t, readPrepareIsolatedRestore, []bodyCase{
		{"whole", restoreControlText, nil},
		{"control is opaque", `{"nodeId":"-a","control":{"a":1.5,"a":{"b":"\ud800"}}}`, nil},
		{"missing", `{}`, []string{"nodeId: is missing", "control: is missing"}},
		{"unknown", `{"nodeId":"a","control":{},"marked":1}`, []string{"body: unknown member"}},
		{"twice", `{"nodeId":"a","control":{},"contro\u006c":{}}`, []string{"control: is given twice"}},
		{"no object", `{"nodeId":"a","control":"marked"}`, []string{"control: is not an object"}},
		{"null", `{"nodeId":"a","control":null}`, []string{"control: is not an object"}},
		{"rule", `{"nodeId":"a.b","control":{}}`, []string{"nodeId: is not a node id"}},
	})
	checkWritten(t, func(t *rapid.T) IsolatedRestoreRequest {
		return IsolatedRestoreRequest{drawNodeID(t, "node"), Raw(`{"x" :` + string(drawOpaque(t, "control")) + ` }`)}
	}, readPrepareIsolatedRestore)
}

// R84: the grant of an isolated restore shows in no reason and no print, and is gone
// when it is wiped.
func TestR84_ControlIsNowhere(t *testing.T) {
	for _, body := range []string{
		with(t, restoreControlText, `"node-a"`, `"marked-claims."`), restoreControlText + `marked`, restoreControlText[:70],
		with(t, restoreControlText, `"control"`, `"marked-claims":{},"control"`), with(t, restoreControlText, `"control"`, `"nodeId":"marked","control"`),
	} {
		_, err := readPrepareIsolatedRestore([]byte(body))
		if reasons := reasonsIn(t, err); len(reasons) == 0 || strings.Contains(fmt.Sprint(reasons, err), "marked") {
			t.Errorf("%s: %q", body, reasons)
		}
	}
	x, err := readPrepareIsolatedRestore([]byte(restoreControlText))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(x.AppendJSON(nil)); got != restoreControlText {
		t.Errorf("got %s", got)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if shown := fmt.Sprintf(verb, x); strings.Contains(shown, "marked") || strings.Contains(shown, fmt.Sprintf("%x", "marked")) {
			t.Errorf("%s shows %s", verb, shown)
		}
	}
	control := x.Control
	x.Zero()
	if strings.Trim(string(control), "\x00") != "" {
		t.Error("the control outlives Zero")
	}
}

func TestIsIsolatedRestore(t *testing.T) {
	count := 0
	for _, m := range Methods() {
		if is := strings.Contains(m.Name, "IsolatedRestore"); is != IsIsolatedRestore(m.Name) {
			t.Error(m.Name)
		} else if is {
			count++
		}
	}
	if count != 5 {
		t.Errorf("%d methods", count)
	}
}

// R85: a summary that says what no node can have committed is refused in each of the
// eight ways, and what is valid is read without its other members.
func TestR85_RestoreProgressIsNormalized(t *testing.T) {
	swap := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(restoreSummaryText) }
	for _, tc := range []struct {
		name, body string
		want       []string
	}{
		{"whole", restoreSummaryText, nil},
		{"executing", swap(`"executed"`, `"executing"`, `"completedMappings":2`, `"completedMappings":0`, `"executedAt":1767225600001,`, ``), nil},
		{"failed half way", swap(`"executed"`, `"failed"`, `"receivedObjects":12`, `"receivedObjects":3`, `"completedMappings":2`, `"completedMappings":1`), nil},
		{"prepared with nothing", swap(`"executed"`, `"prepared"`, `"receivedObjects":12`, `"receivedObjects":0`, `"completedMappings":2`, `"completedMappings":0`), nil},
		{"cleaned", swap(`"executed"`, `"cleaned"`, `"receivedObjects":12`, `"receivedObjects":0`), nil},
		{"other members are not projected", swap(`"status"`, `"object":{"chunkSha256":1.5},"ok":true,"status"`), nil},

		{"1 unknown status", swap(`"executed"`, `"done"`), []string{"status: is not a known status"}},
		{"2 objects above the plan", swap(`"receivedObjects":12`, `"receivedObjects":13`), []string{"receivedObjects: is more than expectedObjects"}},
		{"3 mappings above the plan", swap(`"completedMappings":2`, `"completedMappings":3`), []string{"completedMappings: is more than totalMappings"}},
		{"4 revision", swap(`"revision":4`, `"revision":0`), []string{"revision: is not a counter"}},
		{"5 fence", swap(`"lastFence":2`, `"lastFence":0`), []string{"lastFence: is not a counter"}},
		{"6 executed without the whole archive", swap(`"receivedObjects":12`, `"receivedObjects":11`), []string{"receivedObjects: is not the whole archive"}},
		{"6 executing without the whole archive", swap(`"executed"`, `"executing"`, `"receivedObjects":12`, `"receivedObjects":11`), []string{"receivedObjects: is not the whole archive"}},
		{"7 executed with a mapping behind", swap(`"completedMappings":2`, `"completedMappings":1`), []string{"completedMappings: is not every mapping"}},
		{"8 executed at no time", swap(`"executedAt":1767225600001,`, ``), []string{"executedAt: is missing"}},

		{"missing", `{}`, []string{"restoreId: is missing", "stagingArchiveId: is missing", "status: is missing", "revision: is missing", "lastFence: is missing",
			"expectedObjects: is missing", "receivedObjects: is missing", "completedMappings: is missing", "totalMappings: is missing",
			"preparedAt: is missing", "updatedAt: is missing"}},
		{"twice", swap(`"status"`, `"st\u0061tus":"failed","status"`), []string{"status: is given twice"}},
		{"null time", swap(`"executedAt":1767225600001`, `"executedAt":null`), []string{"executedAt: is not a number"}},
		{"staged twice the same", swap(`"nextIndex":3`, `"nextIndex":3,"nextIndex":4`), []string{"stagedObject: repeats a name or holds a lone surrogate"}},
		{"staged nothing", swap(`{"nextIndex":3}`, `3`), []string{"stagedObject: is not an object"}},
		{"longer", swap(`"restore-9"`, `"`+strings.Repeat("r", 257)+`"`, `"staging-9"`, `""`), []string{
			"restoreId: is not 1 to 256 printable characters", "stagingArchiveId: is not 1 to 256 printable characters"}},
		{"below zero", swap(`"expectedObjects":12`, `"expectedObjects":-1`, `"receivedObjects":12`, `"receivedObjects":-1`, `"completedMappings":2`, `"completedMappings":-1`,
			`"totalMappings":2`, `"totalMappings":-1`, `1767225600000`, `-1`, `1767225600001`, `-1`), []string{
			"expectedObjects: is not a count", "receivedObjects: is not a count", "completedMappings: is not a count", "totalMappings: is not a count",
			"preparedAt: is not a time in unix milliseconds", "updatedAt: is not a time in unix milliseconds", "executedAt: is not a time in unix milliseconds"}},
		{"large receipt", swap(`{"nextIndex":3}`, `{"x":`+opaqueOf(4<<20)+`}`), []string{"stagedObject: is larger than 4 MiB"}},
		{"no json", `restore-9`, []string{"body: is not well-formed json"}},
	} {
		got, err := ReadRestoreSummary(MethodStageIsolatedRestoreArchive, "node-a", []byte(tc.body))
		if diff := cmp.Diff(tc.want, reasonsIn(t, err)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
		if diff := cmp.Diff(IsolatedRestoreProgress{}, got); (err != nil) != (diff == "") {
			t.Errorf("%s: a refused summary is returned: %s", tc.name, diff)
		}
		if err != nil {
			continue
		}
		answer := IsolatedRestoreAnswer{got}.AppendJSON(nil)
		if again, err := readPrepareIsolatedRestoreAnswer(answer); err != nil || again.Progress.NodeID != "node-a" {
			t.Errorf("%s: %s: %v", tc.name, answer, err)
		}
	}
}

// R85: progress bears the node that was asked, whatever node the summary names, and a
// staged object only where it belongs.
func TestR85_ProgressIsTaggedWithItsNode(t *testing.T) {
	const invented = `{"nodeId":"other",` + restoreMembersText
	staged, err := ReadRestoreSummary(MethodStageIsolatedRestoreArchive, "node-a", []byte(invented))
	if got := string(IsolatedRestoreAnswer{staged}.AppendJSON(nil)); err != nil || got != restoreAnswerText {
		t.Errorf("got %s, %v", got, err)
	}
	read, err := ReadRestoreSummary(MethodGetIsolatedRestoreProgress, "node-a", []byte(invented))
	want := staged
	want.StagedObject = nil
	if diff := cmp.Diff(want, read); err != nil || diff != "" {
		t.Errorf("a staged object is projected of another call: %v %s", err, diff)
	}
	_, err = ReadRestoreSummary(MethodGetIsolatedRestoreProgress, "a.b", []byte(invented))
	if diff := cmp.Diff([]string{"nodeId: is not a node id"}, reasonsIn(t, err)); diff != "" {
		t.Error(diff)
	}
}

// R04: a member more is refused at every exact level of an isolated restore's answer,
// with its path.
func TestR04_IsolatedRestoreAnswer(t *testing.T) {
	checkBodies(t, readPrepareIsolatedRestoreAnswer, []bodyCase{
		{"missing", `{}`, []string{"progress: is missing"}},
		{"missing inside", `{"progress":` + strings.Replace(restoreProgressText, `"nodeId":"node-a",`, ``, 1) + `}`, []string{"progress.nodeId: is missing"}},
		{"twice", with(t, restoreAnswerText, `"nodeId"`, `"node\u0049d":"b","nodeId"`), []string{"progress.nodeId: is given twice"}},
		{"rules", with(t, restoreAnswerText, `"revision":4`, `"revision":0`), []string{"progress.revision: is not a counter"}},
	})
	checkExactKeys(t, restoreAnswerText, []string{"progress.stagedObject"}, errorOf(readPrepareIsolatedRestoreAnswer))
	checkWritten(t, func(t *rapid.T) IsolatedRestoreAnswer {
		objects, mappings := drawCount(t, "objects"), drawCount(t, "mappings")
		x := IsolatedRestoreProgress{
			NodeID: drawNodeID(t, "node"), RestoreID: drawBackupID(t), StagingArchiveID: drawBackupID(t),
			Status:   rapid.SampledFrom([]RestoreStatus{RestorePrepared, RestoreExecuting, RestoreFailed, RestoreExecuted, RestoreCleaned}).Draw(t, "status"),
			Revision: drawCounter(t, "revision"), LastFence: drawCounter(t, "fence"),
			ExpectedObjects: objects, ReceivedObjects: objects, CompletedMappings: mappings, TotalMappings: mappings,
			PreparedAt: drawCount(t, "prepared"), UpdatedAt: drawCount(t, "updated"),
		}
		if at := drawCount(t, "executed"); x.Status == RestoreExecuted || rapid.Bool().Draw(t, "ended") {
			x.ExecutedAt = &at
		}
		if rapid.Bool().Draw(t, "staged") {
			x.StagedObject = Raw(`{"x" :` + string(drawPlain(t, "object")) + `}`)
		}
		return IsolatedRestoreAnswer{x}
	}, readPrepareIsolatedRestoreAnswer)
}

// R86: the reason of a node's refusal is given on, bounded, unless it holds any part of
// the control that was sent; then its code is, or the bare name.
func TestR86_RestoreRefusals(t *testing.T) {
	const grant = "eyJhbGciOiJSUzI1NiJ9.marked-claims.marked-signature"
	control := Raw(`{"grant":"` + grant + `","restoreId":"restore-nine","expectedRevision":3,"mappings":[{"name":"orders","of":"4let","in":"3le"}],"size":123456,"SECRETKEYASANAMEWITH33CHARACTERS1":1}`)
	failure := func(text, code string) []byte { return CorestoreFailure{Code: code, Text: text}.AppendJSON(nil) }
	for _, tc := range []struct {
		name   string
		answer []byte
		want   string
	}{
		{"reason", failure("revision 3 is not the current one", "revision-conflict"), "restore-node-refused: revision 3 is not the current one"},
		{"a value of 3 bytes is no secret", failure("3le is busy", ""), "restore-node-refused: 3le is busy"},
		{"a member's name is no secret", failure("expectedRevision is stale", ""), "restore-node-refused: expectedRevision is stale"},
		{"the grant whole", failure("refused "+grant, "grant-expired"), "restore-node-refused: grant-expired"},
		{"the grant cut", failure("refused:"+grant[:20]+"…", "grant-expired"), "restore-node-refused: grant-expired"},
		{"its last 8 bytes", failure(grant[len(grant)-8:], ""), "restore-node-refused"},
		{"its last 7 bytes", failure(grant[len(grant)-7:], ""), "restore-node-refused: " + grant[len(grant)-7:]},
		{"its first 8 bytes at the end", failure("no "+grant[:8], ""), "restore-node-refused"},
		{"a value of 4 bytes", failure("no 4let", ""), "restore-node-refused"},
		{"a number", failure("no 123456", ""), "restore-node-refused"},
		{"a secret that is a member's name", failure("no SECRETKEYASANAMEWITH33CHARACTERS1", ""), "restore-node-refused"},
		{"the grant in the code too", failure(grant, grant), "restore-node-refused"},
		{"a value of the control", failure("restore-nine is unknown", ""), "restore-node-refused"},
		{"a line break", failure("a\nb", "bad"), "restore-node-refused: bad"},
		{"nothing said", failure("", ""), "restore-node-refused"},
		{"long", failure(strings.Repeat("é", 300), ""), "restore-node-refused: " + strings.Repeat("é", 256)},
		{"longer by half a letter", failure("x"+strings.Repeat("é", 300), ""), "restore-node-refused: x" + strings.Repeat("é", 255)},
		{"ok after all", []byte(`{"ok":true,"error":"x"}`), "restore-node-refused"},
		{"not json", []byte("<html>" + grant), "restore-node-refused"},
		{"empty", nil, "restore-node-refused"},
		{"more members", []byte(`{"ok":false,"error":"busy","at":1.5}`), "restore-node-refused: busy"},
	} {
		refusal := NewRestoreRefusal(control, tc.answer)
		if got := refusal.Text(); got != tc.want || refusal.Name != RestoreNodeRefused || len(refusal.Reason) > 512 {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		if data := string(refusal.AppendData(nil)); data != `{"code":"restore-node-refused"}` {
			t.Errorf("%s: data %s", tc.name, data)
		}
	}
	for _, name := range []RefusalName{RestoreNodeNotCarried, RestoreNodeUnreachable} {
		if !IsolatedRestoreRefusals().Contains(name) || (&Refusal{Name: name}).Text() != string(name) {
			t.Error(name)
		}
	}
}

func TestCorestoreFailure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := CorestoreFailure{rapid.String().Draw(t, "code"), rapid.String().Draw(t, "text")}
		if got, ok := ReadCorestoreFailure(want.AppendJSON(nil)); !ok || got != want {
			t.Errorf("got %v, %v, want %v", got, ok, want)
		}
	})
	for _, body := range []string{"", "null", `{}`, `{"ok":false}`, `{"error":"x"}`, `{"ok":true,"error":"x"}`, `{"ok":0,"error":"x"}`, `{"ok":false,"error":1}`,
		`{"ok":false,"error":"x","code":1}`, `{"ok":false,"error":"x","\u0065rror":"y"}`, `{"ok":false,"error":"x"}y`} {
		if got, ok := ReadCorestoreFailure([]byte(body)); ok || got != (CorestoreFailure{}) {
			t.Errorf("%s: reads as %v", body, got)
		}
	}
}

func FuzzReadIsolatedRestoreRequest(f *testing.F) {
	fuzzReader(f, readPrepareIsolatedRestore, restoreControlText, `{"nodeId":"a","control":{"a":1,"a":2}}`)
}

func FuzzReadIsolatedRestoreAnswer(f *testing.F) {
	fuzzReader(f, readPrepareIsolatedRestoreAnswer, restoreAnswerText)
}

func FuzzReadRestoreSummary(f *testing.F) {
	read := func(body []byte) (IsolatedRestoreProgress, error) {
		return ReadRestoreSummary(MethodStageIsolatedRestoreArchive, "node-a", body)
	}
	fuzzReader(f, read, restoreSummaryText, `{"status":"executing","object":{}}`)
}

// No reason shares 8 bytes with the grant, however Corestore words it.
func FuzzNewRestoreRefusal(f *testing.F) {
	const grant = "eyJhbGciOiJSUzI1NiJ9.marked-claims.marked-signature"
	f.Add([]byte(`{"ok":false,"error":"x `+grant+`"}`), "e")
	f.Add([]byte(`{"ok":false,"error":"revision","code":"claims"}`), `\u0065`)
	f.Fuzz(func(t *testing.T, answer []byte, spelled string) {
		control := Raw(`{"a":[{"grant":"` + grant + `"}]}`)
		if spelled == `\u0065` {
			control = Raw(strings.Replace(string(control), ":\"e", ":\"\\u0065", 1))
		}
		text := NewRestoreRefusal(control, answer).Text()
		for i := 0; i+echoedRun <= len(grant); i++ {
			if strings.Contains(text, grant[i:i+echoedRun]) {
				t.Fatalf("%q echoes the grant", text)
			}
		}
	})
}
