package startup_test

import (
	"errors"
	"testing"
	"time"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// R08, R09: each reason of a protocol refusal is reported as it was given, on either
// of the two registrations; it uses no number, and no offer is due before 300 s.
func TestR08_R09_ProtocolRefusals(t *testing.T) {
	for _, reason := range []contract.Incompatibility{contract.MajorMismatch, contract.PeerBelowMinimum, contract.SelfBelowPeerMinimum} {
		for _, method := range []string{openSession, register} {
			t.Run(string(reason)+"/"+method, func(t *testing.T) {
				t.Parallel()
				r := rig.New(t, rig.Before(func(r *rig.Rig) { r.Cloudly.Script(method, simulate.RefuseProtocol(reason)) }))
				r.WaitCheck("cloudly", "cloudly-refusal", "failing", string(reason))
				r.Eventually("the refusal in the status", func() error {
					s := rig.SectionOf[cloudly.Status](r, cloudly.Name)
					if s.LastRefusal == nil || s.LastRefusal.Reason != string(reason) || !s.LastRefusal.Standing {
						return errors.New("it is not there")
					}
					if s.NextSequence != 0 || s.AcceptedRegistrations != 0 {
						t.Errorf("next number %d, %d accepted", s.NextSequence, s.AcceptedRegistrations)
					}
					if wait := s.NextAttemptAt.Sub(s.LastRefusal.At); wait < 295*time.Second || wait > 305*time.Second {
						t.Errorf("the next offer is due after %s", wait)
					}
					return nil
				})
				if n := len(r.Cloudly.Frames().Received(register)); n > 1 {
					t.Errorf("%d registrations were sent", n)
				}
			})
		}
	}
}
