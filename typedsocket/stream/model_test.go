package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"serve.zone/relay/typedsocket/buffer"
)

// modelWindow is small, so that credit runs out often.
const modelWindow = 16

// modelled is what the oracle knows of one stream: its whole history in plain
// sight, where the Mux keeps a few numbers.
type modelled struct {
	s       *Stream
	id      string
	number  uint32 // 0 until open
	sends   bool
	over    string // how it ended, "" while it lives
	bytes   []byte // all that was sent, or received
	read    int
	permit  uint64
	ended   bool
	drained bool
}

// model is the oracle: it says what a Mux must answer to each frame and call.
type model struct {
	sc     *script
	all    []*modelled
	theirs []uint32 // every number the peer ever used to open
	ours   []uint32 // every number we ever used to open
	late   uint64
	broken uint64
	seed   byte
}

func (m *model) live() (live []*modelled) {
	for _, s := range m.all {
		if s.over == "" {
			live = append(live, s)
		}
	}
	return live
}

func (m *model) byNumber(number uint32) *modelled {
	for _, s := range m.live() {
		if s.number == number && number != 0 {
			return s
		}
	}
	return nil
}

// allotted reports whether a number was ever used, or passed over.
func (m *model) allotted(number uint32) bool {
	if number%2 == 1 {
		return slices.Contains(m.ours, number)
	}
	return len(m.theirs) > 0 && number <= slices.Max(m.theirs)
}

// broke returns the first rule that the frame breaks: docs/streams.md's table,
// read line by line.
func (m *model) broke(f frame) Rule {
	s := m.byNumber(f.number)
	open := f.kind == kindOpenAck
	odd := f.number%2 == 1
	size := len(f.payload)
	end := uint64(0) // bytes so far
	if s != nil {
		end = uint64(len(s.bytes))
	}
	is := func(kinds ...Kind) bool { return slices.Contains(kinds, f.kind) }
	to := func(sender bool) bool { return s != nil && s.sends == sender }
	known := m.allotted(f.number)
	if !open && s == nil && known {
		return "" // late, whatever else it is
	}
	units := len(utf16.Encode([]rune(string(f.payload))))
	table := []struct {
		rule   Rule
		broken bool
	}{
		{RuleNumberUnknown, !open && !known},
		{RuleNumberNotNew, open && s == nil && (odd || known)},
		{RuleOpenedTwice, open && s != nil},
		{RulePayload, is(kindCredit, kindEnd) && size > 0 || is(kindData) && (size == 0 || size > 65536) ||
			is(kindAccept) && (size == 0 || size > 4096) || is(kindReject, kindAbort) && size > 1024 || open && (size == 0 || size > 768)},
		{RuleValue, f.value > 9007199254740991 || is(kindReject, kindAbort) && f.value > 0},
		{RuleText, (open || is(kindReject, kindAbort)) && !utf8.Valid(f.payload)},
		{RulePayload, open && units > 256},
		{RuleDirection, is(kindData, kindEnd) && to(true) || is(kindCredit, kindAccept, kindReject) && to(false)},
		{RuleAfterEnd, is(kindData, kindEnd) && s != nil && s.ended},
		{RuleOffset, is(kindData) && f.value != end},
		{RuleCreditExceeded, is(kindData) && s != nil && end+uint64(size) > s.permit},
		{RuleTotal, is(kindEnd) && f.value != end},
		{RuleCreditShrinks, is(kindCredit) && s != nil && f.value < s.permit},
		{RuleAcceptEarly, is(kindAccept) && s != nil && !s.ended},
		{RuleTotal, is(kindAccept) && f.value != end},
		{RuleReceipt, is(kindAccept) && !slices.Contains(goodReceipts, string(f.payload))},
	}
	for _, line := range table {
		if line.broken {
			return line.rule
		}
	}
	return ""
}

// Receipts the peer may give; the good ones fit any bytes.
var (
	goodReceipts = []string{"{}", `{"stored":true}`}
	badReceipts  = []string{"", "x", "[]", `{"byteLength":-1}`, `{"digest":"sha256:0"}`, "{" + strings.Repeat(" ", 4096) + "}"}
)

// peerSays lets the peer say a frame and checks everything that follows.
func (m *model) peerSays(t *rapid.T, f frame) {
	rule := m.broke(f)
	s := m.byNumber(f.number)
	var said []string
	switch {
	case rule != "":
		m.broken++
		if f.kind < kindAccept {
			said = []string{fmt.Sprintf("abort %d 0 %s", f.number, rule)}
		}
		if s != nil {
			s.over = "protocol"
		}
		if f.kind == kindOpenAck && rule != RuleNumberNotNew && rule != RuleOpenedTwice {
			m.theirs = append(m.theirs, f.number)
		}
	case f.kind == kindOpenAck:
		said = m.peerOpens(f, &rule)
	case s == nil:
		m.late++
	default:
		m.peerMoves(f, s)
	}
	err := m.sc.frame(f.kind, f.number, f.value, string(f.payload))
	var broken *ProtocolError
	if got := errors.As(err, &broken); got != (rule != "") || got && broken.Rule != rule || !got && err != nil {
		t.Fatalf("%s: got %v, want rule %q", note(f), err, rule)
	}
	m.check(t, note(f), said)
}

// peerOpens is an open-ack with a good number and shape.
func (m *model) peerOpens(f frame, rule *Rule) []string {
	m.theirs = append(m.theirs, f.number)
	for _, s := range m.live() {
		if s.number != 0 || s.id != string(f.payload) {
			continue
		}
		s.number = f.number
		switch {
		case s.sends:
			s.permit = f.value
			return nil
		case f.value != 0:
			*rule = RuleValue
			m.broken++
			s.over = "protocol"
			return []string{fmt.Sprintf("abort %d 0 value-range", f.number)}
		}
		s.permit = modelWindow
		return []string{fmt.Sprintf("credit %d %d", f.number, modelWindow)}
	}
	m.late++
	return []string{fmt.Sprintf("abort %d 0 not-offered", f.number)}
}

// peerMoves is a good frame of an open stream.
func (m *model) peerMoves(f frame, s *modelled) {
	switch f.kind {
	case kindData:
		s.bytes = append(s.bytes, f.payload...)
	case kindEnd:
		s.ended = true
	case kindCredit:
		s.permit = f.value
	case kindAccept:
		s.over = "accepted"
	case kindReject:
		s.over = "rejected"
	case kindAbort:
		s.over = "aborted"
	}
}

// check compares what the Mux said and how each stream stands.
func (m *model) check(t *rapid.T, what string, said []string) {
	if got := m.sc.heard(); !slices.Equal(got, said) {
		t.Fatalf("%s: said %q, want %q", what, got, said)
	}
	for _, s := range m.all {
		var over string
		select {
		case <-s.s.Done():
			over = outcomeOf(s.s.Err())
		default:
		}
		if over != s.over {
			t.Fatalf("%s: stream %s stands %q (%v), want %q", what, s.id, over, s.s.Err(), s.over)
		}
	}
	stats := m.sc.m.Stats()
	if stats.LateFrames != m.late || stats.ProtocolErrors != m.broken || stats.Live != len(m.live()) {
		t.Fatalf("%s: stats %+v, want late %d, broken %d, live %d", what, stats, m.late, m.broken, len(m.live()))
	}
}

func outcomeOf(err error) string {
	var broken *ProtocolError
	var a *AbortedError
	var r *RejectedError
	switch {
	case err == nil:
		return "accepted"
	case errors.As(err, &broken):
		return "protocol"
	case errors.As(err, &a):
		return "aborted"
	case errors.As(err, &r):
		return "rejected"
	case errors.Is(err, ErrDiscarded):
		return "discarded"
	}
	return err.Error()
}

// drawFrame makes a frame that is right, or wrong by a little.
func (m *model) drawFrame(t *rapid.T) frame {
	numbers := []uint32{2, 4, 1, 40, 1<<32 - 1}
	if len(m.theirs) > 0 {
		last := slices.Max(m.theirs)
		numbers = append(numbers, last, last+2, last+4)
	}
	for _, s := range m.live() {
		if s.number != 0 { // weigh what lives
			numbers = append(numbers, s.number, s.number, s.number)
		}
	}
	numbers = append(numbers, m.ours...)
	f := frame{number: rapid.SampledFrom(numbers).Draw(t, "number")}
	f.kind = Kind(rapid.IntRange(1, 7).Draw(t, "kind"))
	s := m.byNumber(f.number)
	right := uint64(0)
	if s != nil {
		right = uint64(len(s.bytes))
		if f.kind == kindCredit {
			right = s.permit + uint64(rapid.IntRange(0, 10).Draw(t, "more"))
		}
	}
	values := []uint64{right, right, right, right, right, right + 1, right - 1, 0, MaxTotal, MaxTotal + 1}
	f.value = rapid.SampledFrom(values).Draw(t, "value")
	switch f.kind {
	case kindOpenAck:
		ids := []string{"unknown", strings.Repeat("é", 256), strings.Repeat("😀", 129), "", "\xff"}
		for _, s := range m.all {
			ids = append(ids, s.id)
		}
		f.payload = []byte(rapid.SampledFrom(ids).Draw(t, "id"))
	case kindData:
		f.payload = make([]byte, rapid.SampledFrom([]int{0, 1, 2, 3, 5, 8, 15, 16, 17, 65537}).Draw(t, "size"))
		for i := range f.payload {
			m.seed++
			f.payload[i] = m.seed
		}
	case kindAccept:
		f.payload = []byte(rapid.SampledFrom(append(badReceipts, goodReceipts...)).Draw(t, "receipt"))
	case kindReject, kindAbort:
		f.payload = []byte(rapid.SampledFrom([]string{"", "no", "\xff", strings.Repeat("x", 1025)}).Draw(t, "reason"))
	default:
		f.payload = []byte(rapid.SampledFrom([]string{"", "", "", "x"}).Draw(t, "payload"))
	}
	return f
}

// pick draws a stream that meets a condition, or skips the action.
func (m *model) pick(t *rapid.T, fits func(*modelled) bool) *modelled {
	var some []*modelled
	for _, s := range m.live() {
		if fits(s) {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		t.Skip("no such stream")
	}
	return rapid.SampledFrom(some).Draw(t, "stream")
}

func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"peer says":       func(t *rapid.T) { m.peerSays(t, m.drawFrame(t)) },
		"peer says again": func(t *rapid.T) { m.peerSays(t, m.drawFrame(t)) },
		"peer opens":      m.openRight,
		"offer":           m.offer,
		"open":            m.open,
		"write":           m.write,
		"end":             m.end,
		"read":            m.readSome,
		"read more":       m.readSome,
		"accept":          m.accept,
		"stop":            m.stop,
		"alive":           m.alive,
	}
}

// openRight is the open-ack of a well-behaved peer.
func (m *model) openRight(t *rapid.T) {
	s := m.pick(t, func(s *modelled) bool { return s.number == 0 })
	number := uint32(2)
	if len(m.theirs) > 0 {
		number = slices.Max(m.theirs) + 2
	}
	if number == 0 || number%2 == 1 {
		t.Skip("no numbers left")
	}
	f := frame{kind: kindOpenAck, number: number, payload: []byte(s.id)}
	if s.sends {
		f.value = uint64(rapid.IntRange(0, 20).Draw(t, "credit"))
	}
	m.peerSays(t, f)
}

func (m *model) offer(t *rapid.T) {
	d := rapid.SampledFrom([]Direction{Send, Receive}).Draw(t, "direction")
	s, err := m.sc.m.Offer(Options{Direction: d})
	if full := len(m.live()) >= 3; full != errors.Is(err, ErrTooManyStreams) || !full && err != nil {
		t.Fatalf("offer with %d live: %v", len(m.live()), err)
	}
	if err == nil {
		m.all = append(m.all, &modelled{s: s, id: s.ID(), sends: d == Send})
	}
	m.check(t, "offer", nil)
}

func (m *model) open(t *rapid.T) {
	d := rapid.SampledFrom([]Direction{Send, Receive}).Draw(t, "direction")
	id := fmt.Sprintf("peer%d", len(m.ours))
	s, err := m.sc.m.Open(fmt.Appendf(nil, `{"_isVirtualStream":true,"protocol":"virtual-stream-v1",`+
		`"streamId":%q,"creatorDirection":%q,"transport":{"relayStream":1}}`, id, d.Opposite()))
	if full := len(m.live()) >= 3; full != errors.Is(err, ErrTooManyStreams) || !full && err != nil {
		t.Fatalf("open with %d live: %v", len(m.live()), err)
	}
	if err != nil {
		m.check(t, "open", nil)
		return
	}
	number := uint32(1)
	if len(m.ours) > 0 {
		number = slices.Max(m.ours) + 2
	}
	m.ours = append(m.ours, number)
	opened := &modelled{s: s, id: id, number: number, sends: d == Send}
	if !opened.sends {
		opened.permit = modelWindow
	}
	m.all = append(m.all, opened)
	m.check(t, "open", []string{fmt.Sprintf("open-ack %d %d %s", number, opened.permit, id)})
}

func (m *model) write(t *rapid.T) {
	s := m.pick(t, func(s *modelled) bool {
		return s.sends && s.number != 0 && !s.ended && s.permit > uint64(len(s.bytes))
	})
	room := int(min(s.permit-uint64(len(s.bytes)), 20))
	p := []byte("abcdefghijklmnopqrst"[:rapid.IntRange(1, room).Draw(t, "n")])
	if n, err := s.s.Write(p); n != len(p) || err != nil {
		t.Fatalf("write: %d, %v", n, err)
	}
	at := len(s.bytes)
	s.bytes = append(s.bytes, p...)
	m.check(t, "write", []string{fmt.Sprintf("data %d %d %s", s.number, at, p)})
}

// end begins what CloseSend does, without its wait.
func (m *model) end(t *rapid.T) {
	s := m.pick(t, func(s *modelled) bool { return s.sends && s.number != 0 && !s.ended })
	s.s.take(Send)
	m.sc.m.mu.Lock()
	err := s.s.sendEnd()
	m.sc.m.mu.Unlock()
	s.s.give()
	if err != nil {
		t.Fatal(err)
	}
	s.ended = true
	m.check(t, "end", []string{fmt.Sprintf("end %d %d", s.number, len(s.bytes))})
}

func (m *model) readSome(t *rapid.T) {
	s := m.pick(t, func(s *modelled) bool { return !s.sends && (s.read < len(s.bytes) || s.ended) })
	p := make([]byte, rapid.IntRange(1, 20).Draw(t, "n"))
	n, err := s.s.Read(p)
	if s.read == len(s.bytes) {
		if n != 0 || err != io.EOF {
			t.Fatalf("read at the end: %d, %v", n, err)
		}
		s.drained = true
		m.check(t, "read", nil)
		return
	}
	if n < 1 || err != nil || !bytes.Equal(p[:n], s.bytes[s.read:s.read+n]) {
		t.Fatalf("read %x, %v, want %x", p[:n], err, s.bytes[s.read:])
	}
	s.read += n
	var said []string
	if s.permit-uint64(s.read) <= modelWindow/2 {
		s.permit = uint64(s.read) + modelWindow
		said = []string{fmt.Sprintf("credit %d %d", s.number, s.permit)}
	}
	m.check(t, "read", said)
}

func (m *model) accept(t *rapid.T) {
	s := m.pick(t, func(s *modelled) bool { return !s.sends })
	_, err := s.s.Accept()
	if !s.drained {
		if !errors.Is(err, ErrNotDrained) {
			t.Fatalf("accept: %v", err)
		}
		m.check(t, "accept", nil)
		return
	}
	s.over = "accepted"
	receipt := appendReceipt(nil, s.id, sumOf(s.bytes))
	m.check(t, "accept", []string{note(frame{kind: kindAccept, number: s.number, value: uint64(len(s.bytes)), payload: receipt})})
}

func (m *model) stop(t *rapid.T) {
	s := m.pick(t, func(*modelled) bool { return true })
	how := rapid.SampledFrom([]string{"abort", "reject", "discard", "cancel"}).Draw(t, "how")
	kind, reason := "abort", how
	switch {
	case how == "reject" && !s.sends:
		s.s.Reject(reason)
		s.over, kind = "rejected", "reject"
	case how == "discard" && s.number == 0:
		s.s.Discard()
		s.over = "discarded"
	case how == "cancel" && s.sends && s.ended:
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.s.CloseSend(ctx)
		s.over, reason = "aborted", ReasonCancelled
	default:
		s.s.Abort(reason)
		s.over = "aborted"
	}
	var said []string
	if s.number != 0 {
		said = []string{fmt.Sprintf("%s %d 0 %s", kind, s.number, reason)}
	}
	m.check(t, how, said)
}

func (m *model) alive(t *rapid.T) {
	s := m.pick(t, func(s *modelled) bool { return !s.sends })
	if err := s.s.KeepAlive(); err != nil {
		t.Fatal(err)
	}
	var said []string
	if s.number != 0 {
		said = []string{fmt.Sprintf("credit %d %d", s.number, s.permit)}
	}
	m.check(t, "alive", said)
}

// TestModel plays frames, right and wrong, and calls in any order against the
// oracle.
func TestModel(t *testing.T) {
	before := buffer.Lent()
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{sc: newScript(t, Config{Window: modelWindow, MaxStreams: 3})}
		rt.Repeat(m.actions())
		m.sc.m.Close(nil)
		for _, s := range m.live() {
			if !errors.Is(s.s.Err(), ErrClosed) {
				rt.Fatalf("after Close: %v", s.s.Err())
			}
		}
		if held := m.sc.m.Stats().Held; held != 0 {
			rt.Fatalf("%d bytes held after Close", held)
		}
	})
	if n := buffer.Lent() - before; n != 0 {
		t.Errorf("%d buffers were not released", n)
	}
}
