package field

// Party is an end of a connection of the relay.
type Party uint8

// The parties that messages go between.
const (
	PartyRelay Party = iota
	PartyCloudly
	PartyNode
	PartyIngress
	PartyCorestore
	PartyRegistry
	partyCount
)

var parties = [partyCount]string{
	PartyRelay: "relay", PartyCloudly: "cloudly", PartyNode: "node",
	PartyIngress: "ingress", PartyCorestore: "corestore", PartyRegistry: "registry",
}

// Direction says who sent to whom, as "node-to-cloudly".
func Direction(from, to Party) Field {
	if from >= partyCount || to >= partyCount {
		return Field{key: keyDirection, kind: kindWithheld}
	}
	return text(keyDirection, parties[from]+"-to-"+parties[to])
}
