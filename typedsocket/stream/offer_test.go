package stream

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

func TestEightStreamsASocket(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		var streams []*Stream
		for i := range MaxStreams {
			m, peer := p.client, p.server
			if i%2 == 1 {
				m, peer = peer, m
			}
			s, err := m.Offer(Options{Direction: Send})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := peer.Open(s.Descriptor()); err != nil {
				t.Fatal(err)
			}
			streams = append(streams, s)
		}
		synctest.Wait()
		for _, m := range []*Mux{p.client, p.server} {
			if _, err := m.Offer(Options{Direction: Send}); !errors.Is(err, ErrTooManyStreams) {
				t.Errorf("a ninth: %v", err)
			}
			if _, err := m.Open([]byte(member("transport", ourTransport))); !errors.Is(err, ErrTooManyStreams) {
				t.Errorf("a ninth of the peer's: %v", err)
			}
			if live := m.Stats().Live; live != MaxStreams {
				t.Errorf("%d live", live)
			}
		}
		streams[0].Abort("room")
		synctest.Wait()
		for _, m := range []*Mux{p.client, p.server} {
			s, err := m.Offer(Options{Direction: Send})
			if err != nil {
				t.Errorf("with a place free: %v", err)
				continue
			}
			s.Discard()
		}
	})
}

func TestOfferedStreamsCount(t *testing.T) {
	sc := newScript(t, Config{MaxStreams: 2})
	a, b := sc.offer(Send), sc.offer(Receive)
	if _, err := sc.m.Offer(Options{Direction: Send}); !errors.Is(err, ErrTooManyStreams) {
		t.Errorf("a third: %v", err)
	}
	a.Discard()
	b.Abort("x")
	if live := sc.m.Stats().Live; live != 0 {
		t.Errorf("%d live", live)
	}
	if len(sc.heard()) != 0 {
		t.Error("frames about streams that were never opened")
	}
}

func TestWhatOfferRefuses(t *testing.T) {
	sc := newScript(t, Config{})
	for fault, o := range map[string]Options{
		"creatorDirection":     {},
		"integrity.digest":     {Direction: Send, Integrity: &Integrity{1, "sha256:00"}},
		"integrity.byteLength": {Direction: Send, Integrity: &Integrity{-1, someDigest}},
		"contentType":          {Direction: Send, ContentType: strings.Repeat("x", MaxDescriptor)},
	} {
		var wrong *DescriptorError
		if _, err := sc.m.Offer(o); !errors.As(err, &wrong) || wrong.Member != fault {
			t.Errorf("%s: %v", fault, err)
		}
	}
	var wrong *DescriptorError
	if _, err := sc.m.Offer(Options{Direction: Send, ContentType: "\xff"}); !errors.As(err, &wrong) || wrong.Member != "contentType" {
		t.Errorf("invalid UTF-8: %v", err)
	}
	if live := sc.m.Stats().Live; live != 0 {
		t.Errorf("%d live", live)
	}
}

func TestOfferedDescriptor(t *testing.T) {
	sc := newScript(t, Config{})
	integrity := Integrity{3, someDigest}
	s, err := sc.m.Offer(Options{Direction: Send, ContentType: `a/"b"`, Integrity: &integrity})
	if err != nil {
		t.Fatal(err)
	}
	integrity.ByteLength = 4 // the stream keeps its own
	want := `{"_isVirtualStream":true,"protocol":"virtual-stream-v1","streamId":"id1","creatorDirection":"send",` +
		`"contentType":"a/\"b\"","integrity":{"algorithm":"sha256","byteLength":3,"digest":"` + someDigest + `"},"transport":{"relayStream":1}}`
	if got := string(s.Descriptor()); got != want {
		t.Errorf("descriptor %s", got)
	}
	other := newScript(t, Config{})
	r, err := other.m.Open([]byte(want))
	if err != nil {
		t.Fatal(err)
	}
	if r.Direction() != Receive || r.ID() != "id1" || r.ContentType() != `a/"b"` || *r.Integrity() != (Integrity{3, someDigest}) || r.Descriptor() != nil {
		t.Errorf("opened as %s %s %s %v", r.Direction(), r.ID(), r.ContentType(), r.Integrity())
	}
	if got := other.heard(); !slices.Equal(got, []string{"open-ack 1 1048576 id1"}) {
		t.Errorf("said %q", got)
	}
}

func TestIDsAreRandom(t *testing.T) {
	m := newPair(nil).client
	a, _ := m.Offer(Options{Direction: Send})
	b, _ := m.Offer(Options{Direction: Send})
	if len(a.ID()) != 24 || a.ID() == b.ID() {
		t.Errorf("ids %s and %s", a.ID(), b.ID())
	}
	m.Close(nil)
}

func TestWhatOpenRefuses(t *testing.T) {
	sc := newScript(t, Config{})
	var foreign *UnknownTransportError
	for _, transport := range []string{"null", "{}", `{"relayStream":2}`, `{"any":["json",1,null]}`} {
		if _, err := sc.m.Open([]byte(member("transport", transport))); !errors.As(err, &foreign) {
			t.Errorf("transport %s: %v", transport, err)
		}
	}
	var wrong *DescriptorError
	if _, err := sc.m.Open([]byte(`{"_isVirtualStream":true,"streamId":"v3"}`)); !errors.As(err, &wrong) {
		t.Errorf("a descriptor of version 3: %v", err)
	}
	descriptor := []byte(member("transport", ourTransport))
	s, err := sc.m.Open(descriptor)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sc.m.Open(descriptor); !errors.Is(err, ErrAlreadyOpen) {
		t.Errorf("the same descriptor again: %v", err)
	}
	s.Abort("x")
	if _, err := sc.m.Open(descriptor); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
	sc.m.next = math.MaxUint32 - 2
	if _, err := sc.m.Open([]byte(strings.Replace(string(descriptor), `"s"`, `"last"`, 1))); err != nil {
		t.Errorf("the last number but one: %v", err)
	}
	if _, err := sc.m.Open([]byte(strings.Replace(string(descriptor), `"s"`, `"more"`, 1))); !errors.Is(err, ErrNumbersUsedUp) {
		t.Errorf("with all numbers used: %v", err)
	}
}

func TestNumbersRiseAndDifferByEnd(t *testing.T) {
	for _, c := range []struct {
		client bool
		want   []uint32
	}{{true, []uint32{1, 3, 5}}, {false, []uint32{2, 4, 6}}} {
		carrier := newScript(t, Config{})
		m := NewMux(Config{Carrier: carrier, Client: c.client, Peer: "peer"})
		var got []uint32
		for range 3 {
			s, err := m.Open([]byte(member("transport", ourTransport)))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, s.number)
			s.Abort("x")
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("client %v: numbers %v", c.client, got)
		}
	}
}
