package simulate

import (
	"time"

	"serve.zone/relay/contract"
)

// identity is what a JWT stands for.
type identity struct {
	generation int64 // of the credential that it was minted for
	expiresAt  time.Time
}

// exchange judges the bearer and mints a JWT (contract §5.2, O4).
func (c *Cloudly) exchange(body []byte) verdict {
	request, err := contract.ReadIdentityExchangeRequest(body)
	if err != nil {
		return refused(err)
	}
	bearer := string(request.Token)
	switch {
	case c.retired[bearer]:
		return refuseNamed(contract.RelayCredentialGenerationStale, "the bearer is of an earlier generation")
	case bearer != c.credential.bearer:
		return refuseText("the token is not known")
	}
	now := c.wall()
	for jwt, held := range c.identities {
		if !now.Before(held.expiresAt) {
			delete(c.identities, jwt)
		}
	}
	jwt := "sim." + randomHex(24) + "." + randomHex(16)
	minted := identity{c.credential.generation, now.Add(c.cfg.IdentityLife)}
	c.identities[jwt] = minted
	return accepted(compose().value("identity", compose().
		text("name", c.cfg.ClusterID).text("userId", "relay-"+c.cfg.ClusterID).
		text("type", "machine").text("role", "cluster").
		integer("expiresAt", minted.expiresAt.UnixMilli()).text("jwt", jwt).end()).end())
}

// identify judges a JWT by what was minted.
func (c *Cloudly) identify(jwt contract.Secret) (identity, verdict, bool) {
	held, known := c.identities[string(jwt)]
	switch {
	case !known:
		return identity{}, refuseText("the identity is not known"), false
	case !c.wall().Before(held.expiresAt):
		return identity{}, refuseText("the identity has ended"), false
	case held.generation != c.credential.generation:
		return identity{}, refuseNamed(contract.RelayCredentialGenerationStale, "the identity is of an earlier generation"), false
	}
	return held, verdict{}, true
}

// openSession judges registerCloudlyClientSession: the offer before the JWT
// (contract §4, §5.2).
func (c *Cloudly) openSession(s *relaySocket, body []byte) verdict {
	if v, ok := negotiate(c.offer, body); !ok {
		return v
	}
	request, err := contract.ReadClientSessionRequest(body)
	if err != nil {
		return refused(err)
	}
	held, v, ok := c.identify(request.Identity.JWT)
	if !ok {
		return v
	}
	s.generation = held.generation
	return accepted(contract.ClientSessionAnswer{Protocol: c.offer})
}
