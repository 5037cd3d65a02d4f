package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const (
	zeroSHA           = "0000000000000000000000000000000000000000000000000000000000000000"
	receiptText       = `{"format":"corestore.database.backup","closure":{"archiveBytes":5,"sha256":"` + zeroSHA + `","x":1.5}}`
	descriptorText    = `{"size":5,"sha256":"` + zeroSHA + `","receipt":` + receiptText + `}`
	streamText        = `{"_isVirtualStream":true,"protocol":"virtual-stream-v1","streamId":"s","creatorDirection":"send","transport":{"relayStream":1}}`
	closureBackupText = `{"backupId":"b","serviceId":"svc","nodeId":"node-a","descriptor":` + descriptorText + `,"closure":` + streamText + `}`
	closureAnswerText = `{"descriptor":` + descriptorText + `,"closure":` + streamText + `}`
)

// sizedDescriptor is a descriptor whose receipt says the same.
func sizedDescriptor(size int64) string {
	return strings.NewReplacer(`"size":5`, fmt.Sprintf(`"size":%d`, size), `"archiveBytes":5`, fmt.Sprintf(`"archiveBytes":%d`, size)).Replace(descriptorText)
}

// R83: a descriptor of 256 MiB is read and one byte more is refused by name; so are a
// size and a digest that are not those of its receipt, and a receipt above 16 KiB.
func TestR83_ClosureDescriptor(t *testing.T) {
	receipt := func(n int) string {
		return with(t, descriptorText, `"x":1.5`, `"x":"`+strings.Repeat("r", n-len(receiptText)+1)+`"`)
	}
	checkBodies(t, ReadDatabaseClosureDescriptor, []bodyCase{
		{"whole", descriptorText, nil},
		{"256 MiB", sizedDescriptor(256 << 20), nil},
		{"256 MiB + 1", sizedDescriptor(256<<20 + 1), []string{"size: is larger than 256 MiB"}},
		{"nothing", sizedDescriptor(0), []string{"size: is not a counter"}},
		{"another size", with(t, descriptorText, `"size":5`, `"size":6`), []string{"size: is not receipt.closure.archiveBytes"}},
		{"another digest", with(t, descriptorText, zeroSHA+`","receipt"`, "1"+zeroSHA[1:]+`","receipt"`), []string{"sha256: is not receipt.closure.sha256"}},
		{"upper case", strings.ReplaceAll(descriptorText, zeroSHA, "A"+zeroSHA[1:]), []string{"sha256: is not a bare sha-256"}},
		{"prefixed", strings.ReplaceAll(descriptorText, zeroSHA, zeroDigest), []string{"sha256: is not a bare sha-256"}},
		{"receipt of 16 KiB", receipt(16 << 10), nil},
		{"receipt of 16 KiB + 1", receipt(16<<10 + 1), []string{"receipt: is larger than 16 KiB"}},
		{"missing", `{}`, []string{"size: is missing", "sha256: is missing", "receipt: is missing"}},
		{"missing in the receipt", with(t, descriptorText, receiptText, `{}`), []string{"receipt.closure: is missing"}},
		{"missing in its closure", with(t, descriptorText, receiptText, `{"closure":{}}`), []string{"receipt.closure.archiveBytes: is missing", "receipt.closure.sha256: is missing"}},
		{"the rest of a receipt is not read", with(t, descriptorText, `"x":1.5`, `"y":{"z":[1e9]}`), nil},
		{"but repeats no name", with(t, descriptorText, `"x":1.5`, `"x":{"y":1,"y":2}`), []string{"receipt.closure: an ignored member repeats a name or holds a lone surrogate"}},
		{"a receipt that says twice what it is", with(t, descriptorText, `"x":1.5`, `"\u0073ha256":"x"`), []string{"receipt.closure.sha256: is given twice"}},
		{"two closures", with(t, descriptorText, `"format"`, `"closur\u0065":{},"format"`), []string{
			"receipt.closure.archiveBytes: is missing", "receipt.closure.sha256: is missing", "receipt.closure: is given twice"}},
		{"twice", with(t, descriptorText, `"size"`, `"siz\u0065":5,"size"`), []string{"size: is given twice"}},
		{"kinds", `{"size":"5","sha256":5,"receipt":[]}`, []string{"size: is not a number", "sha256: is not a string", "receipt: is not an object"}},
		{"fraction", with(t, descriptorText, `"size":5`, `"size":5.0`), []string{"size: is not a plain safe integer"}},
	})
	checkExactKeys(t, descriptorText, []string{"receipt"}, errorOf(ReadDatabaseClosureDescriptor))
}

// R83: a descriptor that is made here is judged by the same rules as one that was read.
func TestR83_NewClosureDescriptor(t *testing.T) {
	got, err := NewDatabaseClosureDescriptor(5, zeroSHA, Raw(receiptText))
	want := DatabaseClosureDescriptor{5, zeroSHA, ClosureReceipt{5, zeroSHA, Raw(receiptText)}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for reason, err := range map[string]error{
		"size: is not receipt.closure.archiveBytes": func() error { _, err := NewDatabaseClosureDescriptor(4, zeroSHA, Raw(receiptText)); return err }(),
		"sha256: is not receipt.closure.sha256":     func() error { _, err := NewDatabaseClosureDescriptor(5, "1"+zeroSHA[1:], Raw(receiptText)); return err }(),
		"receipt: is not an object":                 func() error { _, err := NewDatabaseClosureDescriptor(5, zeroSHA, nil); return err }(),
	} {
		if diff := cmp.Diff([]string{reason}, reasonsIn(t, err)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestClosureMessages(t *testing.T) {
	id := func(n int) string {
		return with(t, closureBackupText, `"backupId":"b"`, `"backupId":"`+strings.Repeat("b", n)+`"`)
	}
	checkBodies(t, ReadBackupDatabaseClosureRequest, []bodyCase{
		{"whole", closureBackupText, nil},
		{"missing", `{}`, []string{"backupId: is missing", "serviceId: is missing", "nodeId: is missing", "descriptor: is missing", "closure: is missing"}},
		{"twice", with(t, closureBackupText, `"closure":{"_`, `"clos\u0075re":{},"closure":{"_`), []string{"closure: is given twice"}},
		{"a stream repeats no name", with(t, closureBackupText, `"relayStream":1`, `"relayStream":1,"relayStream":2`), []string{"closure: repeats a name or holds a lone surrogate"}},
		{"no stream", with(t, closureBackupText, streamText, `"stream"`), []string{"closure: is not an object"}},
		{"longest id", id(256), nil},
		{"longer id", id(257), []string{"backupId: is not 1 to 256 printable characters"}},
		{"rules", `{"backupId":"","serviceId":"-","nodeId":"a.b","descriptor":` + sizedDescriptor(256<<20+1) + `,"closure":{}}`, []string{
			"backupId: is not 1 to 256 printable characters", "serviceId: is not a canonical identifier", "nodeId: is not a node id",
			"descriptor.size: is larger than 256 MiB"}},
	})
	checkBodies(t, ReadBackupDatabaseClosureAnswer, []bodyCase{
		{"accepted", `{"accepted":true}`, nil},
		{"not accepted", `{"accepted":false}`, nil},
		{"missing", `{}`, []string{"accepted: is missing"}},
		{"null", `{"accepted":null}`, []string{"accepted: is not a boolean"}},
		{"twice", `{"accepted":true,"accept\u0065d":true}`, []string{"accepted: is given twice"}},
	})
	checkBodies(t, ReadRestoreDatabaseClosureRequest, []bodyCase{
		{"missing", `{}`, []string{"backupId: is missing", "serviceId: is missing", "nodeId: is missing"}},
		{"rules", `{"backupId":"a b","serviceId":"","nodeId":""}`, []string{
			"backupId: is not 1 to 256 printable characters", "serviceId: is not a canonical identifier", "nodeId: is not a node id"}},
		{"twice", `{"backupId":"b","serviceId":"s","nodeId":"n","nod\u0065Id":"n"}`, []string{"nodeId: is given twice"}},
	})
	checkBodies(t, ReadRestoreDatabaseClosureAnswer, []bodyCase{
		{"whole", closureAnswerText, nil},
		{"missing", `{}`, []string{"descriptor: is missing", "closure: is missing"}},
		{"a stream repeats no name", with(t, closureAnswerText, `"relayStream":1`, `"relayStream":1,"relayStream":2`), []string{"closure: repeats a name or holds a lone surrogate"}},
		{"null", `{"descriptor":null,"closure":null}`, []string{"descriptor: is not an object", "closure: is not an object"}},
		{"twice", with(t, closureAnswerText, `"closure":{"_`, `"clos\u0075re":{},"closure":{"_`), []string{"closure: is given twice"}},
		{"rules", `{"descriptor":` + sizedDescriptor(0) + `,"closure":{}}`, []string{"descriptor.size: is not a counter"}},
	})
}

// R04: a member more is refused at every exact level of the requests to back up and
// restore a closure, with its path; answers admit one at their top.
func TestR04_ClosureMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string
		opaque []string
		read   func([]byte) error
	}{
		"backup request":  {closureBackupText, []string{"descriptor.receipt", "closure"}, errorOf(ReadBackupDatabaseClosureRequest)},
		"backup answer":   {`{"accepted":true}`, nil, errorOf(ReadBackupDatabaseClosureAnswer)},
		"restore request": {`{"backupId":"b","serviceId":"s","nodeId":"n"}`, nil, errorOf(ReadRestoreDatabaseClosureRequest)},
		"restore answer":  {closureAnswerText, []string{"descriptor.receipt", "closure"}, errorOf(ReadRestoreDatabaseClosureAnswer)},
	} {
		check := checkExactKeys
		if strings.HasSuffix(name, "answer") {
			check = checkAnswerKeys
		}
		t.Run(name, func(t *testing.T) { check(t, tc.body, tc.opaque, tc.read) })
	}
}

func drawDescriptor(t *rapid.T) DatabaseClosureDescriptor {
	size, sum := rapid.Int64Range(1, ClosureLimit).Draw(t, "size"), rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "sha256")
	x, err := NewDatabaseClosureDescriptor(size, sum, Raw(fmt.Sprintf(`{"opaque" : %s,"closure":{"sha256":%q,"archiveBytes":%d }}`,
		string(drawPlain(t, "receipt")), sum, size)))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func drawBackupID(t *rapid.T) string {
	return rapid.StringMatching(`[!-~]{1,20}|[!-~]{256}`).Draw(t, "backup")
}

func TestClosureWritten(t *testing.T) {
	checkWritten(t, drawDescriptor, ReadDatabaseClosureDescriptor)
	checkWritten(t, func(t *rapid.T) BackupDatabaseClosureRequest {
		return BackupDatabaseClosureRequest{drawBackupID(t), drawIdentifier(t, "service"), drawNodeID(t, "node"), drawDescriptor(t), Raw(streamText)}
	}, ReadBackupDatabaseClosureRequest)
	checkWritten(t, func(t *rapid.T) BackupDatabaseClosureAnswer {
		return BackupDatabaseClosureAnswer{rapid.Bool().Draw(t, "accepted")}
	}, ReadBackupDatabaseClosureAnswer)
	checkWritten(t, func(t *rapid.T) RestoreDatabaseClosureRequest {
		return RestoreDatabaseClosureRequest{drawBackupID(t), drawIdentifier(t, "service"), drawNodeID(t, "node")}
	}, ReadRestoreDatabaseClosureRequest)
	checkWritten(t, func(t *rapid.T) RestoreDatabaseClosureAnswer {
		return RestoreDatabaseClosureAnswer{drawDescriptor(t), Raw(streamText)}
	}, ReadRestoreDatabaseClosureAnswer)
}

func FuzzReadDatabaseClosureDescriptor(f *testing.F) {
	fuzzReader(f, ReadDatabaseClosureDescriptor, descriptorText, sizedDescriptor(0), `{"size":1,"sha256":"","receipt":{"closure":{}}}`)
}

func FuzzReadBackupDatabaseClosureRequest(f *testing.F) {
	fuzzReader(f, ReadBackupDatabaseClosureRequest, closureBackupText)
}

func FuzzReadBackupDatabaseClosureAnswer(f *testing.F) {
	fuzzReader(f, ReadBackupDatabaseClosureAnswer, `{"accepted":true}`)
}

func FuzzReadRestoreDatabaseClosureRequest(f *testing.F) {
	fuzzReader(f, ReadRestoreDatabaseClosureRequest, `{"backupId":"b","serviceId":"s","nodeId":"n"}`)
}

func FuzzReadRestoreDatabaseClosureAnswer(f *testing.F) {
	fuzzReader(f, ReadRestoreDatabaseClosureAnswer, closureAnswerText)
}
