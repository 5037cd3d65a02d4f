package escrow

import (
	"log/slog"

	"serve.zone/relay/duty"
)

// The events of this duty.
const (
	RunHeld             duty.EventType = "renewals-held"
	RunEmptied          duty.EventType = "renewals-emptied"
	RunDropped          duty.EventType = "renewals-dropped"
	HoldRefused         duty.EventType = "renewals-hold-refused"
	CustodyDropped      duty.EventType = "renewals-custody-ended"
	ReleaseBegun        duty.EventType = "renewals-release-begun"
	ReleaseEnded        duty.EventType = "renewals-release-ended"
	RenewalReleased     duty.EventType = "renewal-released"
	RenewalAcknowledged duty.EventType = "renewal-acknowledged"
	RenewalNotTaken     duty.EventType = "renewal-not-taken"
	NodeUnreachable     duty.EventType = "renewals-node-unreachable"
	CoverageEnded       duty.EventType = "renewals-coverage-ended"
	ClockSuspect        duty.EventType = "clock-suspect"
	ClockTrusted        duty.EventType = "clock-trusted"
	PushStuck           duty.EventType = "renewal-push-stuck"
)

// EventKinds is the table of the events, for the catalogue.
var EventKinds = []duty.EventKind{
	{Type: RunHeld, Duty: Name, Level: slog.LevelInfo,
		Says: "Cloudly handed over renewals for a node of which nothing was held: how many, and until when. Later runs that replace it are counted and are no event."},
	{Type: RunEmptied, Duty: Name, Level: slog.LevelInfo,
		Says: "Cloudly emptied what was held for a node. An outage is not covered for it any more."},
	{Type: RunDropped, Duty: Name, Level: slog.LevelWarn,
		Says: "A node registered a session of another scope than the renewals held for it, which were dropped. Cloudly hands over new ones."},
	{Type: HoldRefused, Duty: Name, Level: slog.LevelWarn,
		Says: "A hold of Cloudly was refused, by this name for the first time in a minute; the count tells how many were since the event before. What was held stays."},
	{Type: CustodyDropped, Duty: Name, Level: slog.LevelWarn,
		Says: "Custody ended: all renewals were dropped. The reason is the name that Cloudly gave, the count that of the nodes."},
	{Type: ReleaseBegun, Duty: Name, Level: slog.LevelWarn,
		Says: "The session to Cloudly is lost, and nodes are given the renewals held for them: how many nodes, and when the coverage of the first one ends. Bring Cloudly back before that."},
	{Type: ReleaseEnded, Duty: Name, Level: slog.LevelInfo,
		Says: "A session to Cloudly stands again: how many renewals were acknowledged without it, and how long that took."},
	{Type: RenewalReleased, Duty: Name, Level: slog.LevelInfo,
		Says: "A node is given the renewal whose window is current. Pushes of the same one that follow are counted and are no event."},
	{Type: RenewalAcknowledged, Duty: Name, Level: slog.LevelInfo,
		Says: "A node acknowledged a renewal, at which push."},
	{Type: RenewalNotTaken, Duty: Name, Level: slog.LevelWarn,
		Says: "A node did not acknowledge the first push of a renewal; the outcome tells why. It is pushed again while its window is current. If it stays so, compare the clocks of node and relay."},
	{Type: NodeUnreachable, Duty: Name, Level: slog.LevelWarn,
		Says: "A node has no session here while Cloudly is away, and cannot obtain one before Cloudly is back. Its names last until its present window ends. The time is the end of what is held for it; none is told when nothing is."},
	{Type: CoverageEnded, Duty: Name, Level: slog.LevelError,
		Says: "The last window held for a node has ended and Cloudly is still away. The node's names are not served any more."},
	{Type: ClockSuspect, Duty: Name, Level: slog.LevelWarn,
		Says: "The wall clock stepped back by more than 30 seconds while Cloudly is away. Nothing is given to nodes before the time told here, by that clock, or a session to Cloudly. Look at the time service of this machine."},
	{Type: ClockTrusted, Duty: Name, Level: slog.LevelInfo,
		Says: "The wall clock is trusted again; the reason tells why."},
	{Type: PushStuck, Duty: Name, Level: slog.LevelError,
		Says: "Custody has ended, and a push that was withdrawn did not end with it: a mistake in the relay. Its socket was cut, so nothing leaves."},
}
