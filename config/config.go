package config

import (
	"log/slog"
	"net/netip"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
)

// Config is what a relay is told before it starts. Load makes it; what Load
// returns has been judged.
type Config struct {
	Cloudly Cloudly
	// NodeID is the cluster node that this relay runs on (contract §2.1).
	NodeID string
	// Listen is where the node listener binds: IPv4, never a wildcard. Port 0
	// lets the kernel choose and is admitted with AllowLoopback only.
	Listen netip.AddrPort
	Hub    Hub
	// OperatorListen is where the operator endpoint binds. The address may be
	// IPv6, and a wildcard.
	OperatorListen netip.AddrPort
	TLS            TLS
	Registry       Registry
	Log            Log
	// AllowLoopback admits loopback addresses and port 0 where the relay listens,
	// for tests and demonstrations.
	AllowLoopback bool
	Protocol      Protocol
}

// Cloudly is how the relay reaches Cloudly and what it proves itself with.
type Cloudly struct {
	// URL is a canonical origin: https, or http to a loopback address.
	URL string
	// CAFile is a PEM file of roots beside the system's; empty for the system's
	// alone.
	CAFile string
	// CredentialFile holds the bearer (contract §5.1), mode 0600.
	CredentialFile string
}

// Hub is the VPN hub.
type Hub struct {
	// Listen is where the hub binds, IPv4 and UDP. The zero value means that
	// there is no hub.
	Listen netip.AddrPort
	// KeyFile holds the Noise private key, mode 0600; empty for a new key at each
	// start.
	KeyFile string
	// Workers is how many sockets share the packets, 1 to 64 (design §5.2).
	Workers int
}

// TLSSource says where the certificate of the origin comes from.
type TLSSource string

// The certificate sources.
const (
	FromFiles   TLSSource = "files"
	FromACME    TLSSource = "acme"
	FromCloudly TLSSource = "cloudly"
)

// TLS is where the certificate of the origin comes from.
type TLS struct {
	Source TLSSource
	// CertFile and KeyFile are a PEM pair; both given when Source is FromFiles.
	CertFile, KeyFile string
	ACME              ACME
}

// Challenge is how an ACME server is shown that the origin's name is ours.
type Challenge string

// The ACME challenges.
const (
	TLSALPN01 Challenge = "tls-alpn-01" // RFC 8737
	DNS01     Challenge = "dns-01"      // RFC 8555 §8.4
)

// ACME is how a certificate is asked for (RFC 8555). Its fields count when the
// source is FromACME; Directory, Storage and Challenge are given then.
type ACME struct {
	Directory string // URL of the directory
	Email     string // contact, may be empty
	CAFile    string // PEM roots for the directory beside the system's, may be empty
	Storage   string // folder of account and certificates, mode 0700
	Challenge Challenge
	// DNSServer takes dynamic updates (RFC 2136), as host:port, signed with the
	// key in TSIGFile; both given when Challenge is DNS01.
	DNSServer string
	TSIGFile  string
}

// Registry is where image pulls go (contract §15).
type Registry struct {
	// Upstream is a canonical origin; Cloudly's unless told otherwise.
	Upstream string
	// RealmOrigin is the origin that the upstream's token realm must have; the
	// upstream's unless told otherwise.
	RealmOrigin string
}

// Log is what the log shows and how.
type Log struct {
	Level  slog.Level
	Format duty.Format
}

// Protocol holds what the seeds leave open: names and paths that a peer's
// release may need otherwise. The defaults are the contract's decisions.
type Protocol struct {
	// Offer is the release that the relay states and the oldest it talks to
	// (contract O26). It is valid.
	Offer contract.Offer
	// SocketPath is the path of Cloudly's socket.
	SocketPath string
	// ExchangeMethod exchanges the bearer for an identity (contract O4).
	ExchangeMethod string
	// ConfigurationPushMethod and ConfigurationPullMethod carry the cluster
	// configuration (contract O11).
	ConfigurationPushMethod, ConfigurationPullMethod string
	// NodeToCloudly and CloudlyToNode are forwarded beside the catalogue's
	// methods, each in its one direction (contract O14).
	NodeToCloudly, CloudlyToNode []string
	Corestore                    Corestore
}

// Corestore holds the paths of a Corestore's control API and how long a call may
// take (contract O12, O30).
type Corestore struct {
	InventoryPath, LegacyResourcesPath, BackupPath, RestorePath, PrunePath string
	IsolatedPreparePath, IsolatedStagePath, IsolatedProgressPath           string
	IsolatedExecutePath, IsolatedCleanupPath                               string

	// Timeout bounds a call whose own limit does not stand below.
	Timeout time.Duration
	// ExecuteTimeout bounds the execution of an isolated restore.
	ExecuteTimeout time.Duration
	// BackupTimeout bounds a whole backup or restore of a service.
	BackupTimeout time.Duration
}
