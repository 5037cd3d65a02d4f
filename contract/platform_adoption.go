package contract

// PlatformBindingStatusReason is TPlatformBindingStatusReason: why Corestore
// refuses a credential binding beside a resource of an earlier release
// (contract §12.6).
type PlatformBindingStatusReason string

// The three reasons, each with its one status.
const (
	LegacyAdoptionPending  PlatformBindingStatusReason = "legacy-adoption-pending"  // provisioning
	LegacyAdoptionConflict PlatformBindingStatusReason = "legacy-adoption-conflict" // failed
	LegacyAdoptionMismatch PlatformBindingStatusReason = "legacy-adoption-mismatch" // failed
)

// The statuses of a binding that a reason is paired with.
const (
	PlatformBindingProvisioning = "provisioning"
	PlatformBindingFailed       = "failed"
)

// Status returns the one status that a binding with this reason has, and false
// for a reason that is not one of the three.
func (r PlatformBindingStatusReason) Status() (string, bool) {
	switch r {
	case LegacyAdoptionPending:
		return PlatformBindingProvisioning, true
	case LegacyAdoptionConflict, LegacyAdoptionMismatch:
		return PlatformBindingFailed, true
	}
	return "", false
}

// statusConflict is the HTTP status of a refused binding (RFC 9110 §15.5.10).
const statusConflict = 409

// ReadCorestoreLegacyAdoptionRefusal maps an HTTP answer of Corestore to the
// reason that it states. Only status 409 with a body { ok: false, error, code }
// and a known code states one; everything else is some other refusal and changes
// no status. The text of error is never passed on from here.
func ReadCorestoreLegacyAdoptionRefusal(statusCode int, body []byte) (PlatformBindingStatusReason, bool) {
	if statusCode != statusConflict {
		return "", false
	}
	var ok bool
	var message, code string
	reasons := readShape(body, secretBearing, openObject(
		required("ok", boolean(&ok)),
		required("error", text(&message)),
		required("code", text(&code)),
	))
	reason := PlatformBindingStatusReason(code)
	if _, known := reason.Status(); ok || !known || len(reasons) > 0 {
		return "", false
	}
	return reason, true
}
