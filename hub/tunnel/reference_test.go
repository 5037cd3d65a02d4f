package tunnel

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"net/netip"
	"os"
	"slices"
	"testing"

	"golang.org/x/crypto/blake2s"
	"golang.org/x/crypto/chacha20poly1305"
)

// What follows reads the vectors from docs/tunnel.md and the RFCs alone: it
// calls nothing of this package, and no Noise library.

func TestVectorsByAnotherReading(t *testing.T) {
	text, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	for _, h := range v.Handshakes {
		t.Run("handshake/"+h.Name, func(t *testing.T) { rereadHandshake(t, h) })
	}
	for i, r := range v.Rekeys {
		before := v.Handshakes[1].Master
		if i > 0 {
			before = v.Rekeys[i-1].Master
		}
		t.Run(fmt.Sprintf("rekey/%d", r.Epoch), func(t *testing.T) { rereadRekey(t, r, before) })
	}
	for _, s := range v.Splits {
		t.Run(fmt.Sprintf("split/%d over %d", len(s.Packet)/2, s.Limit), func(t *testing.T) { rereadSplit(t, s) })
	}
	for _, j := range v.Joins {
		t.Run("join/"+j.Name, func(t *testing.T) { rereadJoin(t, j) })
	}
	for i, p := range v.Packets {
		t.Run(fmt.Sprintf("packet/%d", i), func(t *testing.T) { rereadPacket(t, p) })
	}
	for _, m := range v.Messages {
		body := bodyOf(t, m.Hex)
		if _, err := fieldsOf(body); err != nil && m.Name != "a kind to ignore" {
			t.Errorf("message %s: %v", m.Name, err)
		}
	}
	same(t, "reset key", v.ResetKey.Key, expandSHA256(extractSHA256(make([]byte, 32), unhex(v.ResetKey.HubPrivate)), "serve.zone-vpn-1 stateless reset", nil))
	rereadWindow(t, v.Windows)
}

func same(t *testing.T, what, want string, got []byte) {
	t.Helper()
	if hex.EncodeToString(got) != want {
		t.Errorf("%s: got %x, want %s", what, got, want)
	}
}

// bodyOf takes the header off a frame.
func bodyOf(t *testing.T, frame string) []byte {
	t.Helper()
	b := unhex(frame)
	if int(b[1])<<8|int(b[2]) != len(b)-3 {
		t.Fatalf("frame %s: its length is not its length", frame)
	}
	return b[3:]
}

// fieldsOf reads a list of fields.
func fieldsOf(b []byte) (map[int][]byte, error) {
	out := map[int][]byte{}
	last := 0
	for len(b) > 0 {
		if len(b) < 2 || len(b) < 2+int(b[1]) || int(b[0]) <= last {
			return nil, fmt.Errorf("no list of fields: %x", b)
		}
		last = int(b[0])
		out[last] = b[2 : 2+int(b[1])]
		b = b[2+int(b[1]):]
	}
	return out, nil
}

// noiseIK is Noise_IK_25519_ChaChaPoly_BLAKE2s (Noise revision 34) for one
// reading of a transcript with every private key at hand.
type noiseIK struct {
	h, ck, k []byte
	n        uint64
}

func hmacOf(new func() hash.Hash, key []byte, parts ...[]byte) []byte {
	m := hmac.New(new, key)
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

func blake() hash.Hash {
	h, err := blake2s.New256(nil)
	if err != nil {
		panic(err)
	}
	return h
}

func (s *noiseIK) mixHash(b []byte) {
	h := blake()
	h.Write(s.h)
	h.Write(b)
	s.h = h.Sum(nil)
}

// hkdf2 is Noise's HKDF with two outputs (§4.3).
func (s *noiseIK) hkdf2(input []byte) (a, b []byte) {
	temp := hmacOf(blake, s.ck, input)
	a = hmacOf(blake, temp, []byte{1})
	return a, hmacOf(blake, temp, a, []byte{2})
}

func (s *noiseIK) mixKey(input []byte) {
	s.ck, s.k = s.hkdf2(input)
	s.n = 0
}

func (s *noiseIK) encryptAndHash(plain []byte) []byte {
	aead, err := chacha20poly1305.New(s.k)
	if err != nil {
		panic(err)
	}
	var nonce [12]byte
	binary.LittleEndian.PutUint64(nonce[4:], s.n)
	s.n++
	out := aead.Seal(nil, nonce[:], plain, s.h)
	s.mixHash(out)
	return out
}

func x25519(private, public []byte) []byte {
	key, err := ecdh.X25519().NewPrivateKey(private)
	if err != nil {
		panic(err)
	}
	if public == nil {
		return key.PublicKey().Bytes()
	}
	peer, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		panic(err)
	}
	shared, err := key.ECDH(peer)
	if err != nil {
		panic(err)
	}
	return shared
}

func rereadHandshake(t *testing.T, v handshakeVector) {
	prologue := slices.Concat([]byte("serve.zone-vpn-1 prologue"), []byte{byte(len(v.AuthorityID))}, []byte(v.AuthorityID), unhex(v.Bind))
	same(t, "prologue", v.Prologue, prologue)
	rereadOffer(t, v)
	rereadAnswer(t, v)

	node, nodeE := unhex(v.NodePrivate), unhex(v.NodeEphemeral)
	hub, hubE := unhex(v.HubPrivate), unhex(v.HubEphemeral)
	nodePublic, nodeEPublic := x25519(node, nil), x25519(nodeE, nil)
	hubPublic, hubEPublic := x25519(hub, nil), x25519(hubE, nil)

	name := []byte("Noise_IK_25519_ChaChaPoly_BLAKE2s") // 33 bytes: hashed
	first := blake()
	first.Write(name)
	s := &noiseIK{h: first.Sum(nil)}
	s.ck = s.h
	s.mixHash(prologue)
	s.mixHash(hubPublic)

	message := slices.Clone(nodeEPublic) // e
	s.mixHash(nodeEPublic)
	s.mixKey(x25519(nodeE, hubPublic))                         // es
	message = append(message, s.encryptAndHash(nodePublic)...) // s
	s.mixKey(x25519(node, hubPublic))                          // ss
	message = append(message, s.encryptAndHash(unhex(v.OfferBody))...)
	same(t, "initiation", v.Initiation, append([]byte{1, byte(len(message) >> 8), byte(len(message))}, message...))

	message = slices.Clone(hubEPublic) // e
	s.mixHash(hubEPublic)
	s.mixKey(x25519(hubE, nodeEPublic)) // ee
	s.mixKey(x25519(hubE, nodePublic))  // se
	message = append(message, s.encryptAndHash(unhex(v.AnswerBody))...)
	same(t, "response", v.Response, append([]byte{2, byte(len(message) >> 8), byte(len(message))}, message...))

	k1, k2 := s.hkdf2(nil)
	same(t, "h", v.Hash, s.h)
	same(t, "k1", v.K1, k1)
	same(t, "k2", v.K2, k2)

	master := extractSHA256(s.h, slices.Concat(k1, k2, unhex(v.Lane)))
	same(t, "master", v.Master, master)
	proof := expandSHA256(master, "serve.zone-vpn-1 proof", slices.Concat([]byte{1, 0, 0, 0, 0}, make([]byte, 64)))
	same(t, "confirm", v.Confirm, slices.Concat([]byte{3, 0, 34, 0x0e, 32}, proof))
	rereadKeys(t, master, v.Keys)
	if (len(v.Keys) > 0) != (v.Answer.Lane == 2) {
		t.Error("keys without the direct lane, or the reverse")
	}
}

func rereadKeys(t *testing.T, master []byte, keys []keyVector) {
	for _, k := range keys {
		from := byte(1)
		if k.From == "hub" {
			from = 2
		}
		info := binary.BigEndian.AppendUint32([]byte{from, byte(k.Cipher)}, k.Epoch)
		same(t, fmt.Sprintf("key of %s, cipher %d", k.From, k.Cipher), k.Key, expandSHA256(master, "serve.zone-vpn-1 key", info))
	}
}

// RFC 5869 with SHA-256, and one block of output.
func extractSHA256(salt, secret []byte) []byte { return hmacOf(sha256.New, salt, secret) }

func expandSHA256(key []byte, label string, info []byte) []byte {
	return hmacOf(sha256.New, key, []byte(label), info, []byte{1})
}

func number(b []byte) (n uint64) {
	for _, v := range b {
		n = n<<8 | uint64(v)
	}
	return n
}

func numbers(b []byte) (list []int) {
	for _, v := range b {
		list = append(list, int(v))
	}
	return list
}

func rereadOffer(t *testing.T, v handshakeVector) {
	f, err := fieldsOf(unhex(v.OfferBody))
	if err != nil {
		t.Fatal(err)
	}
	got := offerVector{numbers(f[1]), int(number(f[2])), numbers(f[3]), numbers(f[4]), uint32(number(f[5]))}
	if !equal(t, got, v.Offer) {
		t.Errorf("offer: got %+v, want %+v", got, v.Offer)
	}
}

func rereadAnswer(t *testing.T, v handshakeVector) {
	f, err := fieldsOf(unhex(v.AnswerBody))
	if err != nil {
		t.Fatal(err)
	}
	address := func(b []byte) string { return netip.AddrFrom4([4]byte(b)).String() }
	got := answerVector{
		int(number(f[6])), int(number(f[2])), int(number(f[7])), int(number(f[8])), uint32(number(f[5])),
		fmt.Sprintf("%s/%d", address(f[9][:4]), f[9][4]), address(f[10]), int(number(f[11])),
	}
	if got != v.Answer {
		t.Errorf("answer: got %+v, want %+v", got, v.Answer)
	}
}

func rereadRekey(t *testing.T, v rekeyVector, before string) {
	if v.Before != before {
		t.Errorf("begins with %s, not with %s", v.Before, before)
	}
	node, hub := unhex(v.NodePrivate), unhex(v.HubPrivate)
	nodePublic, hubPublic := x25519(node, nil), x25519(hub, nil)
	master := extractSHA256(unhex(v.Before), slices.Concat(x25519(node, hubPublic), unhex(v.Lane)))
	same(t, "master", v.Master, master)
	rereadKeys(t, master, v.Keys)

	epoch := binary.BigEndian.AppendUint32(nil, v.Epoch)
	proof := func(from byte) []byte {
		return expandSHA256(master, "serve.zone-vpn-1 proof", slices.Concat([]byte{from}, epoch, nodePublic, hubPublic))
	}
	epochField := append([]byte{0x0c, 4}, epoch...)
	same(t, "offer", v.Offer, slices.Concat([]byte{5, 0, 40}, epochField, []byte{0x0d, 32}, nodePublic))
	same(t, "answer", v.Answer, slices.Concat([]byte{6, 0, 74}, epochField, []byte{0x0d, 32}, hubPublic, []byte{0x0e, 32}, proof(2)))
	same(t, "done", v.Done, slices.Concat([]byte{7, 0, 40}, epochField, []byte{0x0e, 32}, proof(1)))
}

func rereadSplit(t *testing.T, v splitVector) {
	packet := unhex(v.Packet)
	if len(packet) <= v.Limit {
		if len(v.Datagrams) != 1 || v.Datagrams[0] != v.Packet {
			t.Error("a packet that fits was split")
		}
		return
	}
	if len(v.Datagrams) != 2 {
		t.Fatalf("%d datagrams", len(v.Datagrams))
	}
	half := (len(packet) + 1) / 2
	head := func(offset int) []byte {
		return []byte{1, byte(v.Number >> 16), byte(v.Number >> 8), byte(v.Number), 0, byte(len(packet)), 0, byte(offset)}
	}
	same(t, "first", v.Datagrams[0], append(head(0), packet[:half]...))
	same(t, "second", v.Datagrams[1], append(head(half), packet[half:]...))
	for _, d := range v.Datagrams {
		if len(d)/2 > v.Limit {
			t.Errorf("%d bytes over %d", len(d)/2, v.Limit)
		}
	}
}

// rereadJoin joins with a list of everything that came, as the page says it.
func rereadJoin(t *testing.T, v joinVector) {
	type piece struct {
		number, length, offset int
		bytes                  []byte
		ms                     int
		joined                 bool
	}
	held := map[int]*piece{} // by place
	for i, step := range v.Steps {
		d := unhex(step.Datagram)
		result, packet := "", []byte(nil)
		switch {
		case len(d) == 0:
			result = "empty"
		case d[0]>>4 == 4 || d[0]>>4 == 6:
			switch result, packet = "whole", d; {
			case len(d) < 20:
				result, packet = "short", nil
			case len(d) > v.InnerMTU:
				result, packet = "long", nil
			}
		case d[0] != 1:
			result = "kind"
		case len(d) < 9:
			result = "part-short"
		default:
			p := &piece{int(number(d[1:4])), int(number(d[4:6])), int(number(d[6:8])), d[8:], step.Millisecond, false}
			end := p.offset + len(p.bytes)
			place := p.number % 32
			h := held[place]
			if h != nil && p.ms-h.ms >= 1000 {
				h = nil
			}
			switch {
			case p.length < 20 || p.length > v.InnerMTU:
				result = "part-length"
			case p.offset == 0 && end >= p.length || p.offset != 0 && end != p.length:
				result = "part-end"
			case h != nil && h.number > p.number: // the vectors' numbers do not begin anew
				result = "part-old"
			case h == nil || h.number < p.number:
				result, held[place] = "held", p
			case h.length != p.length:
				result = "part-conflict"
			case h.joined || (h.offset == 0) == (p.offset == 0):
				result = "part-duplicate"
			default:
				front, back := h, p
				if h.offset != 0 {
					front, back = p, h
				}
				switch gap := back.offset - len(front.bytes); {
				case gap < 0:
					result, held[place] = "part-overlap", nil
				case gap > 0:
					result, held[place] = "part-gap", nil
				default:
					result, packet, h.joined = "joined", slices.Concat(front.bytes, back.bytes), true
				}
			}
		}
		if result != step.Result || hex.EncodeToString(packet) != step.Packet {
			t.Errorf("step %d: got %s %x, want %s %s", i+1, result, packet, step.Result, step.Packet)
		}
	}
}

func rereadPacket(t *testing.T, v packetVector) {
	head := []byte{byte(v.Kind), 0, byte(v.Epoch >> 8), byte(v.Epoch)}
	nonce := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, v.ReceiverIndex), v.Counter)
	head = append(head, nonce...)
	var aead cipher.AEAD
	var err error
	switch v.Cipher {
	case 1:
		block, blockErr := aes.NewCipher(unhex(v.Key))
		if blockErr != nil {
			t.Fatal(blockErr)
		}
		aead, err = cipher.NewGCM(block)
	case 2:
		aead, err = chacha20poly1305.New(unhex(v.Key))
	}
	if err != nil {
		t.Fatal(err)
	}
	same(t, "packet", v.Packet, append(head, aead.Seal(nil, nonce, unhex(v.Payload), head)...))
}

// rereadWindow checks what any window of at least 2,048 has to answer.
func rereadWindow(t *testing.T, steps []windowVector) {
	seen := map[uint64]bool{}
	newest := uint64(0)
	for i, step := range steps {
		want := "new"
		switch {
		case seen[step.Counter]:
			want = "replayed"
		case newest > step.Counter+1<<20:
			want = "too-old"
		}
		if step.Result != want {
			t.Errorf("window, step %d: got %s, want %s", i+1, step.Result, want)
		}
		seen[step.Counter] = true
		newest = max(newest, step.Counter)
	}
}
