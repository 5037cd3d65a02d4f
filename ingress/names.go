package ingress

import (
	"errors"
	"strings"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// Names with which this duty refuses, besides those of the contract. OWN: the seeds
// have none for a body of these methods that breaks a rule, nor for an ingress that
// does not answer.
const (
	// RouteTableInvalid refuses a pushed table.
	RouteTableInvalid contract.RefusalName = "route-table-invalid"
	// RequestInvalid refuses any other request body.
	RequestInvalid contract.RefusalName = "request-invalid"
	// TrafficPageInvalid tells Cloudly of a page that an ingress must not answer.
	TrafficPageInvalid contract.RefusalName = "traffic-page-invalid"
	// IngressUnanswered tells Cloudly that an ingress gave no answer.
	IngressUnanswered contract.RefusalName = "cluster-ingress-unanswered"
)

// refusing is what a request is refused with: the text and the data of an error.
type refusing interface {
	error
	AppendData(dst []byte) []byte
}

// refuse ends a request with a refusal. Whose data that is may hold a secret.
func refuse(r *typedsocket.Request, with refusing) {
	data := with.AppendData(nil)
	r.Refuse(with.Error(), data)
	clear(data)
}

func refusal(name contract.RefusalName, reason string) *contract.Refusal {
	return &contract.Refusal{Name: name, Reason: reason}
}

// frameTooLarge is the listener's name for a request that is too large.
const frameTooLarge contract.RefusalName = "frame-too-large"

// The refusals that more than one handler gives.
func noIngress() *contract.Refusal {
	return refusal(contract.ClusterIngressNotRegistered, "this socket is no registered ingress")
}

func notReady() *contract.Refusal {
	return refusal(contract.RelayNotReady, "the relay holds no session to Cloudly, or is about to stop")
}

// reasonsOf lists the named reasons of a body that was refused. They name members
// and rules and quote nothing (package contract).
func reasonsOf(err error) string {
	var invalid *contract.InvalidError
	if !errors.As(err, &invalid) {
		return ""
	}
	return strings.Join(invalid.Reasons, "; ")
}
