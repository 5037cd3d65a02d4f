package tunnel

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var bothCiphers = []Cipher{CipherAES256GCM, CipherChaCha20}

func seal(t *testing.T, d *Direct, payload []byte, now time.Time) []byte {
	t.Helper()
	packet, err := d.Seal(nil, PacketData, payload, now)
	if err != nil {
		t.Fatal(err)
	}
	return packet
}

func TestDirectCrosses(t *testing.T) {
	for _, cipher := range bothCiphers {
		node, hub, _, _ := lanes(t, cipher)
		for _, size := range []int{1, MinPacket, DefaultInnerMTU} {
			payload := testPacket(size, 3)
			packet := seal(t, node, payload, start)
			if len(packet) != size+PacketOverhead || !IsDirect(packet[0]) {
				t.Errorf("%s: %d bytes for %d, first %#x", cipher, len(packet), size, packet[0])
			}
			_, got, result := hub.Open(packet, start)
			if result != OpenNew || !bytes.Equal(got, payload) {
				t.Errorf("%s: %d bytes: %v", cipher, size, result)
			}
		}
		crossing(t, node, hub, start)
	}
}

// In place: the payload stands where its sealed form will.
func TestDirectSealsInPlace(t *testing.T) {
	node, hub, _, _ := lanes(t, CipherAES256GCM)
	payload := testPacket(100, 1)
	buf := make([]byte, 4+PacketHeader+len(payload), 200)
	copy(buf[4+PacketHeader:], payload)
	packet, err := node.Seal(buf[:4], PacketData, buf[4+PacketHeader:], start)
	if err != nil || &packet[0] != &buf[0] {
		t.Fatalf("not in place: %v", err)
	}
	if _, got, result := hub.Open(packet[4:], start); result != OpenNew || !bytes.Equal(got, payload) {
		t.Errorf("got %v", result)
	}
}

// Nothing of a packet can be changed, and what does not open moves nothing: the
// packet itself opens afterwards, once.
func TestDirectTampered(t *testing.T) {
	for _, cipher := range bothCiphers {
		node, hub, _, _ := lanes(t, cipher)
		packet := seal(t, node, testPacket(40, 1), start)
		for at := range packet {
			for _, bit := range []byte{0x01, 0x80} {
				bad := bytes.Clone(packet)
				bad[at] ^= bit
				if _, payload, result := hub.Open(bad, start); result == OpenNew || payload != nil {
					t.Errorf("%s: byte %d: opened", cipher, at)
				}
			}
		}
		for cut := range len(packet) {
			if _, _, result := hub.Open(bytes.Clone(packet[:cut]), start); result == OpenNew {
				t.Errorf("%s: %d bytes of it opened", cipher, cut)
			}
		}
		if _, _, result := hub.Open(append(bytes.Clone(packet), 0), start); result != OpenNotAuthentic {
			t.Errorf("%s: a byte more: %v", cipher, result)
		}
		// A forged counter far ahead has not moved the window.
		forged := bytes.Clone(packet)
		forged[8] = 0x7f
		if _, _, result := hub.Open(forged, start); result != OpenNotAuthentic {
			t.Errorf("%s: a forged counter: %v", cipher, result)
		}
		if _, _, result := hub.Open(bytes.Clone(packet), start); result != OpenNew {
			t.Errorf("%s: the packet as it was: %v", cipher, result)
		}
		if _, _, result := hub.Open(bytes.Clone(packet), start); result != OpenReplayed {
			t.Errorf("%s: once more: %v", cipher, result)
		}
	}
}

func TestDirectRefusals(t *testing.T) {
	node, hub, _, _ := lanes(t, CipherAES256GCM)
	good := seal(t, node, testPacket(40, 1), start)
	change := func(at int, value byte) []byte {
		bad := bytes.Clone(good)
		bad[at] = value
		return bad
	}
	for _, test := range []struct {
		name   string
		packet []byte
		want   OpenResult
	}{
		{"nothing", nil, OpenShort},
		{"nothing sealed", good[:PacketOverhead], OpenShort},
		{"kind 0", change(0, 0), OpenKind},
		{"kind 6", change(0, 6), OpenKind},
		{"QUIC", change(0, 0x41), OpenKind},
		{"reserved", change(1, 1), OpenKind},
		{"another member's", change(4, good[4]^1), OpenIndex},
		{"another epoch", change(3, 1), OpenEpoch},
		{"another kind", change(0, byte(PacketProbe)), OpenNotAuthentic},
		{"our own", seal(t, hub, testPacket(40, 1), start), OpenIndex},
	} {
		if _, _, result := hub.Open(test.packet, start); result != test.want {
			t.Errorf("%s: got %v, want %v", test.name, result, test.want)
		}
	}
	// The two directions have different keys: a packet sent back does not open,
	// whatever its index.
	back := seal(t, node, testPacket(40, 1), start)
	copy(back[4:8], seal(t, hub, []byte{1}, start)[4:8])
	if _, _, result := node.Open(back, start); result != OpenNotAuthentic {
		t.Errorf("sent back: %v", result)
	}
	h, result := ReadHeader(good)
	if want := (Header{PacketData, 0, directAnswer(1).ReceiverIndex, 0}); result != OpenNew || h != want {
		t.Errorf("header %+v, want %+v", h, want)
	}
}

// A packet under the old epoch opens for a while, one under the next as soon as
// the hub has answered, and no counter is shared between epochs.
func TestDirectEpochs(t *testing.T) {
	node, hub, nodeKeys, hubKeys := lanes(t, CipherAES256GCM)
	at := start.Add(EpochLife)
	old := seal(t, node, []byte("old"), at)
	older := seal(t, node, []byte("older"), at)
	before := hub.sealing.Load()

	offer, err := nodeKeys.Begin(at)
	if err != nil {
		t.Fatal(err)
	}
	answer, keys, err := hubKeys.Answer(offer, at)
	if err != nil {
		t.Fatal(err)
	}
	hub.Install(keys)
	done, keys, err := nodeKeys.Finish(answer, at)
	if err != nil {
		t.Fatal(err)
	}
	node.Install(keys)
	node.Switch(1, at)
	next := seal(t, node, []byte("next"), at)
	if h, _ := ReadHeader(next); h.Epoch != 1 || h.Counter != 0 {
		t.Errorf("the node seals under epoch %d, counter %d", h.Epoch, h.Counter)
	}
	// The node proves the epoch with this packet, but the hub waits for the
	// message, which it cannot miss.
	if _, payload, result := hub.Open(next, at); result != OpenNew || string(payload) != "next" {
		t.Errorf("the next epoch before the exchange ended: %v", result)
	}
	if hub.sealing.Load() != before {
		t.Error("the hub seals under an epoch that the node has not proved")
	}
	epoch, err := hubKeys.Complete(done)
	if err != nil {
		t.Fatal(err)
	}
	hub.Switch(epoch, at)
	crossing(t, node, hub, at)

	last := at.Add(OldEpochLife - 1)
	if _, payload, result := hub.Open(old, last); result != OpenNew || string(payload) != "old" {
		t.Errorf("the old epoch in its time: %v", result)
	}
	if _, _, result := hub.Open(older, at.Add(OldEpochLife)); result != OpenEpoch {
		t.Errorf("the old epoch after its time: %v", result)
	}
}

// Keys are taken into use once, in the order of their epochs.
func TestDirectTakesNoKeysTwice(t *testing.T) {
	node, hub, nodeKeys, hubKeys := lanes(t, CipherAES256GCM)
	at := start.Add(EpochLife)
	renew(t, node, hub, nodeKeys, hubKeys, at)
	seal(t, node, []byte("counter 0"), at)
	sealing := node.sealing.Load()
	for _, epoch := range []uint32{0, 1} {
		if node.Install(Keys{epoch: epoch, cipher: CipherAES256GCM}) {
			t.Errorf("epoch %d was installed again", epoch)
		}
	}
	for _, epoch := range []uint32{0, 1, 2} {
		node.Switch(epoch, at)
	}
	if node.sealing.Load() != sealing {
		t.Error("an epoch was taken into use again")
	}
}

func TestDirectStopsSealing(t *testing.T) {
	node, hub, _, _ := lanes(t, CipherAES256GCM)
	s := node.sealing.Load()
	set := func(sealed uint64) { s.counter.Store(sealed) }

	if node.Due(start.Add(EpochLife-1)) || !node.Due(start.Add(EpochLife)) {
		t.Error("the node's epoch is not due at its age")
	}
	if hub.Due(start.Add(EpochLife)) {
		t.Error("the hub asks for what the node sees by itself")
	}
	set(AskSealed - 1)
	if node.Due(start) {
		t.Error("due too early")
	}
	set(AskSealed)
	hub.sealing.Load().counter.Store(AskSealed)
	if !node.Due(start) || !hub.Due(start) {
		t.Error("not due after 2^27 packets")
	}
	set(MaxSealed - 1)
	seal(t, node, []byte{1}, start)
	for range 3 {
		if packet, err := node.Seal([]byte("kept"), PacketData, []byte{1}, start); !errors.Is(err, ErrSealedOut) || string(packet) != "kept" {
			t.Errorf("after 2^28 packets: %q, %v", packet, err)
		}
	}
	set(0)
	seal(t, node, []byte{1}, start.Add(MaxEpochLife-1))
	if _, err := node.Seal(nil, PacketData, []byte{1}, start.Add(MaxEpochLife)); !errors.Is(err, ErrSealedOut) {
		t.Errorf("after 300 s: %v", err)
	}
}

func TestDirectEndsAnEpochAfterFailedOpens(t *testing.T) {
	node, hub, _, _ := lanes(t, CipherChaCha20)
	(*hub.opening.Load())[0].failed.Store(MaxFailedOpens - 1)
	packet := seal(t, node, []byte{1}, start)
	if _, _, result := hub.Open(bytes.Clone(packet), start); result != OpenNew {
		t.Errorf("one below the limit: %v", result)
	}
	bad := seal(t, node, []byte{1}, start)
	bad[len(bad)-1] ^= 1
	if _, _, result := hub.Open(bad, start); result != OpenNotAuthentic {
		t.Errorf("the last failure: %v", result)
	}
	if _, _, result := hub.Open(seal(t, node, []byte{1}, start), start); result != OpenEpoch {
		t.Errorf("at the limit: %v", result)
	}
}

// Workers that seal at once use no counter twice.
func TestDirectSealsFromManyGoroutines(t *testing.T) {
	node, _, _, _ := lanes(t, CipherAES256GCM)
	const each, workers = 20_000, 4
	var counters [workers][each]uint64
	var ready, sealing sync.WaitGroup
	ready.Add(workers)
	for w := range workers {
		sealing.Go(func() {
			var buf [PacketOverhead + 1]byte
			ready.Done()
			ready.Wait() // or the first would be done before the last begins
			for i := range each {
				packet, err := node.Seal(buf[:0], PacketData, []byte{1}, start)
				if err != nil {
					t.Error(err)
				}
				h, _ := ReadHeader(packet)
				counters[w][i] = h.Counter
			}
		})
	}
	sealing.Wait()
	var used [each * workers]bool
	for w := range counters {
		for _, counter := range counters[w] {
			if used[counter] {
				t.Fatalf("counter %d twice", counter)
			}
			used[counter] = true
		}
	}
}

// Workers that open at once take each packet once, whoever is the first.
func TestDirectOpensFromManyGoroutines(t *testing.T) {
	node, hub, _, _ := lanes(t, CipherAES256GCM)
	const packets, workers = 1000, 4
	var sealed [packets][]byte
	for i := range sealed {
		sealed[i] = seal(t, node, []byte{1}, start)
	}
	var taken atomic.Int64
	var ready, opening sync.WaitGroup
	ready.Add(workers)
	for range workers {
		opening.Go(func() {
			ready.Done()
			ready.Wait()
			for _, packet := range sealed {
				if _, _, result := hub.Open(bytes.Clone(packet), start); result == OpenNew {
					taken.Add(1)
				} else if result != OpenReplayed {
					t.Error(result)
				}
			}
		})
	}
	opening.Wait()
	if got := taken.Load(); got != packets {
		t.Errorf("%d packets taken of %d", got, packets)
	}
}

func TestDirectAllocatesNothing(t *testing.T) {
	for _, cipher := range bothCiphers {
		node, hub, _, _ := lanes(t, cipher)
		payload := testPacket(DefaultInnerMTU, 1)
		buf := make([]byte, 0, 2048)
		allocations := testing.AllocsPerRun(100, func() {
			packet, err := node.Seal(buf, PacketData, payload, start)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, result := hub.Open(packet, start); result != OpenNew {
				t.Fatal(result)
			}
		})
		if allocations != 0 {
			t.Errorf("%s: %v allocations a packet", cipher, allocations)
		}
	}
}

func TestProbes(t *testing.T) {
	node, hub, _, _ := lanes(t, CipherAES256GCM)
	for _, size := range []uint16{1200, 1432} {
		probe := Probe{1<<63 + 5, size}
		packet, err := node.Seal(nil, PacketProbe, AppendProbe(nil, probe), start)
		if err != nil || len(packet) != int(size) {
			t.Fatalf("%d bytes, want %d: %v", len(packet), size, err)
		}
		kind, payload, _ := hub.Open(packet, start)
		got, ok := ReadProbe(payload)
		if kind != PacketProbe || !ok || got != probe {
			t.Errorf("got %v, %v", got, ok)
		}
		ack, ok := ReadProbeAck(AppendProbeAck(nil, got))
		if !ok || ack != probe {
			t.Errorf("answered %v, %v", ack, ok)
		}
	}
	good := AppendProbe(nil, Probe{1, 100})
	for name, bad := range map[string][]byte{
		"empty":          nil,
		"short":          good[:9],
		"of other size":  good[:len(good)-1],
		"padded by ones": append(bytes.Clone(good[:len(good)-1]), 1),
	} {
		if _, ok := ReadProbe(bad); ok {
			t.Errorf("%s: taken", name)
		}
	}
	if _, ok := ReadProbeAck(good); ok {
		t.Error("a padded answer was taken")
	}
	if _, ok := ReadChallenge(make([]byte, 15)); ok {
		t.Error("a short challenge was taken")
	}
	if c, ok := ReadChallenge(bytes.Repeat([]byte{7}, 16)); !ok || c != (Challenge{7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}) {
		t.Error("a challenge was not taken")
	}
}
