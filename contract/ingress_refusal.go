package contract

import "time"

// ingressRegistrationRefused is the frozen code of a refused registration.
const ingressRegistrationRefused = "cluster-ingress-registration-refused"

// IngressRegistrationRefusal is IClusterIngressRegistrationRefusal: why an
// ingress was not registered, for every reason but the protocol (contract
// §11.2). It travels as the data of an error. Cloudly's goes on to the ingress
// as the bytes that came; the relay makes its own for registration-invalid and
// not-ready.
type IngressRegistrationRefusal struct {
	Reason       RefusalName // one of IngressRegistrationReasons
	RetryAfterMs int64       // how long the ingress waits, 1 000 to 300 000
}

// ReadIngressRegistrationRefusal reads the refusal in the data of an error. It
// reports false for anything but a whole one: exact keys, the frozen code, a
// known reason and a wait within its bounds. What is no refusal is a plain
// failure.
func ReadIngressRegistrationRefusal(data []byte) (IngressRegistrationRefusal, bool) {
	x, err := readAs[ingressRefusalBody]("cluster ingress registration refusal", data, 0)
	return IngressRegistrationRefusal{RefusalName(x.reason), x.retryAfterMs}, err == nil
}

// Error returns the text of the error in which the refusal travels: the code
// and the reason, and nothing of the registration.
func (x IngressRegistrationRefusal) Error() string {
	return ingressRegistrationRefused + ": " + string(x.Reason)
}

// AppendData appends the data of the error in which the refusal travels.
func (x IngressRegistrationRefusal) AppendData(dst []byte) []byte { return x.AppendJSON(dst) }

// Validate returns one named reason for each violation.
func (x IngressRegistrationRefusal) Validate() []string { return reasonsOf(x.judge) }

func (x IngressRegistrationRefusal) judge(v *verdict) {
	v.require(ingressRegistrationReasons.Contains(x.Reason), "reason", "is not a known reason")
	wait := time.Duration(x.RetryAfterMs)
	v.require(wait >= MinimumIngressRetry/time.Millisecond && wait <= MaximumIngressRetry/time.Millisecond,
		"retryAfterMs", "is not within 1000 to 300000")
}

// AppendJSON appends the refusal in contract order.
func (x IngressRegistrationRefusal) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("code", ingressRegistrationRefused)
	w.text("reason", string(x.Reason))
	w.integer("retryAfterMs", x.RetryAfterMs)
	return w.end()
}

// ingressRefusalBody is a refusal as it came.
type ingressRefusalBody struct {
	code, reason string
	retryAfterMs int64
}

func (x *ingressRefusalBody) shape() valueReader {
	return object(
		required("code", text(&x.code)),
		required("reason", text(&x.reason)),
		required("retryAfterMs", integer(&x.retryAfterMs)),
	)
}

func (x ingressRefusalBody) Validate() []string { return reasonsOf(x.judge) }

func (x ingressRefusalBody) judge(v *verdict) {
	v.require(x.code == ingressRegistrationRefused, "code", "is not "+ingressRegistrationRefused)
	IngressRegistrationRefusal{RefusalName(x.reason), x.retryAfterMs}.judge(v)
}
