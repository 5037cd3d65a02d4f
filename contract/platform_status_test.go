package contract

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const statusText = `{"bindingId":"b:1","status":"failed","statusReason":"legacy-adoption-conflict","objectstorageBucketName":"bucket-1"}`

// R04: a member more is refused at every level of a platform binding's status, with its
// path.
func TestR04_PlatformBindingStatusRequest(t *testing.T) {
	checkExactKeys(t, statusText, nil, errorOf(ReadPlatformBindingStatusRequest))
}

func TestPlatformBindingStatusRequest(t *testing.T) {
	checkBodies(t, ReadPlatformBindingStatusRequest, []bodyCase{
		{"whole", statusText, nil},
		{"least", `{"bindingId":"b:1","status":"ready"}`, nil},
		{"missing", `{}`, []string{`bindingId: is missing`, `status: is missing`}},
		{"null is not absence", `{"bindingId":"b:1","status":"ready","statusReason":null,"objectstorageBucketName":null}`, []string{
			`statusReason: is not a string`, `objectstorageBucketName: is not a string`}},
		{"rules", `{"bindingId":"-","status":"","statusReason":"","objectstorageBucketName":""}`, []string{
			`bindingId: is not a canonical identifier`, `status: is not a canonical identifier`,
			`statusReason: is not a known reason`, `objectstorageBucketName: is not a canonical s3 bucket name`}},
		{"status of another reason", with(t, statusText, `conflict`, `pending`), []string{`status: is not the status of its reason`}},
	})
	checkWritten(t, func(t *rapid.T) PlatformBindingStatusRequest {
		x := PlatformBindingStatusRequest{BindingID: drawIdentifier(t, "id"), Status: drawIdentifier(t, "status")}
		if rapid.Bool().Draw(t, "reason") {
			reason := rapid.SampledFrom([]PlatformBindingStatusReason{LegacyAdoptionPending, LegacyAdoptionConflict, LegacyAdoptionMismatch}).Draw(t, "reason")
			x.Status, _ = reason.Status()
			x.StatusReason = &reason
		}
		if rapid.Bool().Draw(t, "bucket") {
			name := rapid.StringMatching(`[a-z0-9]{3,9}(-[a-z0-9]{1,3})?`).Draw(t, "name")
			x.ObjectStorageBucketName = &name
		}
		return x
	}, ReadPlatformBindingStatusRequest)
}

func TestPlatformBucketName(t *testing.T) {
	for name, want := range map[string]bool{
		"abc": true, "a-b.c1": true, strings.Repeat("a", 63): true, "1.2.3": true,
		"ab": false, strings.Repeat("a", 64): false, "": false, "Abc": false, "a_bc": false, "-abc": false, "abc-": false,
		"a..b": false, ".abc": false, "abc.": false, "a-.b": false, "a.-b": false, "192.168.0.1": false, "abc\n": false, "äbc": false,
	} {
		if got := isPlatformBucketName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func FuzzReadPlatformBindingStatusRequest(f *testing.F) {
	fuzzReader(f, ReadPlatformBindingStatusRequest, statusText, `{"bindingId":"b","status":"ready"}`)
}
