package node

import (
	"sync/atomic"

	"serve.zone/relay/hub/tunnel"
)

// Drop is why a packet was dropped on this side. What the hub drops, the hub counts.
type Drop uint8

// The drops, by direction: out of the device, and into it.
const (
	DropOutNoTunnel  Drop = iota // there was no tunnel
	DropOutNotIPv4               // the relay carries IPv4 alone
	DropOutLength                // longer than the network's inner MTU, or no packet
	DropOutQueueFull             // QUIC takes less than the device gives
	DropOutPath                  // the path takes not even two parts
	DropOutLost                  // it waited when the tunnel was lost
	DropInQueueFull              // the device takes less than the hub sends
	DropInDevice                 // the device refused the packets of a batch

	dropEnd
)

var dropNames = [dropEnd]string{
	DropOutNoTunnel:  "out-no-tunnel",
	DropOutNotIPv4:   "out-not-ipv4",
	DropOutLength:    "out-length",
	DropOutQueueFull: "out-queue-full",
	DropOutPath:      "out-path-too-small",
	DropOutLost:      "out-tunnel-lost",
	DropInQueueFull:  "in-queue-full",
	DropInDevice:     "in-device",
}

// String returns the drop's name.
func (d Drop) String() string {
	if d >= dropEnd {
		return "unknown"
	}
	return dropNames[d]
}

// traffic is counted where packets pass, over all tunnels of a client.
type traffic struct {
	outPackets, outBytes, outSplit atomic.Uint64
	inPackets, inBytes, inJoined   atomic.Uint64
	dropped                        [dropEnd]atomic.Uint64
	refused                        [256]atomic.Uint64 // by tunnel.JoinResult
	expired, evicted               atomic.Uint64      // of the tunnels before this one
	unsent, narrowings             atomic.Uint64
	echoes                         [echoes]atomic.Uint64 // of ours that the hub has answered
	deviceErrors                   atomic.Uint64
}

func (t *traffic) drop(why Drop, packets uint64) { t.dropped[why].Add(packets) }

// Traffic counts packets since Run began.
type Traffic struct {
	OutPackets uint64 `json:"outPackets"` // handed to QUIC
	OutBytes   uint64 `json:"outBytes"`
	OutSplit   uint64 `json:"outSplit"`  // of these, those that went in two parts
	InPackets  uint64 `json:"inPackets"` // handed to the device
	InBytes    uint64 `json:"inBytes"`
	InJoined   uint64 `json:"inJoined"` // of these and those dropped, those that came in two parts

	Dropped map[string]uint64 `json:"dropped"` // by the name of a Drop
	Refused map[string]uint64 `json:"refused"` // datagrams by the name of a tunnel.JoinResult

	PartsExpired uint64 `json:"partsExpired"` // whose other part did not come in time
	PartsEvicted uint64 `json:"partsEvicted"` // whose place a newer one took

	// Narrowings is how often the path to or from the hub was found to carry less than it
	// had, and the tunnel moved to another port, so that QUIC measures it anew.
	Narrowings uint64 `json:"narrowings"`

	Unsent       uint64 `json:"unsent"`       // UDP datagrams that the machine had no way for
	DeviceErrors uint64 `json:"deviceErrors"` // reads of the device that failed
}

func (t *traffic) read() Traffic {
	r := Traffic{
		OutPackets: t.outPackets.Load(), OutBytes: t.outBytes.Load(), OutSplit: t.outSplit.Load(),
		InPackets: t.inPackets.Load(), InBytes: t.inBytes.Load(), InJoined: t.inJoined.Load(),
		Dropped: map[string]uint64{}, Refused: map[string]uint64{},
		PartsExpired: t.expired.Load(), PartsEvicted: t.evicted.Load(),
		Narrowings: t.narrowings.Load(),
		Unsent:     t.unsent.Load(), DeviceErrors: t.deviceErrors.Load(),
	}
	for d := range dropEnd {
		r.Dropped[d.String()] = t.dropped[d].Load()
	}
	for _, refusal := range tunnel.JoinRefusals() {
		r.Refused[refusal.String()] = t.refused[refusal].Load()
	}
	return r
}
