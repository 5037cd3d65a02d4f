package simulate

import (
	"errors"
	"time"

	"serve.zone/relay/contract"
)

// errNoAdmittedProjection refuses renewals of a node that admitted nothing.
var errNoAdmittedProjection = errors.New("renewal-projection-not-current: the node admitted no projection")

// Judgement is what the node decided about one renewal that reached it.
type Judgement struct {
	At        time.Time // by Wall
	Socket    int
	Renewal   contract.DNSLeaseRenewal
	Admission Admission // "" when it was refused
	Refusal   error     // nil when it was not
}

// AdmitProjection makes a projection the node's current one, as its own push
// would. The renewal of the one before is deleted with it.
func (p *Pallet) AdmitProjection(projection Projection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.projection, p.previous = &projection, nil
}

// Trust replaces the signing authority in the node's trust.
func (p *Pallet) Trust(authority Authority) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cfg.Authority = authority
}

// takeRenewal verifies and admits a renewal, and remembers the decision.
func (p *Pallet) takeRenewal(k *link, body []byte) verdict {
	now := p.wall() // read before anything else, like every input
	request, err := contract.ReadApplyDNSLeaseRenewalRequest(body)
	if err != nil {
		return refused(err)
	}
	renewal := request.Signed.Renewal
	admission, err := p.judgeRenewal(request.Signed, now)
	if len(p.judgements) >= maximumJudgements {
		p.judgements = p.judgements[1:]
	}
	p.judgements = append(p.judgements, Judgement{now, k.number, renewal, admission, err})
	if err != nil {
		return refused(err)
	}
	if admission == Admitted {
		p.previous = &renewal
	}
	return accepted(contract.ApplyDNSLeaseRenewalAnswer{Status: string(admission), Renewal: renewal.Reference()})
}

func (p *Pallet) judgeRenewal(signed contract.SignedDNSLeaseRenewal, now time.Time) (Admission, error) {
	if p.projection == nil {
		return "", errNoAdmittedProjection
	}
	if err := VerifyRenewal(signed, p.cfg.Authority, p.projection.Authority); err != nil {
		return "", err
	}
	return AdmitRenewal(signed.Renewal, *p.projection, p.previous, p.cfg.scope(), now)
}

// Judgements returns the decisions about renewals, oldest first.
func (p *Pallet) Judgements() []Judgement {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Judgement(nil), p.judgements...)
}

// Window returns the DNS window that the node may use: that of the renewal it
// admitted, else that of its projection. It is false for a node without one.
func (p *Pallet) Window() (contract.DNSWindow, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.previous != nil:
		return p.previous.DNS, true
	case p.projection != nil:
		return p.projection.DNS, true
	}
	return contract.DNSWindow{}, false
}

// ServesDNS reports whether that window is open now.
func (p *Pallet) ServesDNS() bool {
	window, ok := p.Window()
	now := p.wall().UnixMilli()
	return ok && window.NotBefore <= now && now < window.ExpiresAt
}
