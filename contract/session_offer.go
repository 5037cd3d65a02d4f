package contract

// JudgeAnsweredOffer judges, from the local side, the offer in an accepted
// answer that negotiates, before anything else of that answer is read: a later
// major may have changed all the rest (contract §4). It returns nil, a
// ProtocolRefusal when the offers do not go together, or an *InvalidError when
// the answer carries no offer.
func JudgeAnsweredOffer(local Offer, answer []byte) error {
	remote, err := ReadOffer(answer)
	if err != nil {
		return err
	}
	if refusal, compatible := Negotiate(local, remote); !compatible {
		return refusal
	}
	return nil
}
