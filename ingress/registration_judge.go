package ingress

import (
	"time"

	"serve.zone/relay/contract"
)

// judgeRegistration judges the body of a registration in the order of contract
// §11.2, as far as the relay judges it: size, offer, negotiation, shape. It returns
// the node that it names, or what it is refused with and why, as a label.
func judgeRegistration(own contract.Offer, body []byte) (nodeID string, refused refusing, why registrationEnd) {
	if len(body) > requestLimit {
		return "", tooLarge(), registrationInvalid
	}
	offer, err := contract.ReadOffer(body)
	if err != nil {
		return "", invalidRegistration(reasonsOf(err)), registrationInvalid
	}
	if incompatible, ok := contract.Negotiate(own, offer); !ok {
		return "", incompatible, registrationIncompatible
	}
	registration, err := contract.ReadIngressRegistration(body)
	registration.Zero()
	if err != nil {
		return "", invalidRegistration(reasonsOf(err)), registrationInvalid
	}
	return registration.NodeID, nil, 0
}

func tooLarge() invalid { return invalidRegistration("body: is larger than 65536 bytes") }

// ownRefusal is a refusal of a registration that the relay gives itself.
func ownRefusal(reason contract.RefusalName) contract.IngressRegistrationRefusal {
	return contract.IngressRegistrationRefusal{Reason: reason, RetryAfterMs: int64(ownRetry / time.Millisecond)}
}

// invalid is such a refusal whose text says which members break which rules.
type invalid struct {
	contract.IngressRegistrationRefusal
	reasons string
}

func invalidRegistration(reasons string) invalid {
	return invalid{ownRefusal(contract.IngressRegistrationInvalid), reasons}
}

// Error returns the text of the error, bounded as that of every refusal.
func (x invalid) Error() string {
	head := contract.RefusalName(x.IngressRegistrationRefusal.Error())
	return refusal(head, x.reasons).Text()
}
