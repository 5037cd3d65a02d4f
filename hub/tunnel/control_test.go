package tunnel

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"time"
)

// everyMessage has one of each, with values at their bounds.
func everyMessage() []Message {
	a, b := [KeySize]byte(bytes.Repeat([]byte{0xa1}, KeySize)), [KeySize]byte(bytes.Repeat([]byte{0xb2}, KeySize))
	return []Message{
		Confirm{a},
		RekeyAsk{},
		RekeyOffer{1<<32 - 1, a},
		RekeyAnswer{7, a, b},
		RekeyDone{0, b},
		Path{LaneDatagram, 1},
		Path{LaneDirect, 1<<16 - 1},
		Close{CloseDraining, time.Hour},
		Close{0xfffe, 0},
	}
}

func TestMessagesRoundTrip(t *testing.T) {
	var kinds []FrameKind
	for _, m := range everyMessage() {
		frame := AppendMessage([]byte("before"), m)[len("before"):]
		from := Node
		if !m.Kind().sentBy(Node) {
			from = Hub
		}
		r := bytes.NewReader(frame)
		kind, length, err := readHeader(r, from)
		if err != nil {
			t.Fatalf("%s: %v", m.Kind(), err)
		}
		body := make([]byte, length)
		if err := readBody(r, body); err != nil || r.Len() != 0 {
			t.Fatalf("%s: %v, %d bytes left", m.Kind(), err, r.Len())
		}
		got, err := readMessage(kind, body, from)
		if err != nil || got != m {
			t.Errorf("%s: got %v, %v; want %v", m.Kind(), got, err, m)
		}
		kinds = append(kinds, kind)
	}
	for kind := FrameConfirm; kind.known(); kind++ {
		if !slices.Contains(kinds, kind) {
			t.Errorf("%s: not tried", kind)
		}
	}
}

func TestCloseAfterMoreThanAnHour(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{
		1000 * time.Hour:        time.Hour,
		-time.Second:            0,
		1500 * time.Microsecond: time.Millisecond,
	} {
		frame := AppendMessage(nil, Close{CloseDraining, after})
		got, err := readMessage(FrameClose, frame[headerSize:], Hub)
		if err != nil || got.(Close).RetryAfter != want {
			t.Errorf("%v: got %v, %v; want %v", after, got, err, want)
		}
	}
}

// frames writes frames one after the other.
func frames(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func frameOf(m Message) []byte { return AppendMessage(nil, m) }

func TestControl(t *testing.T) {
	node, hub := agreed(t, testInitiator(), testResponder(), datagramAnswer())
	directNode, directHub := agreedDirect(t, CipherAES256GCM)
	confirm := frameOf(Confirm{*node.proof.get()})
	directConfirm := frameOf(Confirm{*directNode.proof.get()})
	wrong := *node.proof.get()
	wrong[31] ^= 1
	ignorable := []byte{0xfe, 0, 3, 1, 2, 3}
	path := frameOf(Path{LaneDatagram, 1400})
	offer := frameOf(RekeyOffer{1, nodeKey.public})
	bye := frameOf(Close{CloseDone, 0})

	tests := []struct {
		name    string
		session *Session
		sent    []byte
		want    []FrameKind
		end     error
	}{
		{"confirmed", hub, frames(confirm, path, bye), []FrameKind{FrameConfirm, FramePath, FrameClose}, io.EOF},
		{"nothing", hub, nil, nil, io.EOF},
		{"a wrong proof", hub, frameOf(Confirm{wrong}), nil, &WireError{Node, FrameConfirm, fieldProof, RuleConfirmProof}},
		{"the proof of another session", hub, directConfirm, nil, &WireError{Node, FrameConfirm, fieldProof, RuleConfirmProof}},
		{"not confirmed", hub, frames(path, confirm), nil, &WireError{Node, FramePath, 0, RuleFrameOrder}},
		{"something ignorable before", hub, frames(ignorable, confirm), nil, &WireError{Node, 0xfe, 0, RuleFrameOrder}},
		{"confirmed twice", hub, frames(confirm, confirm), []FrameKind{FrameConfirm}, &WireError{Node, FrameConfirm, 0, RuleFrameOrder}},
		{"something ignorable behind", hub, frames(confirm, ignorable, path), []FrameKind{FrameConfirm, FramePath}, io.EOF},
		{"something unknown behind", hub, frames(confirm, []byte{0x7f, 0, 0}), []FrameKind{FrameConfirm}, &WireError{Node, 0x7f, 0, RuleFrameKind}},
		{"half an ignorable frame", hub, frames(confirm, ignorable[:4]), []FrameKind{FrameConfirm}, io.ErrUnexpectedEOF},
		{"half a header", hub, frames(confirm, path[:1]), []FrameKind{FrameConfirm}, io.ErrUnexpectedEOF},
		{"half a body", hub, frames(confirm, path[:5]), []FrameKind{FrameConfirm}, io.ErrUnexpectedEOF},
		{"more after the close", hub, frames(confirm, bye, path), []FrameKind{FrameConfirm, FrameClose}, &WireError{Node, FramePath, 0, RuleFrameOrder}},
		{"another handshake", hub, frames(confirm, []byte{1, 0, 96}), []FrameKind{FrameConfirm}, &WireError{Node, FrameInitiation, 0, RuleFrameOrder}},
		{"the hub's kind", hub, frames(confirm, frameOf(RekeyAsk{})), []FrameKind{FrameConfirm}, &WireError{Node, FrameRekeyAsk, 0, RuleFrameDirection}},
		{"keys without a direct lane", hub, frames(confirm, offer), []FrameKind{FrameConfirm}, &WireError{Node, FrameRekeyOffer, 0, RuleFrameOrder}},
		{"the path of a lane that is not there", hub, frames(confirm, frameOf(Path{LaneDirect, 1200})), []FrameKind{FrameConfirm}, &WireError{Node, FramePath, fieldLane, RuleFieldValue}},
		{"keys", directHub, frames(directConfirm, offer, frameOf(Path{LaneDirect, 1200})), []FrameKind{FrameConfirm, FrameRekeyOffer, FramePath}, io.EOF},
		{"keys before the confirmation", directHub, offer, nil, &WireError{Node, FrameRekeyOffer, 0, RuleFrameOrder}},
		{"at the node", node, frames(ignorable, path, bye), []FrameKind{FramePath, FrameClose}, io.EOF},
		{"a confirmation at the node", node, confirm, nil, &WireError{Hub, FrameConfirm, 0, RuleFrameDirection}},
		{"keys at the node", directNode, frameOf(RekeyAsk{}), []FrameKind{FrameRekeyAsk}, io.EOF},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			control := test.session.Control(bytes.NewReader(test.sent))
			var got []FrameKind
			var err error
			for err == nil {
				var m Message
				if m, err = control.Next(); err == nil {
					got = append(got, m.Kind())
				} else if m != nil {
					t.Errorf("%s beside an error", m.Kind())
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			wantError(t, err, test.end)
			if test.end == io.EOF && err != io.EOF {
				t.Errorf("the end of the stream came wrapped: %v", err)
			}
		})
	}
}

// B170: bytes from someone not authenticated yet are held in a bounded place.
func TestB170_FramesAreBounded(t *testing.T) {
	node, hub := agreed(t, testInitiator(), testResponder(), datagramAnswer())
	largest := append([]byte{0x80, MaxBody >> 8, MaxBody & 0xff}, make([]byte, MaxBody)...)
	stream := bytes.NewReader(frames(frameOf(Confirm{*node.proof.get()}), largest, []byte{0x80, MaxBody >> 8, MaxBody&0xff + 1}))
	control := hub.Control(stream)
	if _, err := control.Next(); err != nil {
		t.Fatal(err)
	}
	_, err := control.Next()
	wantError(t, err, &WireError{Node, 0x80, 0, RuleFrameLength})
}

func TestMessageBodies(t *testing.T) {
	key := bytes.Repeat([]byte{1}, KeySize)
	proof := appendField(nil, fieldProof, key...)
	epoch := []byte{fieldEpoch, 4, 0, 0, 0, 1}
	public := appendField(nil, fieldPublicKey, key...)
	tests := []struct {
		name  string
		kind  FrameKind
		body  []byte
		field uint8
		rule  Rule // 0: good
	}{
		{"confirm", FrameConfirm, proof, 0, 0},
		{"confirm and more to ignore", FrameConfirm, frames(proof, []byte{0x80, 0}, []byte{0xff, 1, 1}), 0, 0},
		{"confirm without proof", FrameConfirm, nil, fieldProof, RuleFieldMissing},
		{"confirm with a short proof", FrameConfirm, appendField(nil, fieldProof, key[1:]...), fieldProof, RuleFieldLength},
		{"confirm twice proved", FrameConfirm, frames(proof, proof), fieldProof, RuleFieldOrder},
		{"confirm with an epoch", FrameConfirm, frames(epoch, proof), fieldEpoch, RuleFieldUnknown},
		{"something unknown", FrameConfirm, frames(proof, []byte{0x7f, 0}), 0x7f, RuleFieldUnknown},
		{"field zero", FrameConfirm, frames([]byte{0, 0}, proof), 0, RuleFieldOrder},
		{"ignorable before known", FrameConfirm, frames([]byte{0x80, 0}, proof), fieldProof, RuleFieldOrder},
		{"ignorable twice", FrameConfirm, frames(proof, []byte{0x80, 0, 0x80, 0}), 0x80, RuleFieldOrder},
		{"a number alone", FrameConfirm, frames(proof, []byte{0x80}), 0x80, RuleFieldTruncated},
		{"a field behind its body", FrameConfirm, proof[:33], fieldProof, RuleFieldTruncated},
		{"ask", FrameRekeyAsk, nil, 0, 0},
		{"ask for an epoch", FrameRekeyAsk, epoch, fieldEpoch, RuleFieldUnknown},
		{"offer", FrameRekeyOffer, frames(epoch, public), 0, 0},
		{"offer without a key", FrameRekeyOffer, epoch, fieldPublicKey, RuleFieldMissing},
		{"offer of a long epoch", FrameRekeyOffer, frames([]byte{fieldEpoch, 5, 0, 0, 0, 0, 1}, public), fieldEpoch, RuleFieldLength},
		{"answer", FrameRekeyAnswer, frames(epoch, public, proof), 0, 0},
		{"answer out of order", FrameRekeyAnswer, frames(public, epoch, proof), fieldEpoch, RuleFieldOrder},
		{"done", FrameRekeyDone, frames(epoch, proof), 0, 0},
		{"done with a key", FrameRekeyDone, frames(epoch, public, proof), fieldPublicKey, RuleFieldUnknown},
		{"path of no lane", FramePath, []byte{fieldLane, 1, 3, fieldDatagramSize, 2, 4, 0xb0}, fieldLane, RuleFieldValue},
		{"path of zero", FramePath, []byte{fieldLane, 1, 1, fieldDatagramSize, 2, 0, 0}, fieldDatagramSize, RuleFieldValue},
		{"close", FrameClose, []byte{fieldCloseCode, 2, 0, 5, fieldRetryAfter, 4, 0, 0x36, 0xee, 0x80}, 0, 0},
		{"close for more than an hour", FrameClose, []byte{fieldCloseCode, 2, 0, 5, fieldRetryAfter, 4, 0, 0x36, 0xee, 0x81}, fieldRetryAfter, RuleFieldValue},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := readMessage(test.kind, test.body, Hub)
			if test.rule == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, &WireError{Hub, test.kind, test.field, test.rule})
		})
	}
}

func TestCloseCodeFor(t *testing.T) {
	for want, err := range map[CloseCode]error{
		CloseDone:         nil,
		CloseProtocol:     &WireError{},
		CloseIncompatible: &IncompatibleError{},
		CloseInternal:     errors.New("anything"),
	} {
		if got := CloseCodeFor(err); got != want {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
	}
}

// Every value of an enumeration has a name of its own.
func TestNames(t *testing.T) {
	check := func(what string, names []string, unknown string) {
		t.Helper()
		slices.Sort(names)
		if len(slices.Compact(names)) != len(names) || slices.Contains(names, "") || slices.Contains(names, "unknown") {
			t.Errorf("%s: %q", what, names)
		}
		if unknown != "unknown" {
			t.Errorf("%s: a value that is none is called %q", what, unknown)
		}
	}
	check("rules", names(Rules()), ruleEnd.String())
	check("close codes", names(CloseCodes()), CloseCode(0xffff).String())
	check("joins", append(names(JoinRefusals()), "whole", "joined", "held"), joinEnd.String())
	check("opens", append(names(OpenRefusals()), "new"), openEnd.String())
	check("lanes", names([]Lane{LaneDatagram, LaneDirect}), Lane(0).String())
	check("ciphers", names([]Cipher{CipherAES256GCM, CipherChaCha20}), Cipher(0).String())
	check("packets", names([]PacketKind{1, 2, 3, 4, 5}), PacketKind(6).String())
	check("frames", names([]FrameKind{1, 2, 3, 4, 5, 6, 7, 8, 9}), FrameKind(10).String())
}

func names[T interface{ String() string }](values []T) []string {
	var names []string
	for _, v := range values {
		names = append(names, v.String())
	}
	return names
}
