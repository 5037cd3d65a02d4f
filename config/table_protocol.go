package config

import (
	"time"

	"serve.zone/relay/contract"
)

// Keys of the protocol section that rules between settings refer to.
const (
	keyInterfacesVersion  = "protocol.interfacesVersion"
	keyMinimumPeerVersion = "protocol.minimumPeerVersion"
	keyForward            = "protocol.forward"
	keyNodeToCloudly      = keyForward + ".nodeToCloudly"
	keyCloudlyToNode      = keyForward + ".cloudlyToNode"
	keyExchangeMethod     = "protocol.exchangeMethod"
	keyPushMethod         = "protocol.configurationPushMethod"
	keyPullMethod         = "protocol.configurationPullMethod"
)

// Sections of the protocol's settings.
const (
	sectionProtocol  = "Protocol"
	sectionCorestore = "Corestore"
)

// The release that the relay states and the oldest it talks to. OWN (contract
// O26).
const (
	defaultInterfacesVersion  = "32.44.0"
	defaultMinimumPeerVersion = "32.0.0"
)

// protocolSettings are what the seeds leave open. They stand in the file alone:
// they follow the release of the peers, not the place where a relay runs.
func protocolSettings() []Setting {
	return append([]Setting{
		{Key: keyInterfacesVersion, Kind: KindVersion, Default: defaultInterfacesVersion, Section: sectionProtocol,
			Meaning: "the release that the relay states in its offer",
			set:     into(readVersion, func(c *Config) *string { return &c.Protocol.Offer.InterfacesVersion })},
		{Key: keyMinimumPeerVersion, Kind: KindVersion, Default: defaultMinimumPeerVersion, Section: sectionProtocol,
			Meaning: "the oldest release it talks to: of the same major and not above the one stated",
			set:     into(readVersion, func(c *Config) *string { return &c.Protocol.Offer.MinimumPeerVersion })},
		{Key: "protocol.socketPath", Kind: KindPath, Default: "/", Section: sectionProtocol,
			Meaning: "path of Cloudly's socket",
			set:     into(readPath, func(c *Config) *string { return &c.Protocol.SocketPath })},
		{Key: keyExchangeMethod, Kind: KindMethod, Default: contract.DefaultMethodExchangeIdentity, Section: sectionProtocol,
			Meaning: "method that exchanges the bearer for an identity",
			set:     into(readMethod, func(c *Config) *string { return &c.Protocol.ExchangeMethod })},
		{Key: keyPushMethod, Kind: KindMethod, Default: contract.DefaultMethodPushConfiguration, Section: sectionProtocol,
			Meaning: "method with which Cloudly pushes the cluster configuration",
			set:     into(readMethod, func(c *Config) *string { return &c.Protocol.ConfigurationPushMethod })},
		{Key: keyPullMethod, Kind: KindMethod, Default: contract.DefaultMethodGetConfiguration, Section: sectionProtocol,
			Meaning: "method with which the relay pulls it",
			set:     into(readMethod, func(c *Config) *string { return &c.Protocol.ConfigurationPullMethod })},
		{Key: keyNodeToCloudly, Kind: KindMethods, Unset: "none", Section: sectionProtocol,
			Meaning: "further methods that pass from nodes to Cloudly",
			set:     intoList(func(c *Config) *[]string { return &c.Protocol.NodeToCloudly })},
		{Key: keyCloudlyToNode, Kind: KindMethods, Unset: "none", Section: sectionProtocol,
			Meaning: "further methods that pass from Cloudly to nodes",
			set:     intoList(func(c *Config) *[]string { return &c.Protocol.CloudlyToNode })},
	}, corestoreSettings()...)
}

// corestoreSettings are the operations of a Corestore. /control/legacy-resources
// and the folder /isolated-restore are stated by the seeds; the other paths are
// OWN (contract O12, O30).
func corestoreSettings() []Setting {
	path := func(name, path, meaning string, field func(*Corestore) *string) Setting {
		return Setting{Key: "protocol.corestore." + name, Kind: KindPath, Default: path, Section: sectionCorestore,
			Meaning: meaning,
			set:     into(readPath, func(c *Config) *string { return field(&c.Protocol.Corestore) })}
	}
	timeout := func(name string, limit time.Duration, meaning string, field func(*Corestore) *time.Duration) Setting {
		return Setting{Key: "protocol.corestore." + name, Kind: KindDuration, Default: writeDuration(limit), Section: sectionCorestore,
			Meaning: meaning,
			set:     into(readDuration, func(c *Config) *time.Duration { return field(&c.Protocol.Corestore) })}
	}
	return []Setting{
		path("inventoryPath", "/control/inventory", "what a node stores",
			func(c *Corestore) *string { return &c.InventoryPath }),
		path("legacyResourcesPath", "/control/legacy-resources", "what an earlier release left",
			func(c *Corestore) *string { return &c.LegacyResourcesPath }),
		path("backupPath", "/control/backup", "backup of a service",
			func(c *Corestore) *string { return &c.BackupPath }),
		path("restorePath", "/control/restore", "restore of a service",
			func(c *Corestore) *string { return &c.RestorePath }),
		path("prunePath", "/control/prune", "pruning of a node's archive",
			func(c *Corestore) *string { return &c.PrunePath }),
		path("isolatedPreparePath", "/isolated-restore/prepare", "isolated restore: begin",
			func(c *Corestore) *string { return &c.IsolatedPreparePath }),
		path("isolatedStagePath", "/isolated-restore/write", "isolated restore: one chunk of the archive",
			func(c *Corestore) *string { return &c.IsolatedStagePath }),
		path("isolatedProgressPath", "/isolated-restore/status", "isolated restore: how far it is",
			func(c *Corestore) *string { return &c.IsolatedProgressPath }),
		path("isolatedExecutePath", "/isolated-restore/execute", "isolated restore: put it in place",
			func(c *Corestore) *string { return &c.IsolatedExecutePath }),
		path("isolatedCleanupPath", "/isolated-restore/cleanup", "isolated restore: remove what was staged",
			func(c *Corestore) *string { return &c.IsolatedCleanupPath }),
		timeout("timeout", contract.ForwardTimeout, "limit of a call that has none of its own below",
			func(c *Corestore) *time.Duration { return &c.Timeout }),
		timeout("executeTimeout", 10*time.Minute, "limit of the execution of an isolated restore",
			func(c *Corestore) *time.Duration { return &c.ExecuteTimeout }),
		timeout("backupTimeout", contract.BackupTimeout, "limit of a whole backup or restore of a service",
			func(c *Corestore) *time.Duration { return &c.BackupTimeout }),
	}
}
