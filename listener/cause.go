package listener

import (
	"errors"

	"serve.zone/relay/typedsocket"
)

// cause is why a socket ended: by whose doing, or by which rule.
type cause uint8

const (
	causePeer          cause = iota // the peer sent a close frame
	causeLost                       // the connection broke, or the peer took nothing any more
	causeSilent                     // 4005
	causeSlow                       // 4006
	causeProtocol                   // 1002
	causeBinary                     // 1003
	causeMalformed                  // 1007
	causeTooBig                     // 1009
	causePolicy                     // 1008
	causeUnregistered               // 4003
	causeSuperseded                 // 4001
	causeCustodyEnded               // 4002
	causeRegisterAgain              // 4004
	causeRestart                    // 1012
	causeInternal                   // 1011
	causeOurs                       // any other code of ours
	causes                          // how many there are
)

var causeNames = [causes]string{
	causePeer: "peer-closed", causeLost: "lost", causeSilent: "silent", causeSlow: "slow", causeProtocol: "protocol",
	causeBinary: "binary", causeMalformed: "malformed", causeTooBig: "too-big", causePolicy: "policy",
	causeUnregistered: "unregistered", causeSuperseded: "superseded", causeCustodyEnded: "custody-ended",
	causeRegisterAgain: "register-again", causeRestart: "restart", causeInternal: "internal", causeOurs: "closed",
}

// String returns the cause's name.
func (c cause) String() string { return causeNames[c] }

// abnormal is the code that stands for a connection without a close frame (RFC
// 6455 §7.4.1).
const abnormal typedsocket.CloseCode = 1006

var causeOfCode = map[typedsocket.CloseCode]cause{
	abnormal:                       causeLost,
	typedsocket.CloseSilent:        causeSilent,
	typedsocket.CloseSlow:          causeSlow,
	typedsocket.CloseProtocol:      causeProtocol,
	typedsocket.CloseUnsupported:   causeBinary,
	typedsocket.CloseInvalidData:   causeMalformed,
	typedsocket.CloseTooBig:        causeTooBig,
	typedsocket.ClosePolicy:        causePolicy,
	typedsocket.CloseUnregistered:  causeUnregistered,
	typedsocket.CloseSuperseded:    causeSuperseded,
	typedsocket.CloseCustodyEnded:  causeCustodyEnded,
	typedsocket.CloseRegisterAgain: causeRegisterAgain,
	typedsocket.CloseRestart:       causeRestart,
	typedsocket.CloseInternal:      causeInternal,
}

// causeOf reads the error that a socket ended with.
func causeOf(err error) cause {
	var end *typedsocket.EndError
	if !errors.As(err, &end) {
		return causeOurs
	}
	known, ok := causeOfCode[end.Code]
	switch {
	case end.Remote && end.Code != abnormal:
		return causePeer
	case !ok:
		return causeOurs
	}
	return known
}

// closeCode is the code that a socket ended with, of whichever side.
func closeCode(err error) typedsocket.CloseCode {
	var end *typedsocket.EndError
	errors.As(err, &end)
	if end == nil {
		return 0
	}
	return end.Code
}
