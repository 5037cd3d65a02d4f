package client

import (
	"encoding/json"
	"errors"
	"time"
)

// SchemaVersion is the number of the schema of /status that Document is made for.
const SchemaVersion = 1

// Document is what a person is shown of the answer of /status: a few of its members.
// Sizes are bytes, and every time is one of the relay's clock. A duty that the relay does
// not have, or whose section could not be had, is nil.
type Document struct {
	Schema int `json:"schema"`
	Build  struct {
		Version string `json:"version"`
	} `json:"build"`
	Start     time.Time `json:"start"`
	Now       time.Time `json:"now"` // when the answer was made
	Draining  bool      `json:"draining"`
	Readiness Readiness `json:"readiness"`
	Duties    Duties    `json:"duties"`
	Missing   []Missing `json:"missing"` // sections that could not be had

	// Partial tells that the answer has another schema, or a member of another type than
	// here, so that more of it than usual may not be shown.
	Partial bool `json:"-"`
}

// Duties are the sections of the duties, each under its duty's name.
type Duties struct {
	Relay    *RelaySection    `json:"relay"`
	Cloudly  *CloudlySection  `json:"cloudly"`
	Forward  *ForwardSection  `json:"forward"`
	Listener *ListenerSection `json:"listener"`
	Escrow   *EscrowSection   `json:"escrow"`
	Ingress  *IngressSection  `json:"ingress"`
	Hub      *HubSection      `json:"hub"`
	TLS      *TLSSection      `json:"tls"`
}

// Missing says why a duty has no section.
type Missing struct {
	Duty   string `json:"duty"`
	Reason string `json:"reason"`
}

var errNoDocument = errors.New("ask the relay for /status: the answer is JSON, and no status document")

// ReadDocument reads what Client.Status returned. What is absent stays zero, what is
// unknown is left out, and what has another type than here is both: an older relay and a
// newer one can be shown, as far as they are understood. The error is that of a text
// which is no status document.
func ReadDocument(text []byte) (Document, error) {
	var d Document
	err := json.Unmarshal(text, &d)
	if d.Schema == 0 { // of a text that is no JSON nothing is read at all
		return Document{}, errNoDocument
	}
	d.Partial = err != nil || d.Schema != SchemaVersion
	return d, nil
}

// RelaySection is what the relay says about itself.
type RelaySection struct {
	Phase         string `json:"phase"` // starting, serving, draining or stopped
	NodeID        string `json:"nodeId"`
	CloudlyOrigin string `json:"cloudlyOrigin"` // where Cloudly is looked for
}

// CloudlySection is the session to Cloudly.
type CloudlySection struct {
	State                 string          `json:"state"`
	Since                 time.Time       `json:"since"` // of State
	Registered            bool            `json:"registered"`
	RegisteredChanged     time.Time       `json:"registeredChanged"`
	Attempts              uint64          `json:"attempts"`
	Failures              int64           `json:"failures"` // in a row
	NextAttemptAt         time.Time       `json:"nextAttemptAt"`
	LastTrouble           string          `json:"lastTrouble"` // empty while a session stands
	AcceptedRegistrations uint64          `json:"acceptedRegistrations"`
	Origin                string          `json:"origin"` // under which nodes reach the relay
	LastRefusal           *CloudlyRefusal `json:"lastRefusal"`
	CredentialFault       string          `json:"credentialFault"`
}

// CloudlyRefusal is what Cloudly refused last.
type CloudlyRefusal struct {
	Name     string    `json:"name"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`
	Standing bool      `json:"standing"` // it has to be lifted
}

// ForwardSection is the nodes' sessions.
type ForwardSection struct {
	Attached      bool          `json:"attached"` // a session to Cloudly stands
	Nodes         []CarriedNode `json:"nodes"`
	InFlight      InFlight      `json:"inFlight"`
	InFlightLimit uint64        `json:"inFlightLimitBytes"`
}

// InFlight is what waits for an answer.
type InFlight struct {
	NodeRequests    uint64 `json:"nodeRequests"`
	CloudlyRequests uint64 `json:"cloudlyRequests"`
	Bytes           uint64 `json:"bytes"`
}

// CarriedNode is a node whose session is carried.
type CarriedNode struct {
	ID          string    `json:"id"`
	Since       time.Time `json:"since"`
	Confirmed   bool      `json:"confirmed"` // by the session to Cloudly that stands, or stood last
	InFlight    InFlight  `json:"inFlight"`
	ToCloudly   Carried   `json:"toCloudly"`
	FromCloudly Carried   `json:"fromCloudly"`
	Refused     uint64    `json:"refused"`
	LastRefusal string    `json:"lastRefusal"`
}

// Carried is what went one way.
type Carried struct {
	Requests uint64 `json:"requests"`
	Bytes    uint64 `json:"bytes"` // of requests and answers
}

// ListenerSection is the nodes' sockets.
type ListenerSection struct {
	Address string        `json:"address"`
	Sockets Level         `json:"sockets"`
	Unbound uint64        `json:"unbound"` // sockets without a role
	Bound   []BoundSocket `json:"bound"`
}

// Level is how many of a bounded number there are.
type Level struct {
	Open  uint64 `json:"open"`
	Limit uint64 `json:"limit"`
}

// BoundSocket is a socket with a role.
type BoundSocket struct {
	Role        string    `json:"role"` // node or ingress
	Node        string    `json:"node"`
	Address     string    `json:"address"`
	Since       time.Time `json:"since"`
	QueuedBytes uint64    `json:"queuedBytes"` // that wait to be sent to it
}

// TLSSection is the certificate that is served.
type TLSSection struct {
	State        string    `json:"state"` // pending, valid, expired or not-yet-valid
	Names        []string  `json:"names"`
	NotBefore    time.Time `json:"notBefore"`
	NotAfter     time.Time `json:"notAfter"`
	Refused      string    `json:"refused"` // why what stands in the files is not served
	RefusedSince time.Time `json:"refusedSince"`
}
