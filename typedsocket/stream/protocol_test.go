package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"serve.zone/relay/typedsocket/buffer"
)

// Where a stream stands when the wrong frame comes.

// arriving has 10 of at most 20 bytes received.
func arriving(sc *script) *Stream {
	s := sc.opened(Receive)
	s.permit = 20
	sc.frame(kindData, s.number, 0, "0123456789")
	return s
}

// arrived has its end as well.
func arrived(sc *script) *Stream {
	s := arriving(sc)
	sc.frame(kindEnd, s.number, 10, "")
	return s
}

// sending has 10 of at most 20 bytes sent.
func sending(sc *script) *Stream {
	s := sc.opened(Send)
	sc.frame(kindCredit, s.number, 20, "")
	s.Write([]byte("0123456789"))
	return s
}

// sent has said its end as well.
func sent(sc *script) *Stream {
	s := sending(sc)
	s.take(Send)
	s.m.mu.Lock()
	s.sendEnd()
	s.m.mu.Unlock()
	s.give()
	return s
}

type ruleCase struct {
	name    string
	stream  func(*script) *Stream
	kind    Kind
	value   uint64
	payload string
	rule    Rule
}

// ruleCases are the wrong frames of an open stream.
func ruleCases() []ruleCase {
	long := strings.Repeat("x", MaxReason+1)
	full := strings.Repeat("x", ChunkSize)
	return []ruleCase{
		{"an open-ack for an open stream", arriving, kindOpenAck, 0, "peer1", RuleOpenedTwice},
		{"data without bytes", arriving, kindData, 10, "", RulePayload},
		{"a chunk too large", arriving, kindData, 10, full + "x", RulePayload},
		{"data beyond the number range", arriving, kindData, MaxTotal + 1, "x", RuleValue},
		{"data before what has come", arriving, kindData, 9, "x", RuleOffset},
		{"data behind a gap", arriving, kindData, 11, "x", RuleOffset},
		{"data beyond the credit", arriving, kindData, 10, "01234567890", RuleCreditExceeded},
		{"data beyond the credit by much", arriving, kindData, 10, full, RuleCreditExceeded},
		{"data after the end", arrived, kindData, 10, "x", RuleAfterEnd},
		{"a second end", arrived, kindEnd, 10, "", RuleAfterEnd},
		{"an end with a payload", arriving, kindEnd, 10, "x", RulePayload},
		{"an end of fewer bytes", arriving, kindEnd, 9, "", RuleTotal},
		{"an end of more bytes", arriving, kindEnd, 11, "", RuleTotal},
		{"credit from the sender", arriving, kindCredit, 30, "", RuleDirection},
		{"acceptance from the sender", arriving, kindAccept, 10, "{}", RuleDirection},
		{"rejection from the sender", arriving, kindReject, 0, "no", RuleDirection},
		{"an abort with a value", arriving, kindAbort, 1, "x", RuleValue},
		{"an abort too long", arriving, kindAbort, 0, long, RulePayload},
		{"an abort that is no text", arriving, kindAbort, 0, "\xff", RuleText},

		{"data from the receiver", sending, kindData, 10, "x", RuleDirection},
		{"an end from the receiver", sending, kindEnd, 10, "", RuleDirection},
		{"credit with a payload", sending, kindCredit, 30, "x", RulePayload},
		{"credit beyond the number range", sending, kindCredit, MaxTotal + 1, "", RuleValue},
		{"credit taken back", sending, kindCredit, 19, "", RuleCreditShrinks},
		{"acceptance before the end", sending, kindAccept, 10, "{}", RuleAcceptEarly},
		{"acceptance without a receipt", sent, kindAccept, 10, "", RulePayload},
		{"acceptance with a long receipt", sent, kindAccept, 10, "{" + strings.Repeat(" ", MaxReceipt) + "}", RulePayload},
		{"acceptance of fewer bytes", sent, kindAccept, 9, "{}", RuleTotal},
		{"acceptance of more bytes", sent, kindAccept, 11, "{}", RuleTotal},
		{"a receipt of other bytes", sent, kindAccept, 10, `{"byteLength":11}`, RuleReceipt},
		{"a receipt that is none", sent, kindAccept, 10, `true`, RuleReceipt},
		{"a rejection with a value", sent, kindReject, 1, "x", RuleValue},
		{"a rejection too long", sent, kindReject, 0, long, RulePayload},
		{"a rejection that is no text", sent, kindReject, 0, "\xc3", RuleText},
	}
}

// TestFramesThatBreakARule lets the peer say one wrong frame. It must end that
// stream by the rule's name, tell the peer unless the frame was its last word,
// and touch neither the other stream nor the socket.
func TestFramesThatBreakARule(t *testing.T) {
	one := buffer.Of([]byte("x"))
	small := one.Size() // what the other stream holds, and nothing else
	one.Release()
	for _, c := range ruleCases() {
		t.Run(c.name, func(t *testing.T) {
			sc := newScript(t, Config{})
			other := sc.accepted(Receive, 2, 0)
			s := c.stream(sc)
			sc.heard()
			err := sc.frame(c.kind, s.number, c.value, c.payload)
			var broken *ProtocolError
			if !errors.As(err, &broken) || broken.Rule != c.rule || broken.Kind != c.kind || broken.Number != s.number {
				t.Errorf("got %v, want %s", err, c.rule)
			}
			if s.Err() != err {
				t.Errorf("the stream ended with %v", s.Err())
			}
			var wrong *ReceiptError
			if got := errors.As(err, &wrong); got != (c.rule == RuleReceipt) {
				t.Errorf("receipt error: %v", wrong)
			}
			want := []string{fmt.Sprintf("abort %d 0 %s", s.number, c.rule)}
			if c.kind.terminal() {
				want = nil
			}
			if got := sc.heard(); !slices.Equal(got, want) {
				t.Errorf("said %q, want %q", got, want)
			}
			checkOther(t, sc, other)
			stats := sc.m.Stats()
			if stats.ProtocolErrors != 1 || stats.Ended[OutcomeProtocol] != 1 || stats.Held != small {
				t.Errorf("stats %+v", stats)
			}
			sc.m.Close(nil)
		})
	}
}

// checkOther checks that a stream of the same Mux still works.
func checkOther(t *testing.T, sc *script, other *Stream) {
	t.Helper()
	if err := sc.frame(kindData, other.number, 0, "abc"); err != nil || other.Err() != nil {
		t.Errorf("the other stream: %v, %v", err, other.Err())
	}
}

// TestOpenAcksThatBreakARule is the same for frames that open a stream.
func TestOpenAcksThatBreakARule(t *testing.T) {
	cases := []struct {
		name    string
		number  uint32
		value   uint64
		payload string
		rule    Rule
		ends    bool // the offered stream ends with it
	}{
		{"a number of ours", 9, 5, "id1", RuleNumberNotNew, false},
		{"a number used before", 2, 5, "id1", RuleNumberNotNew, false},
		{"a number passed over", 4, 5, "id1", RuleNumberNotNew, false},
		{"no streamId", 8, 5, "", RulePayload, false},
		{"a streamId too long", 8, 5, strings.Repeat("x", 257), RulePayload, false},
		{"a streamId too long in UTF-16", 8, 5, strings.Repeat("😀", 129), RulePayload, false},
		{"a streamId far too long", 8, 5, strings.Repeat("x", 769), RulePayload, false},
		{"a streamId that is no text", 8, 5, "id1\xff", RuleText, false},
		{"credit beyond the number range", 8, MaxTotal + 1, "id1", RuleValue, false},
		{"credit from a sender", 8, 5, "id2", RuleValue, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			sc := newScript(t, Config{})
			sender, receiver := sc.offer(Send), sc.offer(Receive)
			for _, number := range []uint32{2, 6} {
				sc.frame(kindOpenAck, number, 5, "unknown")
				sc.frame(kindAbort, number, 0, "")
			}
			sc.heard()
			err := sc.frame(kindOpenAck, c.number, c.value, c.payload)
			var broken *ProtocolError
			if !errors.As(err, &broken) || broken.Rule != c.rule || broken.Number != c.number {
				t.Errorf("got %v, want %s", err, c.rule)
			}
			if got, want := sc.heard(), []string{fmt.Sprintf("abort %d 0 %s", c.number, c.rule)}; !slices.Equal(got, want) {
				t.Errorf("said %q, want %q", got, want)
			}
			if sender.Err() != nil || (receiver.Err() != nil) != c.ends {
				t.Errorf("sender: %v, receiver: %v", sender.Err(), receiver.Err())
			}
			// A new number is used up, whatever else was wrong.
			late := sc.m.Stats().LateFrames
			sc.frame(kindAbort, c.number, 0, "")
			if used := sc.m.Stats().LateFrames > late; used != (c.number != 9) {
				t.Errorf("number used: %v", used)
			}
			sc.m.Close(nil)
		})
	}
}

// TestFramesOfNoStream are frames for numbers that are not open: late ones,
// which are nobody's fault, and those of numbers that were never allotted.
func TestFramesOfNoStream(t *testing.T) {
	sc := newScript(t, Config{})
	ours := sc.opened(Receive)         // number 1
	theirs := sc.accepted(Send, 4, 99) // number 4, 2 passed over
	ours.Abort("over")
	theirs.Abort("over")
	sc.heard()
	kinds := []Kind{kindData, kindCredit, kindEnd, kindAccept, kindReject, kindAbort}
	late := uint64(0)
	for _, number := range []uint32{1, 2, 4} {
		for _, kind := range kinds {
			if err := sc.frame(kind, number, 1<<60, "whatever"); err != nil {
				t.Errorf("late %s of %d: %v", kind, number, err)
			}
			late++
		}
	}
	if got := sc.m.Stats().LateFrames; got != late {
		t.Errorf("%d late frames, want %d", got, late)
	}
	if got := sc.heard(); got != nil {
		t.Errorf("late frames were answered with %q", got)
	}
	for _, number := range []uint32{3, 6, 1<<32 - 1} {
		for _, kind := range kinds {
			var broken *ProtocolError
			err := sc.frame(kind, number, 0, "x")
			if !errors.As(err, &broken) || broken.Rule != RuleNumberUnknown {
				t.Errorf("%s of %d: %v", kind, number, err)
			}
			want := []string{fmt.Sprintf("abort %d 0 number-unknown", number)}
			if kind.terminal() {
				want = nil
			}
			if got := sc.heard(); !slices.Equal(got, want) {
				t.Errorf("%s of %d: said %q", kind, number, got)
			}
		}
	}
	if sc.m.Stats().Ended[OutcomeProtocol] != 0 {
		t.Error("a stream ended by a frame of none")
	}
}

// TestStrayFramesAreAnsweredSoOften: not for ever (B172 for another protocol).
func TestStrayFramesAreAnsweredSoOften(t *testing.T) {
	sc := newScript(t, Config{})
	for i := range uint32(MaxStrayAnswers) {
		sc.frame(kindOpenAck, 2*i+2, 0, "nobody")
		sc.frame(kindData, 1, 0, "x")
	}
	if got := len(sc.heard()); got != MaxStrayAnswers {
		t.Errorf("%d answers", got)
	}
	if stats := sc.m.Stats(); stats.LateFrames != MaxStrayAnswers || stats.ProtocolErrors != MaxStrayAnswers {
		t.Errorf("stats %+v", stats)
	}
	s := sc.offer(Receive)
	sc.frame(kindOpenAck, 2*MaxStrayAnswers+2, 0, s.ID())
	sc.frame(kindData, s.number, 1, "x")
	want := []string{fmt.Sprintf("credit %d %d", s.number, Window), fmt.Sprintf("abort %d 0 wrong-offset", s.number)}
	if got := sc.heard(); !slices.Equal(got, want) {
		t.Errorf("a stream's own frames are %q", got)
	}
}

func TestForeignMessagesAreCounted(t *testing.T) {
	sc := newScript(t, Config{})
	s := sc.accepted(Receive, 2, 0)
	for _, p := range []string{"", "hello", `{"method":"x","request":{}}`, "\x02" + strings.Repeat("\x00", 40)} {
		var foreign *FrameError
		if err := sc.message([]byte(p)); !errors.As(err, &foreign) {
			t.Errorf("%q: %v", p, err)
		}
	}
	if n := sc.m.Stats().ForeignFrames; n != 4 {
		t.Errorf("%d counted", n)
	}
	checkOther(t, sc, s)
	sc.m.Close(nil)
}

// TestFramesOfALife fixes which frames this side says, and when.
func TestFramesOfALife(t *testing.T) {
	expect := func(sc *script, want ...string) {
		t.Helper()
		if got := sc.heard(); !slices.Equal(got, want) {
			t.Errorf("said %q, want %q", got, want)
		}
	}
	sc := newScript(t, Config{Window: 8})

	s := sc.offer(Send) // created here, bytes go out
	expect(sc)
	sc.frame(kindOpenAck, 2, 4, s.ID())
	s.Write([]byte("abcd"))
	expect(sc, "data 2 0 abcd")
	sc.frame(kindCredit, 2, 8, "")
	s.Write([]byte("e"))
	expect(sc, "data 2 4 e")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.CloseSend(ctx)
	expect(sc, "end 2 5", "abort 2 0 cancelled")

	r := sc.offer(Receive) // created here, bytes come in
	sc.frame(kindOpenAck, 4, 0, r.ID())
	expect(sc, "credit 4 8")
	sc.frame(kindData, 4, 0, "abcdef")
	io.ReadFull(r, make([]byte, 3))
	expect(sc)
	io.ReadFull(r, make([]byte, 1))
	expect(sc, "credit 4 12")
	r.KeepAlive()
	expect(sc, "credit 4 12")
	sc.frame(kindEnd, 4, 6, "")
	io.Copy(io.Discard, r)
	r.Accept()
	expect(sc, "accept 4 6 (137)")

	o := sc.opened(Send) // created there, bytes go out
	sc.frame(kindCredit, o.number, 1, "")
	o.Write([]byte("x"))
	sc.frame(kindReject, o.number, 0, "no")
	expect(sc, "data 1 0 x")

	i := sc.opened(Receive) // created there, bytes come in
	i.Reject("no")
	expect(sc, "reject 3 0 no")
}
