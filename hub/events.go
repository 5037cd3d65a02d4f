package hub

import (
	"log/slog"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// The events of this duty.
const (
	HubBound           duty.EventType = "hub-bound"
	HubKeyEphemeral    duty.EventType = "hub-key-ephemeral"
	NetworkApplied     duty.EventType = "hub-network-applied"
	NetworkEmptied     duty.EventType = "hub-network-emptied"
	NetworkRefused     duty.EventType = "hub-network-refused"
	NetworkFailed      duty.EventType = "hub-network-failed"
	MemberConnected    duty.EventType = "hub-member-connected"
	MemberDisconnected duty.EventType = "hub-member-disconnected"
	MemberSuperseded   duty.EventType = "hub-member-superseded"
	MemberExpired      duty.EventType = "hub-member-expired"
	DuplicateKey       duty.EventType = "hub-duplicate-key"
	HandshakeRefused   duty.EventType = "hub-handshake-refused"
	CustodyEnded       duty.EventType = "hub-custody-ended"
)

// EventKinds is the table of the events, for the catalogue.
var EventKinds = []duty.EventKind{
	{Type: HubBound, Duty: Name, Level: slog.LevelInfo,
		Says: "The hub is bound to this address, with this public key. It holds no network yet."},
	{Type: HubKeyEphemeral, Duty: Name, Level: slog.LevelWarn,
		Says: "No key file is configured, so that the hub has made a key for this start alone. Every node needs a new credential after each restart before it can return. Make a key and name its file in hub-key-file."},
	{Type: NetworkApplied, Duty: Name, Level: slog.LevelInfo,
		Says: "A network took the place of the one before: its revision and how many members it has. The outcome tells whether Cloudly pushed it or was asked for it."},
	{Type: NetworkEmptied, Duty: Name, Level: slog.LevelWarn,
		Says: "Cloudly answered that the cluster has no network. The hub is empty and so many members were disconnected."},
	{Type: NetworkRefused, Duty: Name, Level: slog.LevelWarn,
		Says: "Cloudly sent a network that was not taken over: it broke a rule, or is not the successor of the one held. That one stays in force. Of one that it pushed Cloudly was told why; of one that it was asked for the reason here says it."},
	{Type: NetworkFailed, Duty: Name, Level: slog.LevelError,
		Says: "A network was admitted and could not be taken over: a mistake in the relay. The one before stays in force."},
	{Type: MemberConnected, Duty: Name, Level: slog.LevelInfo,
		Says: "A member of the network has proved its key and is connected, from this address."},
	{Type: MemberDisconnected, Duty: Name, Level: slog.LevelInfo,
		Says: "A member is not connected any more; the reason tells why, and the duration for how long it was. Packets to it are dropped until it dials again."},
	{Type: MemberSuperseded, Duty: Name, Level: slog.LevelInfo,
		Says: "A newer connection of a member took the place of the one that stood. That is normal when a node was restarted or its network changed."},
	{Type: MemberExpired, Duty: Name, Level: slog.LevelWarn,
		Says: "The time of a member is over: nothing is carried from it or to it any more. Cloudly renews it by a new network; look at the session to Cloudly and at the clock."},
	{Type: DuplicateKey, Duty: Name, Level: slog.LevelWarn,
		Says: "Two ends use the key of one member: connections replaced each other twice within 10 seconds or three times within 10 minutes, and the one that was to be replaced last still answered. Two machines have the same credential. One is changed for the other every 5 seconds at most. Only another key ends that for good."},
	{Type: HandshakeRefused, Duty: Name, Level: slog.LevelWarn,
		Says: "A handshake was refused, for this reason for the first time in a minute; the count tells how many were since the event before. The node is named where its key is known. It was told less than this."},
	{Type: CustodyEnded, Duty: Name, Level: slog.LevelWarn,
		Says: "Custody ended: the network was dropped and so many members were disconnected. The reason is the name that Cloudly gave."},
}

// recurring is what may happen very often, and is told now and then.
type recurring struct {
	told  time.Time
	since int // that were not told
}

// count counts one more and returns how many are to be told now, 0 for none yet.
func (r *recurring) count(now time.Time) (tell int) {
	r.since++
	if !r.told.IsZero() && now.Sub(r.told) < tellEvery {
		return 0
	}
	tell, r.told, r.since = r.since, now, 0
	return tell
}

// ended counts a handshake that has ended. node is empty where the key names none.
func (h *Hub) ended(how handshakeEnd, node string, from field.Field) {
	h.metrics.handshakes.Of(how).Inc()
	if !how.told() {
		return
	}
	h.mu.Lock()
	if n := h.refused[how].count(time.Now()); n > 0 {
		h.publish(HandshakeRefused, field.Reason(how.String()), field.Node(node), from, field.Count(n))
	}
	h.mu.Unlock()
	h.flush()
}
