package simulate

import (
	"maps"
	"slices"

	"serve.zone/relay/contract"
)

// configuration composes the cluster's document with members that the relay
// does not read, as the real one has them (contract §6.3).
func (c *Cloudly) configuration() contract.Raw {
	if c.cluster.document != nil {
		return c.cluster.document
	}
	data := compose().text("name", c.cfg.ClusterID).text("userId", "cluster-"+c.cfg.ClusterID).text("setupMode", "manual")
	switch {
	case c.cluster.origin != "":
		data.value("relay", contract.ClusterRelay{Origin: c.cluster.origin})
	case c.cluster.disabled:
		data.value("relay", contract.Raw("null"))
	}
	data.value("nodes", c.configuredNodes())
	document := compose().text("id", c.cfg.ClusterID).value("data", data.end()).end()
	return compose().value("configData", document).value("services", contract.Raw("[]")).end()
}

func (c *Cloudly) configuredNodes() contract.Raw {
	list := contract.Raw("[")
	for _, id := range slices.Sorted(maps.Keys(c.cluster.nodes)) {
		n := c.cluster.nodes[id]
		if n.foreign || n.removed {
			continue
		}
		data := compose().text("clusterId", c.cfg.ClusterID).text("nodeType", "vm").text("role", "worker")
		if n.corestore != "" {
			data.value("corestore", contract.NodeCorestore{Endpoint: n.corestore})
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, compose().text("id", id).value("data", data.end()).end()...)
	}
	return append(list, ']')
}

// pullConfiguration judges the one pull that carries an identity.
func (c *Cloudly) pullConfiguration(body []byte) verdict {
	request, err := contract.ReadClusterConfigurationRequest(body)
	if err != nil {
		return refused(err)
	}
	if _, v, ok := c.identify(request.Identity.JWT); !ok {
		return v
	}
	return verdict{answer: c.configuration()}
}
