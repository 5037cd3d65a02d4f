package origincert

import (
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// soonAt returns from when on less than a sixth of a certificate's life is left:
// fifteen days of ninety, four hours of a day.
func soonAt(notBefore, notAfter time.Time) time.Time {
	return notAfter.Add(-notAfter.Sub(notBefore) / 6)
}

// expiresSoon reports whether it is later than that.
func expiresSoon(notBefore, notAfter, now time.Time) bool {
	return now.After(soonAt(notBefore, notAfter))
}

// Checks judges a certificate's status at a time. "certificate" is required: one
// is served, and it is within its dates. "certificate-files" and
// "certificate-renewal" are advice, since what is served is good: that what
// stands in the files now was refused, and that the end is near.
func (s Status) Checks(now time.Time) []duty.Check {
	return []duty.Check{s.served(now), s.files(), s.renewal(now)}
}

func (s Status) served(now time.Time) duty.Check {
	check := duty.Check{State: duty.Failing, Since: s.Since}
	switch s.State {
	case StateValid:
		check.State = duty.OK
	case StateExpired:
		check = advice[CertificateExpired]
		check.State, check.Reason, check.Since = duty.Failing, CertificateExpired.String(), s.NotAfter
	case StateNotYetValid:
		check = advice[CertificateNotYetValid]
		check.State, check.Reason = duty.Failing, CertificateNotYetValid.String()
		check.Facts = []field.Field{field.Duration(s.NotBefore.Sub(now))}
	default:
		check = s.missing()
	}
	check.Name = "certificate"
	if s.State != StatePending {
		check.Facts = append(check.Facts, field.Expires(s.NotAfter))
	}
	return check
}

// missing says why there is no certificate.
func (s Status) missing() duty.Check {
	if refused, ok := refusalNamed(s.Refused); ok {
		check := advice[refused]
		check.State, check.Reason, check.Since = duty.Failing, s.Refused, s.RefusedSince
		return check
	}
	return duty.Check{State: duty.Pending, Reason: "certificate-pending", Since: s.Since,
		Hint: "There is no certificate yet; TLS handshakes fail until there is one."}
}

// files says whether what stands in the files is what is served.
func (s Status) files() duty.Check {
	var check duty.Check
	if refused, ok := refusalNamed(s.Refused); ok {
		check = advice[refused]
		check.State, check.Reason, check.Since = duty.Failing, s.Refused, s.RefusedSince
	} else if s.State != StatePending {
		check.State, check.Since = duty.OK, s.AcceptedSince
	} else {
		check = s.missing()
	}
	check.Name, check.Advice = "certificate-files", true
	return check
}

// renewal says whether the end of the certificate is near.
func (s Status) renewal(now time.Time) duty.Check {
	check := duty.Check{Name: "certificate-renewal", Advice: true, State: duty.OK, Since: s.Since}
	switch {
	case s.State == StatePending:
		check.State, check.Reason = duty.Pending, "certificate-pending"
		check.Hint = "There is no certificate yet."
	case expiresSoon(s.NotBefore, s.NotAfter, now):
		check.State, check.Reason = duty.Failing, "certificate-expires-soon"
		check.Hint = "Less than a sixth of the certificate's life is left; see to its renewal."
		if soon := soonAt(s.NotBefore, s.NotAfter); soon.After(s.Since) {
			check.Since = soon
		}
		check.Facts = []field.Field{field.Expires(s.NotAfter), field.Duration(s.NotAfter.Sub(now))}
	}
	return check
}

func refusalNamed(name string) (Refusal, bool) {
	for r := range refusals {
		if r.String() == name {
			return r, true
		}
	}
	return 0, false
}
