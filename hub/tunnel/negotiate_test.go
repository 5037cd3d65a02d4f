package tunnel

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// replaced returns a copy of a body in which one field has another value, or
// is not there if value is nil.
func replaced(body []byte, number uint8, value ...byte) []byte {
	var out []byte
	for len(body) > 0 {
		field := body[:2+int(body[1])]
		if field[0] == number {
			if value != nil {
				out = appendField(out, number, value...)
			}
		} else {
			out = append(out, field...)
		}
		body = body[len(field):]
	}
	return out
}

func TestOffers(t *testing.T) {
	good, err := directOffer().encode()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := datagramOffer().encode()
	if err != nil {
		t.Fatal(err)
	}
	many := bytes.Repeat([]byte{1}, maxList+1)
	for i := range many {
		many[i] += byte(i)
	}
	index := []byte{fieldReceiverIndex, 4, 0, 0, 0, 1}
	tests := []struct {
		name  string
		body  []byte
		field uint8
		rule  Rule
	}{
		{"direct", good, 0, 0},
		{"datagram", plain, 0, 0},
		{"versions, lanes and ciphers to come", replaced(replaced(replaced(good, fieldVersions, 1, 9), fieldLanes, 1, 2, 77), fieldCiphers, 200, 1), 0, 0},
		{"as many as there may be", replaced(good, fieldVersions, many[:maxList]...), 0, 0},
		{"nothing", nil, fieldVersions, RuleFieldMissing},
		{"no versions", replaced(good, fieldVersions), fieldVersions, RuleFieldMissing},
		{"empty versions", replaced(good, fieldVersions, []byte{}...), fieldVersions, RuleFieldLength},
		{"too many versions", replaced(good, fieldVersions, many...), fieldVersions, RuleFieldLength},
		{"version zero", replaced(good, fieldVersions, 0, 1), fieldVersions, RuleFieldValue},
		{"falling versions", replaced(good, fieldVersions, 2, 1), fieldVersions, RuleFieldValue},
		{"a version twice", replaced(good, fieldVersions, 1, 1), fieldVersions, RuleFieldValue},
		{"no mtu", replaced(good, fieldInnerMTU), fieldInnerMTU, RuleFieldMissing},
		{"mtu 1279", replaced(good, fieldInnerMTU, 0x04, 0xff), fieldInnerMTU, RuleFieldValue},
		{"mtu 1280", replaced(good, fieldInnerMTU, 0x05, 0x00), 0, 0},
		{"mtu 1500", replaced(good, fieldInnerMTU, 0x05, 0xdc), 0, 0},
		{"mtu 1501", replaced(good, fieldInnerMTU, 0x05, 0xdd), fieldInnerMTU, RuleFieldValue},
		{"no lanes", replaced(good, fieldLanes), fieldLanes, RuleFieldMissing},
		{"the direct lane alone", replaced(good, fieldLanes, 2), fieldLanes, RuleFieldValue},
		{"lanes from the back", replaced(good, fieldLanes, 2, 1), fieldLanes, RuleFieldValue},
		{"direct without ciphers", replaced(good, fieldCiphers), fieldCiphers, RuleFieldMissing},
		{"a cipher twice", replaced(good, fieldCiphers, 1, 2, 1), fieldCiphers, RuleFieldValue},
		{"cipher zero", replaced(good, fieldCiphers, 0), fieldCiphers, RuleFieldValue},
		{"direct without an index", replaced(good, fieldReceiverIndex), fieldReceiverIndex, RuleFieldMissing},
		{"index zero", replaced(good, fieldReceiverIndex, 0, 0, 0, 0), fieldReceiverIndex, RuleFieldValue},
		{"ciphers for nothing", frames(plain, []byte{fieldCiphers, 1, 1}), fieldCiphers, RuleFieldUnknown},
		{"an index for nothing", frames(plain, index), fieldReceiverIndex, RuleFieldUnknown},
		{"an answer's field", frames(good, []byte{fieldVersion, 1, 1}), fieldVersion, RuleFieldUnknown},
		{"something to ignore", frames(good, []byte{0x90, 2, 1, 2}), 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o, err := readOffer(test.body)
			if test.rule == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, &WireError{Node, FrameInitiation, test.field, test.rule})
			if !equal(t, o, Offer{}) {
				t.Errorf("half an offer: %+v", o)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	good, err := directAnswer(CipherAES256GCM).encode(directOffer())
	if err != nil {
		t.Fatal(err)
	}
	plain, err := datagramAnswer().encode(datagramOffer())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		body  []byte
		field uint8
		rule  Rule
	}{
		{"direct", good, 0, 0},
		{"datagram to a direct offer", plain, 0, 0},
		{"something to ignore", frames(good, []byte{0x80, 1, 1}), 0, 0},
		{"something unknown", frames(good, []byte{fieldEpoch, 4, 0, 0, 0, 0}), fieldEpoch, RuleFieldUnknown},
		{"a version not offered", replaced(good, fieldVersion, 2), fieldVersion, RuleNotOffered},
		{"a lane not offered", replaced(plain, fieldLane, 3), fieldLane, RuleNotOffered},
		{"a cipher not offered", replaced(good, fieldCipher, 3), fieldCipher, RuleNotOffered},
		{"an mtu above the offer", replaced(good, fieldInnerMTU, 0x05, 0x79), fieldInnerMTU, RuleNotOffered},
		{"an mtu below the offer", replaced(good, fieldInnerMTU, 0x05, 0x00), 0, 0},
		{"mtu 1279", replaced(good, fieldInnerMTU, 0x04, 0xff), fieldInnerMTU, RuleFieldValue},
		{"direct without an index", replaced(good, fieldReceiverIndex), fieldReceiverIndex, RuleFieldMissing},
		{"index zero", replaced(good, fieldReceiverIndex, 0, 0, 0, 0), fieldReceiverIndex, RuleFieldValue},
		{"direct without a cipher", replaced(good, fieldCipher), fieldCipher, RuleFieldMissing},
		{"a cipher for nothing", replaced(good, fieldLane, 1), fieldReceiverIndex, RuleFieldUnknown},
		{"no address", replaced(good, fieldControlAddress), fieldControlAddress, RuleFieldMissing},
		{"an address without its prefix", replaced(good, fieldControlAddress, 10, 200, 0, 7), fieldControlAddress, RuleFieldLength},
		{"a prefix of 7 bits", replaced(good, fieldControlAddress, 10, 200, 0, 7, 7), fieldControlAddress, RuleFieldValue},
		{"a prefix of 8 bits", replaced(good, fieldControlAddress, 10, 200, 0, 7, 8), 0, 0},
		{"a prefix of 30 bits", replaced(good, fieldControlAddress, 10, 200, 0, 2, 30), 0, 0},
		{"a prefix of 31 bits", replaced(good, fieldControlAddress, 10, 200, 0, 2, 31), fieldControlAddress, RuleFieldValue},
		{"a prefix of 255 bits", replaced(good, fieldControlAddress, 10, 200, 0, 7, 255), fieldControlAddress, RuleFieldValue},
		{"the hub's own address", replaced(good, fieldControlAddress, 10, 200, 0, 1, 24), fieldControlAddress, RuleFieldValue},
		{"a hub elsewhere", replaced(good, fieldHubAddress, 10, 201, 0, 1), fieldHubAddress, RuleFieldValue},
		{"keepalive 9 s", replaced(good, fieldKeepalive, 9), fieldKeepalive, RuleFieldValue},
		{"keepalive 60 s", replaced(good, fieldKeepalive, 60), 0, 0},
		{"keepalive 61 s", replaced(good, fieldKeepalive, 61), fieldKeepalive, RuleFieldValue},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, err := readAnswer(test.body, directOffer())
			if test.rule == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, &WireError{Hub, FrameResponse, test.field, test.rule})
			if a != (Answer{}) {
				t.Errorf("half an answer: %+v", a)
			}
		})
	}
	_, err = readAnswer(good, datagramOffer())
	wantError(t, err, &WireError{Hub, FrameResponse, fieldLane, RuleNotOffered})
}

// A hub never writes what no node would take.
func TestAnswersOfOurOwn(t *testing.T) {
	for name, spoil := range map[string]func(*Answer){
		"no addresses":     func(a *Answer) { a.ControlAddress, a.HubAddress = Answer{}.ControlAddress, Answer{}.HubAddress },
		"half seconds":     func(a *Answer) { a.Keepalive += time.Second / 2 },
		"266 seconds":      func(a *Answer) { a.Keepalive = 266 * time.Second },
		"negative seconds": func(a *Answer) { a.Keepalive = -246 * time.Second },
		"no version":       func(a *Answer) { a.Version = 0 },
		"no index":         func(a *Answer) { a.ReceiverIndex = 0 },
	} {
		a := directAnswer(CipherAES256GCM)
		spoil(&a)
		if _, err := a.encode(directOffer()); !errors.Is(err, ErrAnswer) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, spoil := range map[string]func(*Offer){
		"300 versions": func(o *Offer) { o.Versions = make([]uint8, 300) },
		"300 lanes":    func(o *Offer) { o.Lanes = make([]Lane, 300) },
		"300 ciphers":  func(o *Offer) { o.Ciphers = make([]Cipher, 300) },
		"mtu 0":        func(o *Offer) { o.InnerMTU = 0 },
	} {
		o := directOffer()
		spoil(&o)
		if _, err := o.encode(); !errors.Is(err, ErrOffer) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestNegotiate(t *testing.T) {
	aes, chacha := CipherAES256GCM, CipherChaCha20
	hub := func(ciphers ...Cipher) Terms {
		terms := DatagramTerms()
		terms.Lanes = append(terms.Lanes, LaneDirect)
		terms.Ciphers = ciphers
		return terms
	}
	node := func(ciphers ...Cipher) Offer {
		o := directOffer()
		o.Ciphers = ciphers
		return o
	}
	tests := []struct {
		name   string
		terms  Terms
		offer  Offer
		lane   Lane
		cipher Cipher
		err    Mismatch
	}{
		{"both datagram", DatagramTerms(), datagramOffer(), LaneDatagram, 0, ""},
		{"the hub has no direct lane", DatagramTerms(), directOffer(), LaneDatagram, 0, ""},
		{"the node has no direct lane", hub(aes, chacha), datagramOffer(), LaneDatagram, 0, ""},
		{"both prefer AES", hub(aes, chacha), node(aes, chacha), LaneDirect, aes, ""},
		{"the node has no AES instructions", hub(aes, chacha), node(chacha, aes), LaneDirect, chacha, ""},
		{"the hub has no AES instructions", hub(chacha, aes), node(aes, chacha), LaneDirect, chacha, ""},
		{"neither has", hub(chacha, aes), node(chacha, aes), LaneDirect, chacha, ""},
		{"only AES in common", hub(aes), node(chacha, aes), LaneDirect, aes, ""},
		{"only a cipher to come in common", hub(99), node(aes, 99), LaneDirect, 99, ""},
		{"no cipher in common", hub(aes), node(chacha), LaneDatagram, 0, ""},
		{"no version in common", DatagramTerms(), func() Offer { o := datagramOffer(); o.Versions = []uint8{2, 3}; return o }(), 0, 0, MismatchVersion},
		{"an mtu below the network's", DatagramTerms(), func() Offer { o := datagramOffer(); o.InnerMTU--; return o }(), 0, 0, MismatchInnerMTU},
		{"an mtu above the network's", DatagramTerms(), func() Offer { o := datagramOffer(); o.InnerMTU++; return o }(), LaneDatagram, 0, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, err := test.terms.Negotiate(test.offer)
			if test.err != "" {
				var incompatible *IncompatibleError
				if !errors.As(err, &incompatible) || incompatible.What != test.err || CloseCodeFor(err) != CloseIncompatible {
					t.Errorf("got %v, want %s", err, test.err)
				}
				return
			}
			if err != nil || a.Lane != test.lane || a.Cipher != test.cipher {
				t.Errorf("got %v with %v, %v; want %v with %v", a.Lane, a.Cipher, err, test.lane, test.cipher)
			}
			if a.Version != Version || a.InnerMTU != DefaultInnerMTU || a.Keepalive != Keepalive {
				t.Errorf("got %+v", a)
			}
		})
	}
	many := DatagramTerms()
	many.Versions = []uint8{3, 1, 2}
	o := datagramOffer()
	o.Versions = []uint8{1, 2, 4}
	if a, err := many.Negotiate(o); err != nil || a.Version != 2 {
		t.Errorf("version %d, %v; want the highest in common, 2", a.Version, err)
	}
}

// Whatever an offer says, what is negotiated is an answer that its node takes.
func TestNegotiatedAnswersAreTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.SliceOfNDistinct(rapid.Uint8Range(1, 4), 1, 4, rapid.ID)
		o := Offer{
			Versions: slices.Sorted(slices.Values(lists.Draw(t, "versions"))),
			InnerMTU: rapid.Uint16Range(MinInnerMTU, MaxInnerMTU).Draw(t, "mtu"),
			Lanes:    []Lane{LaneDatagram},
		}
		if rapid.Bool().Draw(t, "direct") {
			o.Lanes = append(o.Lanes, LaneDirect)
			o.Ciphers = listOf[Cipher](lists.Draw(t, "ciphers"))
			o.ReceiverIndex = 1
		}
		terms := Terms{
			Versions:  lists.Draw(t, "hub's versions"),
			InnerMTU:  rapid.Uint16Range(MinInnerMTU, MaxInnerMTU).Draw(t, "hub's mtu"),
			Lanes:     []Lane{LaneDatagram, LaneDirect},
			Ciphers:   listOf[Cipher](lists.Draw(t, "hub's ciphers")),
			Keepalive: Keepalive,
		}
		if err := terms.Validate(); err != nil {
			t.Fatal(err)
		}
		a, err := terms.Negotiate(o)
		if err != nil {
			if slices.ContainsFunc(o.Versions, func(v uint8) bool { return slices.Contains(terms.Versions, v) }) && o.InnerMTU >= terms.InnerMTU {
				t.Fatalf("refused %+v: %v", o, err)
			}
			return
		}
		a.ControlAddress, a.HubAddress = testControl, testHubAddress
		if a.Lane == LaneDirect {
			a.ReceiverIndex = 1
		}
		body, err := a.encode(o)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readAnswer(body, o); err != nil || got != a {
			t.Fatalf("got %+v, %v; want %+v", got, err, a)
		}
		offered, err := o.encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readOffer(offered); err != nil || !slices.Equal(got.Ciphers, o.Ciphers) || !slices.Equal(got.Versions, o.Versions) {
			t.Fatalf("got %+v, %v; want %+v", got, err, o)
		}
	})
}

func TestTerms(t *testing.T) {
	good := DatagramTerms()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Terms){
		"no versions":            func(x *Terms) { x.Versions = nil },
		"mtu 1279":               func(x *Terms) { x.InnerMTU = 1279 },
		"mtu 1501":               func(x *Terms) { x.InnerMTU = 1501 },
		"no lanes":               func(x *Terms) { x.Lanes = nil },
		"direct without ciphers": func(x *Terms) { x.Lanes = []Lane{1, 2} },
		"keepalive 9 s":          func(x *Terms) { x.Keepalive = 9 * time.Second },
		"keepalive 61 s":         func(x *Terms) { x.Keepalive = 61 * time.Second },
		"keepalive 10.5 s":       func(x *Terms) { x.Keepalive += time.Second / 2 },
	} {
		terms := good
		spoil(&terms)
		if err := terms.Validate(); !errors.Is(err, ErrTerms) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestPreferredCiphers(t *testing.T) {
	if got := preferCiphers(true); !slices.Equal(got, []Cipher{CipherAES256GCM, CipherChaCha20}) {
		t.Errorf("with AES: %v", got)
	}
	if got := preferCiphers(false); !slices.Equal(got, []Cipher{CipherChaCha20, CipherAES256GCM}) {
		t.Errorf("without AES: %v", got)
	}
}
