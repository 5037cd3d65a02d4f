package tunnel

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// lanes runs a handshake with the direct lane and hands over both ends.
func lanes(t *testing.T, cipher Cipher) (node, hub *Direct, nodeKeys, hubKeys *Epochs) {
	t.Helper()
	n, h := agreedDirect(t, cipher)
	node, nodeKeys = n.Direct(start)
	hub, hubKeys = h.Direct(start)
	return node, hub, nodeKeys, hubKeys
}

// renew runs a whole exchange of keys and takes the epoch into use.
func renew(t *testing.T, node, hub *Direct, nodeKeys, hubKeys *Epochs, now time.Time) {
	t.Helper()
	offer, err := nodeKeys.Begin(now)
	if err != nil {
		t.Fatal(err)
	}
	answer, keys, err := hubKeys.Answer(offer, now)
	if err != nil {
		t.Fatal(err)
	}
	if !hub.Install(keys) {
		t.Fatal("the hub refused new keys")
	}
	done, keys, err := nodeKeys.Finish(answer, now)
	if err != nil {
		t.Fatal(err)
	}
	if !node.Install(keys) {
		t.Fatal("the node refused new keys")
	}
	node.Switch(keys.Epoch(), now)
	epoch, err := hubKeys.Complete(done)
	if err != nil {
		t.Fatal(err)
	}
	hub.Switch(epoch, now)
}

func TestRekeyKeepsTheEndsTogether(t *testing.T) {
	node, hub, nodeKeys, hubKeys := lanes(t, CipherAES256GCM)
	seen := map[master]bool{nodeKeys.root.get().master: true}
	now := start
	for epoch := uint32(1); epoch <= 4; epoch++ {
		now = now.Add(EpochLife)
		renew(t, node, hub, nodeKeys, hubKeys, now)
		if nodeKeys.epoch != epoch || hubKeys.epoch != epoch || nodeKeys.root.get().master != hubKeys.root.get().master {
			t.Fatalf("epoch %d: the node is at %d, the hub at %d", epoch, nodeKeys.epoch, hubKeys.epoch)
		}
		if seen[nodeKeys.root.get().master] {
			t.Fatalf("epoch %d has the secret of an earlier one", epoch)
		}
		seen[nodeKeys.root.get().master] = true
		crossing(t, node, hub, now)
	}
	// Only what an exchange under way needs is kept.
	if nodeKeys.pending || hubKeys.pending || !nodeKeys.offered.IsZero() || hubKeys.next.get() != nil {
		t.Error("an end keeps what belongs to a finished exchange")
	}
}

// crossing sends one packet each way.
func crossing(t *testing.T, node, hub *Direct, now time.Time) {
	t.Helper()
	for _, way := range []struct{ from, to *Direct }{{node, hub}, {hub, node}} {
		packet, err := way.from.Seal(nil, PacketData, []byte("hello"), now)
		if err != nil {
			t.Fatal(err)
		}
		if kind, payload, result := way.to.Open(packet, now); result != OpenNew || kind != PacketData || string(payload) != "hello" {
			t.Fatalf("from the %s: %v %q, %v", way.from.side, kind, payload, result)
		}
	}
}

func TestRekeySteps(t *testing.T) {
	at := start.Add(EpochLife)
	begin := func(t *testing.T, e *Epochs) RekeyOffer {
		offer, err := e.Begin(at)
		if err != nil {
			t.Fatal(err)
		}
		return offer
	}
	fromNode := func(frame FrameKind, rule Rule) *WireError { return &WireError{Node, frame, 0, rule} }
	fromHub := func(frame FrameKind, rule Rule) *WireError { return &WireError{Hub, frame, 0, rule} }
	tests := []struct {
		name string
		run  func(t *testing.T, node, hub *Epochs) error
		want error
	}{
		{"begin too early", func(t *testing.T, node, hub *Epochs) error {
			_, err := node.Begin(start.Add(RekeySpacing - 1))
			return err
		}, ErrRekeyEarly},
		{"begin when it may", func(t *testing.T, node, hub *Epochs) error {
			_, err := node.Begin(start.Add(RekeySpacing))
			return err
		}, nil},
		{"begin twice", func(t *testing.T, node, hub *Epochs) error {
			begin(t, node)
			_, err := node.Begin(at)
			return err
		}, ErrRekeyPending},
		{"offer twice", func(t *testing.T, node, hub *Epochs) error {
			offer := begin(t, node)
			if _, _, err := hub.Answer(offer, at); err != nil {
				t.Fatal(err)
			}
			_, _, err := hub.Answer(offer, at.Add(time.Hour))
			return err
		}, fromNode(FrameRekeyOffer, RuleRekeyOrder)},
		{"offer of epoch 0", func(t *testing.T, node, hub *Epochs) error {
			offer := begin(t, node)
			offer.Epoch = 0
			_, _, err := hub.Answer(offer, at)
			return err
		}, fromNode(FrameRekeyOffer, RuleRekeyEpoch)},
		{"offer of epoch 2", func(t *testing.T, node, hub *Epochs) error {
			offer := begin(t, node)
			offer.Epoch = 2
			_, _, err := hub.Answer(offer, at)
			return err
		}, fromNode(FrameRekeyOffer, RuleRekeyEpoch)},
		{"offer of low order", func(t *testing.T, node, hub *Epochs) error {
			offer := begin(t, node)
			offer.Public = [KeySize]byte{}
			_, _, err := hub.Answer(offer, at)
			return err
		}, fromNode(FrameRekeyOffer, RuleRekeyKey)},
		{"offer right behind the last", func(t *testing.T, node, hub *Epochs) error {
			answer, _, err := hub.Answer(begin(t, node), at)
			if err != nil {
				t.Fatal(err)
			}
			done, _, err := node.Finish(answer, at)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := hub.Complete(done); err != nil {
				t.Fatal(err)
			}
			if _, err := node.Begin(at.Add(RekeySpacing - 1)); !errors.Is(err, ErrRekeyEarly) {
				t.Errorf("the node begins too early: %v", err)
			}
			offer, err := node.Begin(at.Add(RekeySpacing))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := hub.Answer(offer, at.Add(minRekeySpacing-1)); err == nil {
				t.Error("answered too early")
			} else {
				wantError(t, err, fromNode(FrameRekeyOffer, RuleRekeyEarly))
			}
			_, _, err = hub.Answer(offer, at.Add(minRekeySpacing))
			return err
		}, nil},
		{"answer to nothing", func(t *testing.T, node, hub *Epochs) error {
			_, _, err := node.Finish(RekeyAnswer{Epoch: 1}, at)
			return err
		}, fromHub(FrameRekeyAnswer, RuleRekeyOrder)},
		{"answer of another epoch", func(t *testing.T, node, hub *Epochs) error {
			answer, _, err := hub.Answer(begin(t, node), at)
			if err != nil {
				t.Fatal(err)
			}
			answer.Epoch = 2
			_, _, err = node.Finish(answer, at)
			return err
		}, fromHub(FrameRekeyAnswer, RuleRekeyEpoch)},
		{"answer of low order", func(t *testing.T, node, hub *Epochs) error {
			answer, _, err := hub.Answer(begin(t, node), at)
			if err != nil {
				t.Fatal(err)
			}
			answer.Public = [KeySize]byte{1}
			_, _, err = node.Finish(answer, at)
			return err
		}, fromHub(FrameRekeyAnswer, RuleRekeyKey)},
		{"answer by someone else", func(t *testing.T, node, hub *Epochs) error {
			answer, _, err := hub.Answer(begin(t, node), at)
			if err != nil {
				t.Fatal(err)
			}
			answer.Public = nodeKey.public
			_, _, err = node.Finish(answer, at)
			return err
		}, fromHub(FrameRekeyAnswer, RuleRekeyProof)},
		{"done by someone else", func(t *testing.T, node, hub *Epochs) error {
			answer, _, err := hub.Answer(begin(t, node), at)
			if err != nil {
				t.Fatal(err)
			}
			_, err = hub.Complete(RekeyDone{1, answer.Proof})
			return err
		}, fromNode(FrameRekeyDone, RuleRekeyProof)},
		{"done with nothing", func(t *testing.T, node, hub *Epochs) error {
			_, err := hub.Complete(RekeyDone{Epoch: 1})
			return err
		}, fromNode(FrameRekeyDone, RuleRekeyOrder)},
		{"done with another epoch", func(t *testing.T, node, hub *Epochs) error {
			if _, _, err := hub.Answer(begin(t, node), at); err != nil {
				t.Fatal(err)
			}
			_, err := hub.Complete(RekeyDone{Epoch: 0})
			return err
		}, fromNode(FrameRekeyDone, RuleRekeyEpoch)},
		{"the hub's offer", func(t *testing.T, node, hub *Epochs) error {
			_, _, err := node.Answer(RekeyOffer{Epoch: 1}, at)
			return err
		}, fromHub(FrameRekeyOffer, RuleRekeyOrder)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, node, hub := lanes(t, CipherAES256GCM)
			wantError(t, test.run(t, node, hub), test.want)
		})
	}
}

// Whoever sees all of TLS but knows nothing of Noise cannot take part: the new
// secret needs the old one.
func TestRekeyNeedsTheSecretBefore(t *testing.T) {
	_, _, node, hub := lanes(t, CipherAES256GCM)
	hub.root.get().master[0] ^= 1
	offer, err := node.Begin(start.Add(EpochLife))
	if err != nil {
		t.Fatal(err)
	}
	answer, _, err := hub.Answer(offer, start.Add(EpochLife))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = node.Finish(answer, start.Add(EpochLife))
	wantError(t, err, &WireError{Hub, FrameRekeyAnswer, 0, RuleRekeyProof})
}

// A session hands its lane over once: a second one would count from zero again
// under the same keys.
func TestLaneIsHandedOverOnce(t *testing.T) {
	node, _ := agreedDirect(t, CipherAES256GCM)
	if d, e := node.Direct(start); d == nil || e == nil {
		t.Fatal("no lane")
	}
	if d, e := node.Direct(start); d != nil || e != nil {
		t.Error("a second lane")
	}
	node, _ = agreed(t, testInitiator(), testResponder(), datagramAnswer())
	if d, e := node.Direct(start); d != nil || e != nil {
		t.Error("a lane that was not agreed")
	}
}

// Whatever messages arrive in whatever order, the two ends never believe that
// they agree on different secrets, and one that failed changes nothing.
func TestRekeyUnderAnyOrder(t *testing.T) {
	n, h := agreedDirect(t, CipherChaCha20)
	template := [2]Session{*n, *h}
	rapid.Check(t, func(t *rapid.T) {
		sessions := template
		_, node := sessions[0].Direct(start)
		_, hub := sessions[1].Direct(start)
		now := start
		var offers []RekeyOffer
		var answers []RekeyAnswer
		var dones []RekeyDone
		proved := map[uint32]master{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "wait")) * time.Second)
			before := [2]Epochs{*node, *hub}
			var err error
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				var offer RekeyOffer
				if offer, err = node.Begin(now); err == nil {
					offers = append(offers, offer)
				}
			case 1:
				if len(offers) > 0 {
					var answer RekeyAnswer
					if answer, _, err = hub.Answer(rapid.SampledFrom(offers).Draw(t, "offer"), now); err == nil {
						answers = append(answers, answer)
					}
				}
			case 2:
				if len(answers) > 0 {
					var done RekeyDone
					if done, _, err = node.Finish(rapid.SampledFrom(answers).Draw(t, "answer"), now); err == nil {
						dones = append(dones, done)
						proved[node.epoch] = node.root.get().master
					}
				}
			case 3:
				if len(dones) > 0 {
					if _, err = hub.Complete(rapid.SampledFrom(dones).Draw(t, "done")); err == nil && proved[hub.epoch] != hub.root.get().master {
						t.Fatalf("the ends have different secrets of epoch %d", hub.epoch)
					}
				}
			}
			if err != nil && (*node != before[0] || *hub != before[1]) {
				t.Fatalf("%v changed something", err)
			}
			var wire *WireError
			if err != nil && !errors.As(err, &wire) && !errors.Is(err, ErrRekeyEarly) && !errors.Is(err, ErrRekeyPending) {
				t.Fatal(err)
			}
		}
	})
}
