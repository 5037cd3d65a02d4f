package cloudly

import (
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// Waits after a plain loss (contract §5.8).
const (
	// firstDelay is the longest first wait, which doubles with each failure.
	firstDelay = time.Second
	// longestDelay bounds every wait after a plain loss, jitter included.
	longestDelay = 60 * time.Second
	// standsAfter is how long a session must have stood before its loss counts
	// as the first again. A peer that accepts and dies is met ever less often.
	standsAfter = 60 * time.Second
)

// Bounds of calls.
const (
	// callWait bounds the wait for one answer of the handshake and of the
	// registration (contract O38). Three seconds each way fit several times.
	callWait = contract.RegistrationTimeout
	// callBound bounds a whole call: a peer may ask for retries, each after a
	// time of its own choosing.
	callBound = 4 * callWait
	// configurationWait and configurationBound are the same for the pull of the
	// cluster configuration, whose answer may be large.
	configurationWait  = contract.ForwardTimeout
	configurationBound = 4 * configurationWait
	// socketWait is how long an attempt waits for the end of the socket before
	// it: typedsocket needs four seconds when the peer is gone.
	socketWait = 5 * time.Second
	// pullWait is how long a custody drop waits for a pull whose context has
	// ended, so that nothing it had in hand is taken over after the drop.
	pullWait = 500 * time.Millisecond
	// endWait bounds how long Run waits for its goroutines at its end.
	endWait = 10 * time.Second
)

// Bounds of the identity.
const (
	// unstatedLife is how long an identity counts as good whose end the answer
	// does not state: the pulls after a registration use it at once.
	unstatedLife = 15 * time.Minute
)

// Bounds of the credential file.
const (
	// credentialEvery is the distance of two looks at the credential. Reading
	// three hundred bytes so often costs nothing, and sees what a change of
	// links, mounts or times would hide.
	credentialEvery = 3 * time.Second
	// credentialWait bounds how long an attempt waits for the credential: a file
	// system may hang, and its reader with it.
	credentialWait = 5 * time.Second
	// maximumCredentialBytes is above the longest bearer, which has 283.
	maximumCredentialBytes = 1024
)

// Bounds of what Cloudly sends.
const (
	// frameClose is from where on a frame costs the socket. Below it a request
	// above contract.CloudlyFrameLimit is refused by name (contract §19).
	frameClose = 2 * contract.CloudlyFrameLimit
	// heldRequests and heldBytes bound the requests that wait for the outcome of
	// the first registration on a socket. Cloudly sends none before it has
	// accepted, so they wait for as long as one answer takes to be read.
	heldRequests = 64
	heldBytes    = 2 * contract.CloudlyFrameLimit
	// waitingPushes bounds the configuration pushes that wait for the loop, each
	// at most a frame. A newer one is refused: its sender still has it.
	waitingPushes = 2
)

// socketLimits are the bounds of the socket to Cloudly (contract §19).
var socketLimits = typedsocket.Limits{Frame: contract.CloudlyFrameLimit, Close: frameClose}
