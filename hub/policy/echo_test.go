package policy

import (
	"bytes"
	"testing"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"pgregory.net/rapid"

	"serve.zone/relay/hub/network"
)

// TestEchoIsAnswered reads the answer with another implementation, and checks both
// checksums with another sum.
func TestEchoIsAnswered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := icmp.Echo{
			ID: rapid.IntRange(0, 65535).Draw(t, "id"), Seq: rapid.IntRange(0, 65535).Draw(t, "seq"),
			Data: rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "data"),
		}
		request, err := (&icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &body}).Marshal(nil)
		if err != nil {
			t.Fatal(err)
		}
		p := packet("192.168.0.2", "192.168.0.1")
		p = append(p[:headerLength], request...)
		p = sized(p, len(p))
		p[protocolAt], p[ttlAt] = protocolICMP, rapid.Byte().Draw(t, "ttl")
		p[1], p[5] = rapid.Byte().Draw(t, "tos"), rapid.Byte().Draw(t, "identification")
		before := bytes.Clone(p)

		AnswerEcho(p)
		h, err := ipv4.ParseHeader(p)
		if err != nil {
			t.Fatal(err)
		}
		if h.Src.String() != "192.168.0.1" || h.Dst.String() != "192.168.0.2" || h.TTL != 64 || h.TOS != int(before[1]) ||
			h.ID != int(before[5]) || h.TotalLen != len(p) || h.Protocol != 1 {
			t.Fatalf("header %v", h)
		}
		if checksumOf(p[:headerLength]) != 0 || checksumOf(p[headerLength:]) != 0 {
			t.Fatalf("sums %x and %x", checksumOf(p[:headerLength]), checksumOf(p[headerLength:]))
		}
		reply, err := icmp.ParseMessage(protocolICMP, p[headerLength:])
		if err != nil {
			t.Fatal(err)
		}
		echo, ok := reply.Body.(*icmp.Echo)
		if !ok || reply.Type != ipv4.ICMPTypeEchoReply || reply.Code != 0 || echo.ID != body.ID || echo.Seq != body.Seq ||
			!bytes.Equal(echo.Data, body.Data) {
			t.Fatalf("reply %+v to %+v", reply, body)
		}
	})
}

// A request of zeros is where the two zeros of one's complement differ.
func TestEchoOfNothingIsAnswered(t *testing.T) {
	p := sized(packet("192.168.0.2", "192.168.0.1", echo), headerLength+icmpHeaderLength)
	seal(p)
	AnswerEcho(p)
	if checksumOf(p[headerLength:]) != 0 {
		t.Errorf("the checksum of the answer is %x", p[icmpChecksumAt:icmpChecksumAt+2])
	}
}

// A request that was damaged makes no answer that looks good.
func TestDamagedEchoStaysDamaged(t *testing.T) {
	p := packet("192.168.0.2", "192.168.0.1", echo)
	p[len(p)-1]++
	AnswerEcho(p)
	if checksumOf(p[headerLength:]) == 0 {
		t.Error("the checksum of a damaged request is right in its answer")
	}
}

// Every sum of a header is folded into what is congruent to it modulo 65,535, and
// none but 0 into 0.
func TestFoldedSums(t *testing.T) {
	for sum := range uint32(10*0xffff + 1) {
		want := uint16(0)
		if sum > 0 {
			want = uint16((sum-1)%0xffff + 1)
		}
		if got := folded(sum); got != want {
			t.Fatalf("%x: %x, want %x", sum, got, want)
		}
	}
}

func TestEchoBudgetWithinASecond(t *testing.T) {
	for name, tc := range map[string]struct {
		later int64
		want  bool
	}{"at once": {0, false}, "one before": {999, false}, "a second later": {1000, true}} {
		var b EchoBudget
		for i := range EchoRequestsPerSecond {
			if !b.Take(in(0)) {
				t.Errorf("%s: request %d was refused", name, i)
			}
		}
		if got := b.Take(in(tc.later)); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestEchoBudgetAgreesWithCounting admits a request exactly when fewer than 10 were
// admitted in the second before it.
func TestEchoBudgetAgreesWithCounting(t *testing.T) {
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		var b EchoBudget
		var taken []int64
		now := rapid.Int64Range(0, 2000).Draw(t, "first")
		for range rapid.IntRange(0, 200).Draw(t, "requests") {
			now += rapid.SampledFrom([]int64{0, 0, 1, 20, 99, 100, 101, 999, 1000}).Draw(t, "later")
			recent := 0
			for _, at := range taken {
				if now-at < 1000 {
					recent++
				}
			}
			got := b.Take(network.Instant{Mono: now})
			if want := recent < 10; got != want {
				t.Fatalf("at %d, with %d in the last second: %v", now, recent, got)
			}
			if got {
				taken = append(taken, now)
			} else {
				refused++
			}
		}
	})
	if refused == 0 {
		t.Error("nothing was refused")
	}
}
