package simulate

import "serve.zone/relay/contract"

// pull answers what a relay asks for itself from the model. None of these
// requests says anything, except that for the configuration (contract §8.4).
func (c *Cloudly) pull(s *relaySocket, method string, body []byte) verdict {
	if method == c.cfg.GetConfigurationMethod {
		return c.pullConfiguration(body)
	}
	answer := c.pulled(method)
	if answer == nil {
		if m, known := contract.LookupMethod(method); !known || !m.Takes(contract.RelayToCloudly) {
			c.violated(NotForCloudly, s.number, method)
		}
		return noSuchMethod()
	}
	if _, err := contract.ReadEmpty(method+" request", body); err != nil {
		return refused(err)
	}
	return accepted(answer)
}

// pulled returns the answer to a pull, nil when the method is none.
func (c *Cloudly) pulled(method string) appender {
	switch method {
	case contract.MethodGetVPNNetwork:
		return contract.GetVPNNetworkAnswer{Network: c.cluster.network}
	case contract.MethodGetRouteTable:
		return contract.RouteTableAnswer{Table: c.cluster.table}
	case contract.MethodGetPlatformDesiredState:
		return c.cluster.desired
	case contract.MethodGetSecretRecipientState:
		return c.cluster.recipients
	}
	return nil
}
