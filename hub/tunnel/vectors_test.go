package tunnel

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/vectors.json anew")

const vectorsFile = "testdata/vectors.json"

// vectors is the file, as docs/tunnel.md describes it. Bytes are hexadecimal.
type vectors struct {
	Handshakes []handshakeVector `json:"handshakes"`
	Rekeys     []rekeyVector     `json:"rekeys"`
	Messages   []messageVector   `json:"messages"`
	Refusals   []refusalVector   `json:"refusals"`
	Splits     []splitVector     `json:"splits"`
	Joins      []joinVector      `json:"joins"`
	Packets    []packetVector    `json:"packets"`
	Windows    []windowVector    `json:"windows"`
	ResetKey   resetVector       `json:"resetKey"`
}

type handshakeVector struct {
	Name          string       `json:"name"`
	AuthorityID   string       `json:"authorityId"`
	Bind          string       `json:"bind"`
	Lane          string       `json:"lane"`
	HubPrivate    string       `json:"hubPrivate"`
	HubEphemeral  string       `json:"hubEphemeral"`
	NodePrivate   string       `json:"nodePrivate"`
	NodeEphemeral string       `json:"nodeEphemeral"`
	Offer         offerVector  `json:"offer"`
	Answer        answerVector `json:"answer"`

	Prologue   string      `json:"prologue"`
	OfferBody  string      `json:"offerBody"`
	AnswerBody string      `json:"answerBody"`
	Initiation string      `json:"initiation"`
	Response   string      `json:"response"`
	Confirm    string      `json:"confirm"`
	Hash       string      `json:"h"`
	K1         string      `json:"k1"`
	K2         string      `json:"k2"`
	Master     string      `json:"master"`
	Keys       []keyVector `json:"keys,omitempty"`
}

type offerVector struct {
	Versions      []int  `json:"versions"`
	InnerMTU      int    `json:"innerMtu"`
	Lanes         []int  `json:"lanes"`
	Ciphers       []int  `json:"ciphers,omitempty"`
	ReceiverIndex uint32 `json:"receiverIndex,omitempty"`
}

type answerVector struct {
	Version        int    `json:"version"`
	InnerMTU       int    `json:"innerMtu"`
	Lane           int    `json:"lane"`
	Cipher         int    `json:"cipher,omitempty"`
	ReceiverIndex  uint32 `json:"receiverIndex,omitempty"`
	ControlAddress string `json:"controlAddress"`
	HubAddress     string `json:"hubAddress"`
	Keepalive      int    `json:"keepaliveSeconds"`
}

// keyVector is the key of what one end seals.
type keyVector struct {
	From   string `json:"from"`
	Cipher int    `json:"cipher"`
	Epoch  uint32 `json:"epoch"`
	Key    string `json:"key"`
}

type rekeyVector struct {
	Epoch       uint32      `json:"epoch"`
	Before      string      `json:"masterBefore"`
	Lane        string      `json:"lane"`
	NodePrivate string      `json:"nodePrivate"`
	HubPrivate  string      `json:"hubPrivate"`
	Offer       string      `json:"offer"`
	Answer      string      `json:"answer"`
	Done        string      `json:"done"`
	Master      string      `json:"master"`
	Keys        []keyVector `json:"keys"`
}

type messageVector struct {
	Name string `json:"name"`
	From string `json:"from"`
	Hex  string `json:"hex"`
}

// refusalVector is a frame that its reader refuses. The handshake's frames have
// their payload in the clear here.
type refusalVector struct {
	Name  string `json:"name"`
	From  string `json:"from"`
	Hex   string `json:"hex"`
	Rule  string `json:"rule"`
	Field uint8  `json:"field,omitempty"`
}

type splitVector struct {
	Limit     int      `json:"limit"`
	Number    uint32   `json:"number,omitempty"`
	Packet    string   `json:"packet"`
	Datagrams []string `json:"datagrams"`
}

type joinVector struct {
	Name     string     `json:"name"`
	InnerMTU int        `json:"innerMtu"`
	Steps    []joinStep `json:"steps"`
}

type joinStep struct {
	Millisecond int    `json:"ms,omitempty"`
	Datagram    string `json:"datagram"`
	Result      string `json:"result"`
	Packet      string `json:"packet,omitempty"`
}

type packetVector struct {
	Cipher        int    `json:"cipher"`
	Key           string `json:"key"`
	Kind          int    `json:"kind"`
	Epoch         uint32 `json:"epoch"`
	ReceiverIndex uint32 `json:"receiverIndex"`
	Counter       uint64 `json:"counter"`
	Payload       string `json:"payload"`
	Packet        string `json:"packet"`
}

type windowVector struct {
	Counter uint64 `json:"counter"`
	Result  string `json:"result"`
}

type resetVector struct {
	HubPrivate string `json:"hubPrivate"`
	Key        string `json:"key"`
}

// TestVectors makes the vectors anew from the code and compares them with the
// file, so that neither changes without the other.
func TestVectors(t *testing.T) {
	got, err := json.MarshalIndent(makeVectors(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(vectorsFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the vectors differ from the code; -update writes them anew")
	}
}

func makeVectors(t *testing.T) vectors {
	v := vectors{
		Messages: makeMessages(),
		Refusals: makeRefusals(t),
		Splits:   makeSplits(t),
		Joins:    makeJoins(t),
		Packets:  makePackets(t),
		Windows:  makeWindows(),
	}
	plain := makeHandshake(t, "datagram lane", datagramOffer(), datagramAnswer())
	direct := makeHandshake(t, "direct lane", directOffer(), directAnswer(CipherAES256GCM))
	v.Handshakes = []handshakeVector{plain, direct}
	v.Rekeys = makeRekeys(t, direct)
	reset := resetKey(hubKey)
	v.ResetKey = resetVector{hex.EncodeToString(hubKey.scalar.get()[:]), hex.EncodeToString(reset[:])}
	return v
}

// fixed is a source of randomness that gives one byte again and again.
type fixed byte

func (f fixed) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(f)
	}
	return len(p), nil
}

func hexOf(f fixed) string { return hex.EncodeToString(bytes.Repeat([]byte{byte(f)}, KeySize)) }

func makeHandshake(t *testing.T, name string, offer Offer, answer Answer) handshakeVector {
	t.Helper()
	const bindByte, laneByte, nodeByte, hubByte = fixed(0xb1), fixed(0x1a), fixed(0x44), fixed(0x55)
	v := handshakeVector{
		Name:          name,
		AuthorityID:   testAuthority,
		Bind:          hexOf(bindByte),
		Lane:          hexOf(laneByte),
		HubPrivate:    hex.EncodeToString(hubKey.scalar.get()[:]),
		HubEphemeral:  hexOf(hubByte),
		NodePrivate:   hex.EncodeToString(nodeKey.scalar.get()[:]),
		NodeEphemeral: hexOf(nodeByte),
		Offer:         offerVectorOf(offer),
		Answer:        answerVectorOf(answer),
	}
	var hash []byte
	export := func(label string, context []byte, length int) ([]byte, error) {
		out := make([]byte, length)
		switch label {
		case bindLabel:
			bindByte.Read(out)
			if context != nil {
				t.Error("the binding has a context")
			}
		case laneLabel:
			laneByte.Read(out)
			if hash != nil && !bytes.Equal(context, hash) {
				t.Error("the ends have different contexts")
			}
			hash = bytes.Clone(context)
		default:
			t.Errorf("asked for %q", label)
		}
		return out, nil
	}
	p, err := prologue(testAuthority, export)
	if err != nil {
		t.Fatal(err)
	}
	v.Prologue = hex.EncodeToString(p)
	i := testInitiator()
	i.Offer, i.random = offer, nodeByte
	r := testResponder()
	r.random = hubByte
	state, initiation, err := i.begin(export)
	if err != nil {
		t.Fatal(err)
	}
	request, err := r.Receive(bytes.NewReader(initiation), export)
	if err != nil {
		t.Fatal(err)
	}
	_, response, err := request.answer(answer)
	if err != nil {
		t.Fatal(err)
	}
	// The keys of Split are for the vectors alone, so they are taken here.
	copied := *state
	_, c1, c2, err := copied.ReadMessage(nil, response[headerSize:])
	if err != nil {
		t.Fatal(err)
	}
	k1, k2 := c1.UnsafeKey(), c2.UnsafeKey()
	root := newRoot([KeySize]byte(hash), k1, k2, [KeySize]byte(bytes.Repeat([]byte{byte(laneByte)}, KeySize)))
	proof := root.master.proof(Node, 0, [KeySize]byte{}, [KeySize]byte{})
	offerBody, err := offer.encode()
	if err != nil {
		t.Fatal(err)
	}
	answerBody, err := answer.encode(offer)
	if err != nil {
		t.Fatal(err)
	}
	v.OfferBody, v.AnswerBody = hex.EncodeToString(offerBody), hex.EncodeToString(answerBody)
	v.Initiation, v.Response = hex.EncodeToString(initiation), hex.EncodeToString(response)
	v.Confirm = hex.EncodeToString(frameOf(Confirm{proof}))
	v.Hash, v.K1, v.K2 = hex.EncodeToString(hash), hex.EncodeToString(k1[:]), hex.EncodeToString(k2[:])
	v.Master = hex.EncodeToString(root.master[:])
	if answer.Lane == LaneDirect {
		v.Keys = keyVectors(root.master, 0)
	}
	return v
}

func keyVectors(m master, epoch uint32) []keyVector {
	var keys []keyVector
	for _, cipher := range bothCiphers {
		for _, from := range []Side{Node, Hub} {
			key := m.key(from, cipher, epoch)
			keys = append(keys, keyVector{from.String(), int(cipher), epoch, hex.EncodeToString(key[:])})
		}
	}
	return keys
}

func offerVectorOf(o Offer) offerVector {
	return offerVector{ints(o.Versions), int(o.InnerMTU), ints(o.Lanes), ints(o.Ciphers), o.ReceiverIndex}
}

func answerVectorOf(a Answer) answerVector {
	return answerVector{
		int(a.Version), int(a.InnerMTU), int(a.Lane), int(a.Cipher), a.ReceiverIndex,
		a.ControlAddress.String(), a.HubAddress.String(), int(a.Keepalive / time.Second),
	}
}

func ints[T ~uint8](list []T) []int {
	var out []int
	for _, v := range list {
		out = append(out, int(v))
	}
	return out
}

func makeRekeys(t *testing.T, from handshakeVector) []rekeyVector {
	t.Helper()
	m, lane := master(unhex(from.Master)), [KeySize]byte(unhex(from.Lane))
	node := &Epochs{side: Node, cipher: CipherAES256GCM, root: hide(root{m, lane}), random: fixed(0x66)}
	hub := &Epochs{side: Hub, cipher: CipherAES256GCM, root: hide(root{m, lane}), random: fixed(0x77)}
	var rekeys []rekeyVector
	now := start
	for range 2 {
		now = now.Add(EpochLife)
		v := rekeyVector{
			Epoch:       node.epoch + 1,
			Before:      hex.EncodeToString(node.root.get().master[:]),
			Lane:        from.Lane,
			NodePrivate: hexOf(node.random.(fixed)),
			HubPrivate:  hexOf(hub.random.(fixed)),
		}
		offer, err := node.Begin(now)
		if err != nil {
			t.Fatal(err)
		}
		answer, _, err := hub.Answer(offer, now)
		if err != nil {
			t.Fatal(err)
		}
		done, _, err := node.Finish(answer, now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := hub.Complete(done); err != nil {
			t.Fatal(err)
		}
		v.Offer, v.Answer, v.Done = hex.EncodeToString(frameOf(offer)), hex.EncodeToString(frameOf(answer)), hex.EncodeToString(frameOf(done))
		v.Master, v.Keys = hex.EncodeToString(node.root.get().master[:]), keyVectors(node.root.get().master, node.epoch)
		rekeys = append(rekeys, v)
		node.random, hub.random = fixed(0x88), fixed(0x99)
	}
	return rekeys
}

func makeMessages() []messageVector {
	var out []messageVector
	for _, m := range everyMessage() {
		from := Hub
		if m.Kind().sentBy(Node) {
			from = Node
		}
		out = append(out, messageVector{m.Kind().String(), from.String(), hex.EncodeToString(frameOf(m))})
	}
	ignored := frames(frameOf(Path{LaneDatagram, 1401}), []byte{0x80, 2, 0xab, 0xcd})
	binary.BigEndian.PutUint16(ignored[1:], uint16(len(ignored)-headerSize))
	out = append(out, messageVector{"path with a field to ignore", "node", hex.EncodeToString(ignored)})
	return append(out, messageVector{"a kind to ignore", "hub", "900003616263"})
}

func makeRefusals(t *testing.T) []refusalVector {
	t.Helper()
	frame := func(kind FrameKind, body ...byte) []byte {
		return endFrame(append(beginFrame(nil, kind), body...), 0)
	}
	offer, err := directOffer().encode()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := directAnswer(CipherAES256GCM).encode(directOffer())
	if err != nil {
		t.Fatal(err)
	}
	key := bytes.Repeat([]byte{0xa1}, KeySize)
	list := []struct {
		name string
		from Side
		raw  []byte
	}{
		{"kind 0", Node, frame(0)},
		{"kind 10", Hub, frame(10)},
		{"1,025 bytes", Node, []byte{0x80, 0x04, 0x01}},
		{"a node that asks", Node, frame(FrameRekeyAsk)},
		{"a hub that confirms", Hub, frame(FrameConfirm, appendField(nil, fieldProof, key...)...)},
		{"confirm without proof", Node, frame(FrameConfirm)},
		{"confirm with half a proof", Node, frame(FrameConfirm, appendField(nil, fieldProof, key[:16]...)...)},
		{"confirm cut short", Node, frame(FrameConfirm, appendField(nil, fieldProof, key...)[:33]...)},
		{"confirm with an epoch", Node, frame(FrameConfirm, appendField(appendUint32(nil, fieldEpoch, 0), fieldProof, key...)...)},
		{"rekey-done out of order", Node, frame(FrameRekeyDone, appendUint32(appendField(nil, fieldProof, key...), fieldEpoch, 1)...)},
		{"path of no lane", Node, frame(FramePath, fieldLane, 1, 9, fieldDatagramSize, 2, 4, 0xb0)},
		{"close for an hour and a millisecond", Hub, frame(FrameClose, fieldCloseCode, 2, 0, 5, fieldRetryAfter, 4, 0, 0x36, 0xee, 0x81)},
		{"offer of version 0", Node, frame(FrameInitiation, replaced(offer, fieldVersions, 0)...)},
		{"offer of the direct lane alone", Node, frame(FrameInitiation, replaced(offer, fieldLanes, 2)...)},
		{"offer of 1,279 bytes", Node, frame(FrameInitiation, replaced(offer, fieldInnerMTU, 4, 0xff)...)},
		{"offer with an unknown field", Node, frame(FrameInitiation, frames(offer, []byte{0x7f, 0})...)},
		{"answer of another version", Hub, frame(FrameResponse, replaced(answer, fieldVersion, 2)...)},
		{"answer of another cipher", Hub, frame(FrameResponse, replaced(answer, fieldCipher, 3)...)},
		{"answer with a hub elsewhere", Hub, frame(FrameResponse, replaced(answer, fieldHubAddress, 10, 9, 9, 9)...)},
	}
	var out []refusalVector
	for _, entry := range list {
		err := judgeFrame(entry.raw, entry.from)
		var wire *WireError
		if !errors.As(err, &wire) {
			t.Fatalf("%s: got %v", entry.name, err)
		}
		out = append(out, refusalVector{entry.name, entry.from.String(), hex.EncodeToString(entry.raw), wire.Rule.String(), wire.Field})
	}
	return out
}

// judgeFrame reads a frame whose payload, if of the handshake, is in the clear.
func judgeFrame(raw []byte, from Side) error {
	r := bytes.NewReader(raw)
	kind, length, err := readHeader(r, from)
	if err != nil {
		return err
	}
	body := make([]byte, length)
	if err := readBody(r, body); err != nil {
		return err
	}
	switch kind {
	case FrameInitiation:
		_, err = readOffer(body)
	case FrameResponse:
		_, err = readAnswer(body, directOffer())
	default:
		_, err = readMessage(kind, body, from)
	}
	return err
}

func makeSplits(t *testing.T) []splitVector {
	t.Helper()
	var out []splitVector
	for _, c := range []struct{ size, limit int }{{20, 20}, {20, 19}, {21, 20}, {40, 28}, {41, 40}} {
		var s Splitter
		s.number.Store(0x01020303)
		packet := testPacket(c.size, 0)
		first, second, err := s.Split(packet, c.limit, &[2][]byte{})
		if err != nil {
			t.Fatal(err)
		}
		v := splitVector{Limit: c.limit, Packet: hex.EncodeToString(packet), Datagrams: []string{hex.EncodeToString(first)}}
		if second != nil {
			v.Number = 0x020304 // the low 24 bits of the one after
			v.Datagrams = append(v.Datagrams, hex.EncodeToString(second))
		}
		out = append(out, v)
	}
	return out
}

func makeJoins(t *testing.T) []joinVector {
	t.Helper()
	packet := testPacket(40, 0)
	front, back := partOf(1, 40, 0, packet[:24]), partOf(1, 40, 24, packet[24:])
	type arrival struct {
		ms       int
		datagram []byte
	}
	list := []struct {
		name     string
		arrivals []arrival
	}{
		{"whole", []arrival{{0, packet}, {0, packet}}},
		{"in order", []arrival{{0, front}, {999, back}}},
		{"out of order", []arrival{{0, back}, {0, front}}},
		{"too late", []arrival{{0, front}, {1000, back}, {1001, front}}},
		{"twice", []arrival{{0, front}, {1, front}, {2, back}, {3, back}, {4, front}}},
		{"overlap", []arrival{{0, front}, {1, partOf(1, 40, 23, packet[23:])}, {2, back}}},
		{"gap", []arrival{{0, front}, {1, partOf(1, 40, 25, packet[25:])}, {2, back}}},
		{"another length", []arrival{{0, front}, {1, partOf(1, 41, 24, append(bytes.Clone(packet[24:]), 0))}, {2, back}}},
		{"two packets", []arrival{{0, front}, {1, partOf(2, 40, 24, packet[24:])}, {2, back}, {3, partOf(2, 40, 0, packet[:24])}}},
		{"an older packet", []arrival{{0, partOf(33, 40, 0, packet[:24])}, {1, front}, {2, partOf(33, 40, 24, packet[24:])}}},
		{"a newer packet", []arrival{{0, front}, {1, partOf(33, 40, 0, packet[:24])}, {2, back}}},
		{"no packet", []arrival{{0, nil}, {0, []byte{0x02}}, {0, packet[:19]}, {0, testPacket(1401, 0)}}},
		{"no part", []arrival{{0, front[:8]}, {0, partOf(1, 19, 0, packet[:10])}, {0, partOf(1, 1401, 0, packet)}, {0, partOf(1, 40, 0, packet)}, {0, partOf(1, 40, 10, packet[10:39])}}},
	}
	var out []joinVector
	for _, entry := range list {
		joiner := NewJoiner(DefaultInnerMTU)
		var scratch [MaxInnerMTU]byte
		v := joinVector{Name: entry.name, InnerMTU: DefaultInnerMTU}
		for _, a := range entry.arrivals {
			got, result := joiner.Take(a.datagram, &scratch, start.Add(time.Duration(a.ms)*time.Millisecond))
			v.Steps = append(v.Steps, joinStep{a.ms, hex.EncodeToString(a.datagram), result.String(), hex.EncodeToString(got)})
		}
		out = append(out, v)
	}
	return out
}

func makePackets(t *testing.T) []packetVector {
	t.Helper()
	var out []packetVector
	for _, cipher := range bothCiphers {
		keys := Keys{0x00010002, cipher, hide([KeySize]byte(bytes.Repeat([]byte{0xcc}, KeySize))), hide([KeySize]byte{})}
		d := &Direct{remote: 0x5eed1234}
		d.install(keys)
		d.Switch(keys.epoch, start)
		for _, c := range []struct {
			kind    PacketKind
			counter uint64
			payload []byte
		}{
			{PacketData, 0, testPacket(20, 0)},
			{PacketData, 1<<28 - 1, testPacket(33, 9)},
			{PacketProbe, 2, AppendProbe(nil, Probe{0x0102030405060708, 64})},
			{PacketProbeAck, 3, AppendProbeAck(nil, Probe{0x0102030405060708, 64})},
			{PacketChallenge, 4, bytes.Repeat([]byte{0xc4}, 16)},
		} {
			d.sealing.Load().counter.Store(c.counter)
			packet, err := d.Seal(nil, c.kind, c.payload, start)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, packetVector{
				int(cipher), hex.EncodeToString(keys.seal.get()[:]), int(c.kind), keys.epoch, d.remote, c.counter,
				hex.EncodeToString(c.payload), hex.EncodeToString(packet),
			})
		}
	}
	return out
}

func makeWindows() []windowVector {
	var w window
	var out []windowVector
	for _, counter := range []uint64{0, 0, 3, 1, 2, 1, 2050, 4, 2047, 4, 1 << 28, 1<<28 - 2047, 1 << 20, 1 << 28} {
		out = append(out, windowVector{counter, w.see(counter).String()})
	}
	return out
}
