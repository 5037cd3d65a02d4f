package field

// Key is the name of a field. The set is closed.
type Key uint8

const (
	keyNone Key = iota
	keyMethod
	keyNode
	keyDirection
	keyRole
	keyOutcome
	keyRefusal
	keyReason
	keyState
	keyDuty
	keyEvent
	keyCheck
	keySource
	keyError
	keyPanic
	keyStack
	keyDigest
	keyPublicKey
	keyVersion
	keyAddress
	keyPrefix
	keyHost
	keyOrigin
	keyPath
	keyBytes
	keyCount
	keyLimit
	keyDuration
	keyNext
	keyExpires
	keyRevision
	keySequence
	keyGeneration
	keySeq
	keyAttempt
	keyStream
	keyCloseCode
	keyHTTPStatus
	keySuppressed
	numKeys // how many keys there are, the empty one included
)

// rule is what a key allows.
type rule struct {
	name string
	says string
	// max and fits bound the text of the keys that have one; fits is nil for
	// numbers and times.
	max  int
	fits func(string) bool
	// shaped values are runs of hexadecimal or base64 by nature, so the net
	// of package secret would withhold every one of them.
	shaped bool
	// own values are made by this program alone: a foreign record that has
	// such a key is not believed (FromAttr).
	own bool
}

// Bounds of the texts, in bytes.
const (
	maxName    = 64  // longest name of the contract has 43 characters
	maxMethod  = 128 // design §4 O14 allows configured names; known ones end at 43
	maxNode    = 128 // contract §2.1
	maxAddress = 64  // an IPv6 address with its port has at most 47
	maxHost    = 253 // RFC 1035 §2.3.4
	maxOrigin  = maxHost + len("https://:65535")
	maxPath    = 256 // enough for a mounted secret; PATH_MAX is for machines
	maxVersion = 64  // contract.MaximumReleaseVersionLength
	maxDigest  = len("sha256:") + 64
	maxKey     = 44   // 32 bytes in base64
	maxError   = 256  // one line of a terminal or two
	maxStack   = 4096 // maxFrames frames of at most maxFrame bytes
)

var rules = [numKeys]rule{
	keyMethod:     {name: "method", says: "name of a method of the wire", max: maxMethod, fits: isMethod},
	keyNode:       {name: "node", says: "id of a cluster node", max: maxNode, fits: isNode},
	keyDirection:  {name: "direction", says: "who sent to whom", max: maxName, fits: isName},
	keyRole:       {name: "role", says: "what a socket is: unbound, node, ingress, cloudly", max: maxName, fits: isName},
	keyOutcome:    {name: "outcome", says: "how it ended", max: maxName, fits: isName},
	keyRefusal:    {name: "refusal", says: "name of a refusal of the contract", max: maxName, fits: isName},
	keyReason:     {name: "reason", says: "name of the cause", max: maxName, fits: isName},
	keyState:      {name: "state", says: "name of the state entered", max: maxName, fits: isName},
	keyDuty:       {name: "duty", says: "which duty of the relay", max: maxName, fits: isName},
	keyEvent:      {name: "event", says: "type of an event", max: maxName, fits: isName},
	keyCheck:      {name: "check", says: "name of a readiness check", max: maxName, fits: isName},
	keySource:     {name: "source", says: "which foreign logger a line came from", max: maxName, fits: isName, own: true},
	keyError:      {name: "error", says: "an error, told from its structured parts", max: maxError, fits: isPrintable, own: true},
	keyPanic:      {name: "panic", says: "what a recovered panic was, without its values", max: maxError, fits: isPrintable, own: true},
	keyStack:      {name: "stack", says: "functions of a recovered panic, innermost first", max: maxStack, fits: isPrintable, shaped: true, own: true},
	keyDigest:     {name: "digest", says: "SHA-256 digest", max: maxDigest, fits: isDigest, shaped: true, own: true},
	keyPublicKey:  {name: "publicKey", says: "public key in base64", max: maxKey, fits: isKey, shaped: true, own: true},
	keyVersion:    {name: "version", says: "release version", max: maxVersion, fits: isVersion},
	keyAddress:    {name: "address", says: "network address with its port", max: maxAddress, fits: isAddress},
	keyPrefix:     {name: "prefix", says: "network prefix", max: maxAddress, fits: isPrefix},
	keyHost:       {name: "host", says: "host name or address", max: maxHost, fits: isHost},
	keyOrigin:     {name: "origin", says: "scheme, host and port", max: maxOrigin, fits: isOrigin},
	keyPath:       {name: "path", says: "path of a file the operator named", max: maxPath, fits: isPath, shaped: true, own: true},
	keyBytes:      {name: "bytes", says: "number of bytes"},
	keyCount:      {name: "count", says: "number of things"},
	keyLimit:      {name: "limit", says: "the bound that was met"},
	keyDuration:   {name: "durationSeconds", says: "how long it took"},
	keyNext:       {name: "nextSeconds", says: "how long until it is tried again", own: true},
	keyExpires:    {name: "expiresAt", says: "when it ends, RFC 3339 in UTC"},
	keyRevision:   {name: "revision", says: "revision of a table or network"},
	keySequence:   {name: "sequence", says: "sequence number of the contract"},
	keyGeneration: {name: "generation", says: "generation of a credential or assignment"},
	keySeq:        {name: "seq", says: "number of an event in /events", own: true},
	keyAttempt:    {name: "attempt", says: "which try this was, from 1"},
	keyStream:     {name: "stream", says: "number of a stream on its socket"},
	keyCloseCode:  {name: "closeCode", says: "WebSocket close code"},
	keyHTTPStatus: {name: "httpStatus", says: "HTTP status code"},
	keySuppressed: {name: "suppressed", says: "lines of this name left out since the last one", own: true},
}

// keyNamed finds a key by its name.
var keyNamed = func() map[string]Key {
	named := make(map[string]Key, numKeys)
	for k := keyNone + 1; k < numKeys; k++ {
		named[rules[k].name] = k
	}
	return named
}()

// String returns the key as it is written in a line.
func (k Key) String() string { return rules[k].name }

// Meaning is one row of the list of keys.
type Meaning struct {
	Key  string // as written
	Says string // what its value is
}

// Keys lists every key a line can have, in a fixed order. The list is API:
// the operator's manual is made from it.
func Keys() []Meaning {
	list := make([]Meaning, 0, numKeys-1)
	for k := keyNone + 1; k < numKeys; k++ {
		list = append(list, Meaning{Key: rules[k].name, Says: rules[k].says})
	}
	return list
}
