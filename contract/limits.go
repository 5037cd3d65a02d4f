package contract

import "time"

// Limits of frames by the role of the socket they arrive on (contract §19).
const (
	// UnregisteredFrameLimit bounds the first frame of a socket that has not
	// registered: a registration is small, and nobody is known yet.
	UnregisteredFrameLimit = 64 << 10
	// NodeFrameLimit bounds a frame of a node. A report holds up to 1 MiB of
	// canonical JSON, may be written with longer escapes, and an answer may
	// repeat its request.
	NodeFrameLimit = 4 << 20
	// IngressFrameLimit bounds a frame of the ingress, whose largest answer is a
	// page of traffic statistics.
	IngressFrameLimit = 1 << 20
	// IngressRequestLimit bounds what an ingress asks for: a registration, a pull
	// of the table.
	IngressRequestLimit = 64 << 10
	// CloudlyFrameLimit bounds a frame of Cloudly; the route table is the largest.
	CloudlyFrameLimit = 16 << 20
	// RouteTableLimit bounds an encoded route table so that it fits
	// CloudlyFrameLimit with its envelope (design §4, row §11).
	RouteTableLimit = 15 << 20
	// TrafficPageLimit bounds a page of traffic statistics.
	TrafficPageLimit = 1 << 20
	// InFlightLimit bounds the bytes of all requests in flight, so that many
	// sockets at their limits cannot exhaust memory.
	InFlightLimit = 256 << 20
	// NodeInFlightLimit bounds the bytes of one node's requests in flight.
	NodeInFlightLimit = 8 << 20
	// NodeRequestsInFlight bounds how many requests of one node socket are in
	// flight; further ones are refused, not queued (contract §16).
	NodeRequestsInFlight = 64
	// ListenerSockets bounds the sockets of the node listener (contract §16).
	ListenerSockets = 1024
)

// Limits of values that pass or are held (contract §19, §19.1).
const (
	// CapturedValueLimit bounds the canonical JSON of any captured
	// runtime-network value.
	CapturedValueLimit = 1 << 20
	// VPNNetworkLimit bounds the canonical JSON of a VPN network.
	VPNNetworkLimit = 917504
	// MaximumVPNNodes bounds the nodes of a network.
	MaximumVPNNodes = 256
	// MaximumVPNPrefixes bounds the workload prefixes of one node.
	MaximumVPNPrefixes = 128
	// MaximumVPNGrants bounds the grants of a network.
	MaximumVPNGrants = 4096
	// MaximumAuthorityIDBytes bounds an authority id in UTF-8 bytes, which is
	// what a hub counts.
	MaximumAuthorityIDBytes = 128
	// MaximumControlPrefixLength keeps room for the hub and one node.
	MaximumControlPrefixLength = 30
	// MaximumEscrowedRenewals bounds the renewals of one run.
	MaximumEscrowedRenewals = 32
	// MaximumDNSLease bounds one window, measured from its issuedAt.
	MaximumDNSLease = 900_000 * time.Millisecond
	// MaximumEscrowHorizon bounds a run from its first issuedAt to its last
	// expiresAt: how long a cluster lives without its control plane.
	MaximumEscrowHorizon = 14_400_000 * time.Millisecond
	// MaximumSignatureLength bounds the text of a signature, which the relay
	// never verifies (contract O6).
	MaximumSignatureLength = 128
	// MaximumTrafficLimit bounds the limit of a traffic page request. OWN
	// (contract O17).
	MaximumTrafficLimit = 256
)

// Limits of Corestore's bodies (contract §12, §19.1).
const (
	// RestoreChunkLimit bounds a decoded chunk of isolated restore.
	RestoreChunkLimit = 512 << 10
	// RestoreObjectChunks bounds the chunks of one restored object.
	RestoreObjectChunks = 4096
	// RestoreObjectLimit bounds one restored object.
	RestoreObjectLimit = 64 << 20
	// SnapshotPayloadLimit bounds a database snapshot; its framed original is
	// one byte larger.
	SnapshotPayloadLimit = 96 << 20
	// ClosurePlaintextLimit bounds the plaintext of a database closure.
	ClosurePlaintextLimit = 128 << 20
	// ClosureLimit bounds a database closure as it is streamed.
	ClosureLimit = 256 << 20
	// PackageMetadataLimit bounds Corestore's package control metadata.
	PackageMetadataLimit = 16 << 10
	// CorestoreAnswerLimit bounds an answer of Corestore's control paths. OWN.
	CorestoreAnswerLimit = 4 << 20
)

// Timers that the contract states or fixes (contract §19.1, O19, O38).
const (
	// RefusedOfferRetryInterval is how long a side whose offer was refused waits
	// before it offers again: only an operator can change the answer
	// (refusedOfferRetryIntervalMs).
	RefusedOfferRetryInterval = 300_000 * time.Millisecond
	// UndispatchedRetryInterval is how long the relay waits after a refusal that
	// only Cloudly's records can lift. OWN (contract O19).
	UndispatchedRetryInterval = 300_000 * time.Millisecond
	// MinimumIngressRetry and MaximumIngressRetry bound the retryAfterMs of a
	// refused ingress registration.
	MinimumIngressRetry = 1_000 * time.Millisecond
	MaximumIngressRetry = 300_000 * time.Millisecond
	// ForwardTimeout bounds a forwarded call on one hop (contract O38).
	ForwardTimeout = 30 * time.Second
	// RegistrationTimeout bounds registerClusterRelay (contract O38).
	RegistrationTimeout = 15 * time.Second
	// FirstRegistrationTimeout is how long a socket may stay unregistered
	// (contract §16).
	FirstRegistrationTimeout = 30 * time.Second
	// ClosureIdleTimeout ends a closure that moves no byte (contract O38).
	ClosureIdleTimeout = 60 * time.Second
	// BackupTimeout bounds a whole backup (contract O38).
	BackupTimeout = 60 * time.Minute
)
