package contract

import "strings"

// PlatformBindingStatusRequest is the request of updatePlatformBindingStatus.
// The seeds spell its two optional members; the two required ones are OWN
// (contract §8.4, O32).
type PlatformBindingStatusRequest struct {
	BindingID string // canonical identifier
	Status    string // canonical identifier; with a reason, that reason's status
	// StatusReason is nil when there is none; a report without one clears it.
	StatusReason *PlatformBindingStatusReason
	// ObjectStorageBucketName is the bucket exactly as the provider returned it, a
	// canonical S3 name; nil when there is none to report.
	ObjectStorageBucketName *string
}

// ReadPlatformBindingStatusRequest reads the request body.
func ReadPlatformBindingStatusRequest(body []byte) (PlatformBindingStatusRequest, error) {
	return readAs[PlatformBindingStatusRequest](MethodUpdatePlatformBindingStatus+" request", body, 0)
}

func (x *PlatformBindingStatusRequest) shape() valueReader {
	return object(
		required("bindingId", text(&x.BindingID)),
		required("status", text(&x.Status)),
		optional("statusReason", pointer(&x.StatusReason, readPlatformBindingStatusReason)),
		optional("objectstorageBucketName", pointer(&x.ObjectStorageBucketName, text)),
	)
}

func readPlatformBindingStatusReason(r *PlatformBindingStatusReason) valueReader {
	return text((*string)(r))
}

// Validate returns one named reason for each violation.
func (x PlatformBindingStatusRequest) Validate() []string { return reasonsOf(x.judge) }

func (x PlatformBindingStatusRequest) judge(v *verdict) {
	v.identifier("bindingId", x.BindingID)
	v.identifier("status", x.Status)
	if x.StatusReason != nil {
		status, known := x.StatusReason.Status()
		v.require(known, "statusReason", "is not a known reason")
		v.require(!known || x.Status == status, "status", "is not the status of its reason")
	}
	if x.ObjectStorageBucketName != nil {
		v.require(isPlatformBucketName(*x.ObjectStorageBucketName), "objectstorageBucketName", "is not a canonical s3 bucket name")
	}
}

// AppendJSON appends the request body.
func (x PlatformBindingStatusRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("bindingId", x.BindingID)
	w.text("status", x.Status)
	if x.StatusReason != nil {
		w.text("statusReason", string(*x.StatusReason))
	}
	if x.ObjectStorageBucketName != nil {
		w.text("objectstorageBucketName", *x.ObjectStorageBucketName)
	}
	return w.end()
}

// Bounds of a bucket name (platformObjectStorageBucketNameLimits).
const (
	minimumBucketName = 3
	maximumBucketName = 63
)

// isPlatformBucketName reports whether s is a canonical S3 bucket name: 3 to 63
// bytes in dot-separated labels of lower-case letters, digits and inner hyphens,
// and not an IPv4 literal. Nothing is normalized.
func isPlatformBucketName(s string) bool {
	if len(s) < minimumBucketName || len(s) > maximumBucketName || IsIPv4(s) {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := 0; i < len(label); i++ {
			if c := label[i]; !isDigit(c) && (c < 'a' || c > 'z') && c != '-' {
				return false
			}
		}
	}
	return true
}
