package simulate

import (
	"errors"
	"slices"
	"time"

	"serve.zone/relay/contract"
)

// AcceptedIngress is an accepted registerClusterIngress. It holds no bearer.
type AcceptedIngress struct {
	Socket       int // of the relay that forwarded it
	At           time.Time
	NodeID       string
	Version      string
	Capabilities contract.Raw // nil when absent
	Offer        contract.Offer
	Revision     int64 // that it was answered with, 0 for null
	number       uint64
}

// RefusedIngress is one that was refused by a reason of the contract.
type RefusedIngress struct {
	Socket int
	At     time.Time
	NodeID string // "" when it was not read
	Reason contract.RefusalName
}

// ingressRetry is how long a refused ingress waits, by the reason. OWN: the seeds
// state the bounds alone. What time alone mends is asked again soon; what an
// operator must mend is not.
func ingressRetry(reason contract.RefusalName) time.Duration {
	switch reason {
	case contract.IngressConflict:
		return contract.MinimumIngressRetry
	case contract.IngressNotReady, contract.IngressRelayNotConnected, contract.IngressAssignmentNotRunning:
		return 5 * time.Second
	case contract.IngressNotDesignated:
		return time.Minute
	}
	return contract.MaximumIngressRetry
}

// RefuseIngress refuses a registration of an ingress with a reason, whatever it
// holds. The wait must be one that the contract admits.
func RefuseIngress(reason contract.RefusalName, retryAfter time.Duration) Step {
	r := contract.IngressRegistrationRefusal{Reason: reason, RetryAfterMs: retryAfter.Milliseconds()}
	return Step{Text: r.Error(), Data: r.AppendData(nil)}
}

// registerIngress judges a registration that a relay forwarded in the order of
// contract §4 and §11.2: the offer, then the reasons as the contract lists them.
// What has changed before a late answer leaves is a conflict.
func (c *Cloudly) registerIngress(s *relaySocket, body []byte) verdict {
	theirs, err := contract.ReadOffer(body)
	if err != nil {
		return c.refuseIngress(s, "", contract.IngressRegistrationInvalid, err)
	}
	if refusal, compatible := contract.Negotiate(c.offer, theirs); !compatible {
		return verdict{text: refusal.Text(), data: refusal.AppendData(nil)}
	}
	d := &c.cluster.ingress
	if d.unready {
		return c.refuseIngress(s, "", contract.IngressNotReady, nil)
	}
	request, err := contract.ReadIngressRegistration(body)
	defer request.Zero()
	if err != nil {
		return c.refuseIngress(s, "", contract.IngressRegistrationInvalid, err)
	}
	if c.registered != s {
		return c.refuseIngress(s, request.NodeID, contract.IngressRelayNotConnected, nil)
	}
	n := c.cluster.known(request.NodeID)
	if reason := d.admits(request, n != nil && !n.foreign); reason != "" {
		return c.refuseIngress(s, request.NodeID, reason, nil)
	}
	return c.acceptIngress(s, request)
}

// refuseIngress refuses by a reason, with the violations of an invalid body in the
// text. None of them quotes a value.
func (c *Cloudly) refuseIngress(s *relaySocket, node string, reason contract.RefusalName, why error) verdict {
	d := &c.cluster.ingress
	if len(d.refused) >= maximumRegistrations {
		d.refused = d.refused[1:]
	}
	d.refused = append(d.refused, RefusedIngress{s.number, c.wall(), node, reason})
	r := contract.IngressRegistrationRefusal{Reason: reason, RetryAfterMs: ingressRetry(reason).Milliseconds()}
	text := r.Error()
	var invalid *contract.InvalidError
	if errors.As(why, &invalid) {
		text += ": " + invalid.Error()
	}
	return verdict{text: text, data: r.AppendData(nil)}
}

func (c *Cloudly) acceptIngress(s *relaySocket, request contract.IngressRegistration) verdict {
	d := &c.cluster.ingress
	changes, epoch := d.changes, c.sessionOf(request.NodeID)
	a := AcceptedIngress{Socket: s.number, At: c.wall(), NodeID: request.NodeID, Version: request.Version,
		Capabilities: request.Capabilities, Offer: request.Protocol, number: d.next()}
	answer := contract.IngressAccepted{Protocol: c.offer}
	if table := c.cluster.table; table != nil {
		a.Revision, answer.Revision = table.Revision, &table.Revision
	}
	if len(d.accepted) >= maximumRegistrations {
		d.accepted = d.accepted[1:]
	}
	d.accepted = append(d.accepted, a)
	v := accepted(answer)
	v.still = func() verdict {
		c.mu.Lock()
		defer c.mu.Unlock()
		if d.changes == changes && c.sessionOf(a.NodeID) == epoch {
			return accepted(answer)
		}
		d.accepted = slices.DeleteFunc(d.accepted, func(o AcceptedIngress) bool { return o.number == a.number })
		return c.refuseIngress(s, a.NodeID, contract.IngressConflict, nil)
	}
	return v
}

// next numbers the acceptances.
func (d *designation) next() uint64 {
	if len(d.accepted) == 0 {
		return 1
	}
	return d.accepted[len(d.accepted)-1].number + 1
}

// sessionOf returns the epoch of a node's session, 0 for none.
func (c *Cloudly) sessionOf(node string) int64 {
	if n := c.cluster.known(node); n != nil {
		return n.epoch
	}
	return 0
}

// IngressRegistrations returns the accepted registrations of ingresses, oldest
// first.
func (c *Cloudly) IngressRegistrations() []AcceptedIngress {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.cluster.ingress.accepted)
}

// IngressRefusals returns the registrations of ingresses that were refused by a
// reason of the contract, scripted ones not among them, oldest first.
func (c *Cloudly) IngressRefusals() []RefusedIngress {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.cluster.ingress.refused)
}
