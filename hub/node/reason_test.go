package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/hub/tunnel"
)

func TestReasonOf(t *testing.T) {
	remote := func(code quic.TransportErrorCode) error { return &quic.TransportError{Remote: true, ErrorCode: code} }
	closed := func(code tunnel.CloseCode, remote bool) error {
		return &quic.ApplicationError{Remote: remote, ErrorCode: code.QUIC()}
	}
	tests := []struct {
		err  error
		up   bool
		want Reason
	}{
		{closed(tunnel.CloseDraining, true), true, HubDraining},
		{closed(tunnel.CloseDraining, false), true, Transport},
		{closed(77, true), false, HubInternal},
		{remote(0x128), false, NoHybrid},
		{remote(0x178), false, OtherProtocol},
		{remote(quic.ConnectionRefused), false, HubBusy},
		{remote(quic.InternalError), false, Transport},
		{tunnel.ErrNotAuthentic, false, HubNotAuthentic},
		{&tunnel.WireError{From: tunnel.Hub, Rule: tunnel.RuleFrameKind}, true, HubBrokeRule},
		{&quic.StatelessResetError{}, true, Reset},
		{&quic.IdleTimeoutError{}, true, Silent},
		{&quic.IdleTimeoutError{}, false, Unreachable},
		{&quic.HandshakeTimeoutError{}, false, Unreachable},
		{context.DeadlineExceeded, false, Unreachable},
		{os.ErrDeadlineExceeded, false, NoAnswer},
		{io.EOF, true, HubHungUp},
		{io.ErrUnexpectedEOF, true, HubHungUp},
		{&net.OpError{Op: "write", Err: syscall.EIO}, true, Transport},
		{errors.New("something"), false, Transport},
	}
	for _, test := range tests {
		for _, err := range []error{test.err, fmt.Errorf("wrapped: %w", test.err)} {
			if got := reasonOf(err, test.up); got != test.want {
				t.Errorf("%v, up %v: %s, want %s", err, test.up, got, test.want)
			}
		}
	}
}

// Every close code of the wire has a reason of its name.
func TestEveryCloseCodeIsAReason(t *testing.T) {
	for _, code := range tunnel.CloseCodes() {
		if got := reasonOfCode(code); string(got) != code.String() {
			t.Errorf("%v is %s", code, got)
		}
	}
}
