package tunnel

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"time"
)

// seedFrames gives every frame of the vectors to a fuzz target.
func seedFrames(f *testing.F) {
	var all []byte
	for _, m := range makeMessages() {
		f.Add(unhex(m.Hex))
		all = append(all, unhex(m.Hex)...)
	}
	f.Add(all)
}

// Whatever comes on the stream of a confirmed session ends in a message or a
// named fault, and a message says all that its frame said.
func FuzzControl(f *testing.F) {
	seedFrames(f)
	hub := &Session{side: Hub, answer: directAnswer(CipherAES256GCM)}
	node := &Session{side: Node, answer: directAnswer(CipherAES256GCM)}
	f.Fuzz(func(t *testing.T, sent []byte) {
		for _, session := range []*Session{hub, node} {
			stream := bytes.NewReader(sent)
			control := session.Control(stream)
			control.confirmed = true
			for {
				before := stream.Len()
				m, err := control.Next()
				if err != nil {
					var wire *WireError
					if err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &wire) {
						t.Fatalf("an error without a name: %v", err)
					}
					break
				}
				frame := AppendMessage(nil, m)
				if len(frame) > before-stream.Len() {
					t.Fatalf("%v out of %d bytes", m, before-stream.Len())
				}
				again, err := readMessage(m.Kind(), frame[headerSize:], control.from)
				if err != nil || again != m {
					t.Fatalf("%v written and read: %v, %v", m, again, err)
				}
			}
		}
	})
}

func FuzzOffer(f *testing.F) {
	for _, o := range []Offer{datagramOffer(), directOffer()} {
		f.Add(o.appendBody(nil))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := readOffer(body)
		if err != nil {
			return
		}
		again, err := o.encode()
		if err != nil {
			t.Fatalf("%+v is not taken back: %v", o, err)
		}
		if o2, err := readOffer(again); err != nil || !equal(t, o, o2) || len(again) > len(body) {
			t.Fatalf("%+v written and read: %+v, %v", o, o2, err)
		}
		terms := DatagramTerms()
		terms.Lanes, terms.Ciphers = append(terms.Lanes, LaneDirect), PreferredCiphers()
		terms.Negotiate(o)
	})
}

func FuzzAnswer(f *testing.F) {
	for _, a := range []Answer{datagramAnswer(), directAnswer(CipherAES256GCM), directAnswer(CipherChaCha20)} {
		f.Add(a.appendBody(nil))
	}
	offer := directOffer()
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := readAnswer(body, offer)
		if err != nil {
			return
		}
		again, err := a.encode(offer)
		if err != nil {
			t.Fatalf("%+v is not taken back: %v", a, err)
		}
		if a2, err := readAnswer(again, offer); err != nil || a != a2 || len(again) > len(body) {
			t.Fatalf("%+v written and read: %+v, %v", a, a2, err)
		}
	})
}

// Nobody without the keys writes a handshake message, whatever is tried.
func FuzzHandshake(f *testing.F) {
	export := testExporter("one session")
	i := testInitiator()
	i.random = fixed(0x44)
	state, frame, err := i.begin(export)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(frame)
	other := testInitiator()
	other.AuthorityID = "another"
	_, forged, err := other.begin(export)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(forged)
	f.Fuzz(func(t *testing.T, sent []byte) {
		request, err := testResponder().Receive(bytes.NewReader(sent), export)
		if err == nil && (request.Peer() != nodeKey.Public() || !bytes.HasPrefix(sent, frame)) {
			t.Fatalf("opened: %x", sent)
		}
		copied := *state
		if _, err := i.finish(&copied, sent, export); err == nil {
			t.Fatalf("answered: %x", sent)
		}
	})
}

// The input is a list of datagrams: two bytes of length and a byte of time
// before each.
func FuzzJoin(f *testing.F) {
	seed := func(datagrams ...[]byte) {
		var all []byte
		for _, d := range datagrams {
			all = append(append(all, byte(len(d)>>8), byte(len(d)), 1), d...)
		}
		f.Add(all)
	}
	packet := testPacket(40, 0)
	front, back := partOf(1, 40, 0, packet[:24]), partOf(1, 40, 24, packet[24:])
	seed(front, back, packet)
	seed(back, front, front, back)
	seed(front, partOf(33, 40, 24, packet[24:]), back, partOf(33, 40, 0, packet[:24]))
	f.Fuzz(func(t *testing.T, input []byte) {
		joiner := NewJoiner(DefaultInnerMTU)
		var scratch [MaxInnerMTU]byte
		now := start
		for len(input) >= 3 {
			n := min(int(input[0])<<8|int(input[1]), len(input)-3)
			now = now.Add(time.Duration(input[2]) * 10 * time.Millisecond)
			packet, result := joiner.Take(input[3:3+n], &scratch, now)
			input = input[3+n:]
			if packet != nil && (len(packet) < MinPacket || len(packet) > DefaultInnerMTU) {
				t.Fatalf("a packet of %d bytes", len(packet))
			}
			if (packet != nil) != (result == JoinWhole || result == JoinJoined) {
				t.Fatalf("%v with %d bytes", result, len(packet))
			}
		}
		if held := joiner.Stats().Held; held < 0 || held > JoinSlots*(DefaultInnerMTU-1) {
			t.Fatalf("%d bytes held", held)
		}
		joiner.Expire(now.Add(JoinLimit))
		if held := joiner.Stats().Held; held != 0 {
			t.Fatalf("%d bytes held of nothing", held)
		}
	})
}

// Nothing opens but what was sealed, and what does not open moves nothing.
func FuzzOpen(f *testing.F) {
	keys := Keys{0, CipherAES256GCM, hide([KeySize]byte{}), hide([KeySize]byte{})}
	d := &Direct{index: 0x5eed1234, remote: 0x5eed1234}
	d.install(keys)
	d.Switch(0, start)
	var good []byte
	for kind := PacketData; kind <= PacketResponse; kind++ {
		packet, err := d.Seal(nil, kind, testPacket(40, 0), start)
		if err != nil {
			f.Fatal(err)
		}
		good = packet
		f.Add(packet)
	}
	f.Add(unhex("01000000") /* a header cut short */)
	f.Fuzz(func(t *testing.T, packet []byte) {
		before := (*d.opening.Load())[0].seen
		text := hex.EncodeToString(packet)
		kind, payload, result := d.Open(packet, start)
		if result == OpenNew && (len(text) != 2*len(good) || !bytes.Equal(payload, testPacket(40, 0))) {
			t.Fatalf("opened %s", text)
		}
		if result != OpenNew && (kind != 0 || payload != nil || (*d.opening.Load())[0].seen != before) {
			t.Fatalf("%v of %s changed something", result, text)
		}
		ReadProbe(payload)
		ReadProbe([]byte(text))
	})
}
