package tunnel

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// agreed runs a whole handshake without a stream.
func agreed(t *testing.T, i Initiator, r Responder, answer Answer) (node, hub *Session) {
	t.Helper()
	export := testExporter("one session")
	state, frame, err := i.begin(export)
	if err != nil {
		t.Fatal(err)
	}
	request, err := r.Receive(bytes.NewReader(frame), export)
	if err != nil {
		t.Fatal(err)
	}
	hub, frame, err = request.answer(answer)
	if err != nil {
		t.Fatal(err)
	}
	node, err = i.finish(state, frame[headerSize:], export)
	if err != nil {
		t.Fatal(err)
	}
	return node, hub
}

// agreedDirect is agreed with the direct lane.
func agreedDirect(t *testing.T, cipher Cipher) (node, hub *Session) {
	t.Helper()
	i := testInitiator()
	i.Offer = directOffer()
	return agreed(t, i, testResponder(), directAnswer(cipher))
}

// hubSide runs the hub's part of a handshake on a stream.
func hubSide(stream io.ReadWriter, r Responder, export Exporter, answer Answer) (*Session, error) {
	request, err := r.Receive(stream, export)
	if err != nil {
		return nil, err
	}
	session, err := request.Answer(stream, answer)
	if err != nil {
		return nil, err
	}
	_, err = session.Control(stream).Next()
	return session, err
}

// R61: both ends of a handshake know each other's key, agree on offer and answer, and
// derive the same secrets.
func TestR61_Handshake(t *testing.T) {
	for name, test := range map[string]struct {
		offer  Offer
		answer Answer
	}{
		"datagram lane": {datagramOffer(), datagramAnswer()},
		"direct lane":   {directOffer(), directAnswer(CipherChaCha20)},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			defer near.Close()
			defer far.Close()
			i := testInitiator()
			i.Offer = test.offer
			var hub *Session
			done := make(chan error, 1)
			go func() {
				var err error
				hub, err = hubSide(far, testResponder(), testExporter("one session"), test.answer)
				done <- err
			}()
			node, err := i.Handshake(near, testExporter("one session"))
			if err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if node.Peer() != hubKey.Public() || hub.Peer() != nodeKey.Public() {
				t.Error("an end does not know the other one's key")
			}
			if node.Side() != Node || hub.Side() != Hub {
				t.Error("an end does not know which one it is")
			}
			for _, s := range []*Session{node, hub} {
				if !equal(t, s.Answer(), test.answer) || !equal(t, s.Offer(), test.offer) {
					t.Errorf("%s: offer %+v, answer %+v", s.Side(), s.Offer(), s.Answer())
				}
			}
			if *node.root.get() != *hub.root.get() || *node.root.get() == (root{}) {
				t.Error("the ends derived different secrets, or none")
			}
		})
	}
}

// R61: whatever differs between the ends of a handshake, the hub opens nothing and
// tells nothing.
func TestR61_HandshakeThatDoesNotFit(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Initiator, *Responder)
		export Exporter // of the hub
	}{
		{"another hub's key", func(i *Initiator, _ *Responder) { i.Hub = nodeKey.Public() }, nil},
		{"another authority", func(i *Initiator, _ *Responder) { i.AuthorityID += "x" }, nil},
		{"an authority that is a prefix", func(i *Initiator, _ *Responder) { i.AuthorityID = i.AuthorityID[:4] }, nil},
		{"another TLS session", nil, testExporter("another session")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			i, r, export := testInitiator(), testResponder(), testExporter("one session")
			_, frame, err := func() (any, []byte, error) {
				if test.change != nil {
					test.change(&i, &r)
				}
				return i.begin(export)
			}()
			if err != nil {
				t.Fatal(err)
			}
			if test.export != nil {
				export = test.export
			}
			if _, err := r.Receive(bytes.NewReader(frame), export); !errors.Is(err, ErrNotAuthentic) {
				t.Errorf("got %v, want %v", err, ErrNotAuthentic)
			}
			if got := CloseCodeFor(ErrNotAuthentic); got != CloseHandshake {
				t.Errorf("close code %v", got)
			}
		})
	}
}

// R61: a handshake fails when any byte of either Noise message is changed, cut or
// added.
func TestR61_TamperedHandshake(t *testing.T) {
	export := testExporter("one session")
	i, r := testInitiator(), testResponder()
	state, frame, err := i.begin(export)
	if err != nil {
		t.Fatal(err)
	}
	spoiled := func(message []byte, check func([]byte) error) {
		t.Helper()
		for at := range message {
			bad := bytes.Clone(message)
			bad[at] ^= 1
			if err := check(bad); !errors.Is(err, ErrNotAuthentic) {
				t.Errorf("byte %d: got %v", at, err)
			}
		}
		if err := check(message[:len(message)-1]); !errors.Is(err, ErrNotAuthentic) {
			t.Errorf("a byte less: got %v", err)
		}
		if err := check(append(bytes.Clone(message), 0)); !errors.Is(err, ErrNotAuthentic) {
			t.Errorf("a byte more: got %v", err)
		}
	}
	spoiled(frame[headerSize:], func(m []byte) error {
		_, err := r.open(m, export)
		return err
	})
	request, err := r.open(frame[headerSize:], export)
	if err != nil {
		t.Fatal(err)
	}
	_, frame, err = request.answer(datagramAnswer())
	if err != nil {
		t.Fatal(err)
	}
	spoiled(frame[headerSize:], func(m []byte) error {
		// A copy of the state, since a message that fails may leave it changed.
		copied := *state
		_, err := i.finish(&copied, m, export)
		return err
	})
	if _, err := i.finish(state, frame[headerSize:], export); err != nil {
		t.Errorf("the message as it was: %v", err)
	}
}

// R61: a hub that is not the one the node means cannot answer, even with the first
// message in its hands.
func TestR61_AnotherHubCannotAnswer(t *testing.T) {
	export := testExporter("one session")
	i := testInitiator()
	state, _, err := i.begin(export)
	if err != nil {
		t.Fatal(err)
	}
	// The impostor was sent a message of its own and answers that one.
	forged := testInitiator()
	forged.Hub = nodeKey.Public()
	_, frame, err := forged.begin(export)
	if err != nil {
		t.Fatal(err)
	}
	request, err := Responder{Static: nodeKey, AuthorityID: testAuthority}.Receive(bytes.NewReader(frame), export)
	if err != nil {
		t.Fatal(err)
	}
	_, frame, err = request.answer(datagramAnswer())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.finish(state, frame[headerSize:], export); !errors.Is(err, ErrNotAuthentic) {
		t.Errorf("got %v, want %v", err, ErrNotAuthentic)
	}
}

// What comes instead of a handshake frame is refused by name, and what is
// refused by its header is not read.
func TestHandshakeFrames(t *testing.T) {
	long := append([]byte{byte(FrameInitiation), 0xff, 0xff}, make([]byte, 0xffff)...)
	tests := []struct {
		name string
		sent []byte
		want error
		read int
	}{
		{"nothing", nil, io.ErrUnexpectedEOF, 0},
		{"half a header", []byte{1, 0}, io.ErrUnexpectedEOF, 2},
		{"no body", []byte{1, 0, 96}, io.ErrUnexpectedEOF, 3},
		{"half a body", append([]byte{1, 0, 200}, make([]byte, 100)...), io.ErrUnexpectedEOF, 103},
		{"65,535 bytes", long, &WireError{Node, FrameInitiation, 0, RuleFrameLength}, 3},
		{"a body above the bound", []byte{1, 0x04, 0x01}, &WireError{Node, FrameInitiation, 0, RuleFrameLength}, 3},
		{"a message shorter than its keys", []byte{1, 0, 95}, &WireError{Node, FrameInitiation, 0, RuleFrameLength}, 3},
		{"the hub's kind", []byte{2, 0, 96}, &WireError{Node, FrameResponse, 0, RuleFrameDirection}, 3},
		{"a message too early", []byte{3, 0, 34}, &WireError{Node, FrameConfirm, 0, RuleFrameOrder}, 3},
		{"an unknown kind", []byte{10, 0, 0}, &WireError{Node, 10, 0, RuleFrameKind}, 3},
		{"no kind", []byte{0, 0, 0}, &WireError{Node, 0, 0, RuleFrameKind}, 3},
		{"an ignorable kind", []byte{0x80, 0, 0}, &WireError{Node, 0x80, 0, RuleFrameOrder}, 3},
		{"TLS by mistake", []byte("\x16\x03\x01\x02\x00"), &WireError{Node, 0x16, 0, RuleFrameKind}, 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stream := bytes.NewReader(test.sent)
			_, err := testResponder().Receive(stream, testExporter(""))
			wantError(t, err, test.want)
			if read := len(test.sent) - stream.Len(); read != test.read {
				t.Errorf("%d bytes read, want %d", read, test.read)
			}
		})
	}
}

// wantError compares an error with a *WireError by its fields, with any other
// one by errors.Is.
func wantError(t *testing.T, got, want error) {
	t.Helper()
	var gotWire, wantWire *WireError
	switch {
	case want == nil && got == nil:
	case errors.As(want, &wantWire):
		if !errors.As(got, &gotWire) || *gotWire != *wantWire {
			t.Errorf("got %v, want %v", got, want)
		}
	case want == nil || !errors.Is(got, want):
		t.Errorf("got %v, want %v", got, want)
	}
}

// The node takes no answer that chooses what it did not offer, and a hub cannot
// send one by mistake.
func TestAnswerToAnotherOffer(t *testing.T) {
	export := testExporter("one session")
	_, frame, err := testInitiator().begin(export)
	if err != nil {
		t.Fatal(err)
	}
	request, err := testResponder().Receive(bytes.NewReader(frame), export)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := request.Answer(io.Discard, directAnswer(CipherAES256GCM)); !errors.Is(err, ErrAnswer) {
		t.Errorf("got %v, want %v", err, ErrAnswer)
	}
	// A wrong answer has used nothing up; a right one has.
	if _, err := request.Answer(io.Discard, datagramAnswer()); err != nil {
		t.Errorf("the right answer after a wrong one: %v", err)
	}
	if _, err := request.Answer(io.Discard, datagramAnswer()); !errors.Is(err, ErrAnswered) {
		t.Errorf("a second answer: got %v, want %v", err, ErrAnswered)
	}
}

// A hub that answers another offer than the node's is refused by the node.
func TestAnswerThatWasNotOffered(t *testing.T) {
	export := testExporter("one session")
	i := testInitiator()
	state, frame, err := i.begin(export)
	if err != nil {
		t.Fatal(err)
	}
	request, err := testResponder().Receive(bytes.NewReader(frame), export)
	if err != nil {
		t.Fatal(err)
	}
	request.offer = directOffer()
	_, frame, err = request.answer(directAnswer(CipherAES256GCM))
	if err != nil {
		t.Fatal(err)
	}
	_, err = i.finish(state, frame[headerSize:], export)
	wantError(t, err, &WireError{Hub, FrameResponse, fieldLane, RuleNotOffered})
}

// Every wait of a handshake ends with the stream's deadline, and says which
// code that is.
func TestHandshakeEndsWithTheStreamsDeadline(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	far.SetDeadline(time.Now().Add(-time.Second))
	_, err := testResponder().Receive(far, testExporter(""))
	if !errors.Is(err, os.ErrDeadlineExceeded) || CloseCodeFor(err) != CloseTimeout {
		t.Errorf("hub: got %v, code %v", err, CloseCodeFor(err))
	}
	near.SetDeadline(time.Now().Add(-time.Second))
	_, err = testInitiator().Handshake(near, testExporter(""))
	if !errors.Is(err, os.ErrDeadlineExceeded) || CloseCodeFor(err) != CloseTimeout {
		t.Errorf("node: got %v, code %v", err, CloseCodeFor(err))
	}
}

func TestHandshakeNeedsItsInputs(t *testing.T) {
	broken := func(string, []byte, int) ([]byte, error) { return nil, errors.New("no secret") }
	short := func(string, []byte, int) ([]byte, error) { return make([]byte, 16), nil }
	good := testExporter("")
	with := func(change func(*Initiator)) Initiator {
		i := testInitiator()
		change(&i)
		return i
	}
	tests := []struct {
		name      string
		initiator Initiator
		export    Exporter
		want      error
	}{
		{"no key", with(func(i *Initiator) { i.Static = PrivateKey{} }), good, ErrPrivateKey},
		{"no authority", with(func(i *Initiator) { i.AuthorityID = "" }), good, ErrAuthorityID},
		{"an authority of 128 bytes", with(func(i *Initiator) { i.AuthorityID = strings.Repeat("é", 64) }), good, nil},
		{"an authority of 129 bytes", with(func(i *Initiator) { i.AuthorityID = strings.Repeat("é", 64) + "x" }), good, ErrAuthorityID},
		{"an offer without lanes", with(func(i *Initiator) { i.Offer.Lanes = nil }), good, ErrOffer},
		{"no exporter's secret", testInitiator(), broken, ErrExporter},
		{"half an exporter's secret", testInitiator(), short, ErrExporter},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := test.initiator.begin(test.export)
			wantError(t, err, test.want)
		})
	}
	if _, err := (Responder{AuthorityID: "a"}).Receive(bytes.NewReader(nil), good); !errors.Is(err, ErrPrivateKey) {
		t.Errorf("a hub without a key: %v", err)
	}
	// A hub's key of low order would make a secret that everybody knows.
	if _, _, err := with(func(i *Initiator) { i.Hub = [KeySize]byte{} }).begin(good); err == nil {
		t.Error("a hub's key of low order was used")
	}
}
