package forward

import "serve.zone/relay/duty/field"

// direction is the way a request travels.
type direction uint8

const (
	up   direction = iota // from a node to Cloudly
	down                  // from Cloudly to a node
	directions
)

func (d direction) String() string {
	return [directions]string{up: "node-to-cloudly", down: "cloudly-to-node"}[d]
}

// field says the direction in a line or an event.
func (d direction) field() field.Field {
	if d == up {
		return field.Direction(field.PartyNode, field.PartyCloudly)
	}
	return field.Direction(field.PartyCloudly, field.PartyNode)
}
