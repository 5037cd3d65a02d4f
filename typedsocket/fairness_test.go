package typedsocket

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/typedsocket/buffer"
	"serve.zone/relay/typedsocket/envelope"
)

// B031: of 256 flows over a socket whose peer reads 1 MiB/s, one of them flooding with
// 1 MiB frames, the bytes that have arrived of each after 10 s are within one frame of
// each other.
func TestB031_FlowsShareASlowSocketByBytes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const flows, small, large = 256, 8 << 10, 1 << 20
		arrived := make(map[string]int)
		var at10 map[string]int
		start := time.Now()
		count := HandlerFunc(func(r *Request) {
			arrived[string(r.Facts().NodeID)] += len(r.Body())
			if at10 == nil && time.Since(start) >= 10*time.Second {
				at10 = make(map[string]int)
				for flow, n := range arrived {
					at10[flow] = n
				}
			}
			r.Drop()
		})
		c, s := newRig(t, Config{Peer: "client", Handler: count}).connect(Config{Peer: "server"},
			func(c, s net.Conn) (net.Conn, net.Conn) { return c, &slowConn{s, 1 << 20} })
		fill := func(flow string, size, n int) {
			for range n {
				if err := c.pushLocked(flow, itemOf(report(flow, size))); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.mu.Lock() // all begin at once
		fill("flood", large, 7)
		names := make([]string, 0, flows)
		for i := range flows - 1 {
			names = append(names, string(rune('a'+i/26))+string(rune('a'+i%26)))
			fill(names[i], small, 12)
		}
		c.mu.Unlock()
		c.wakeWriter()
		time.Sleep(11 * time.Second)
		synctest.Wait()
		low, high := 1<<30, 0
		for _, flow := range names {
			low, high = min(low, at10[flow]), max(high, at10[flow])
		}
		t.Logf("after 10 s: flows %d to %d bytes, flood %d bytes", low, high, at10["flood"])
		if low == 0 || high-low > small {
			t.Errorf("after 10 s the flows had between %d and %d bytes, more than a frame of %d apart", low, high, small)
		}
		if at10["flood"] > high+large {
			t.Errorf("the flood had %d bytes, the others up to %d", at10["flood"], high)
		}
		c.Cut(CloseNormal, "")
		<-s.Done()
	})
}

// report is a request of a flow whose body has size bytes.
func report(flow string, size int) *buffer.Buffer {
	body := `{"nodeId":"` + flow + `","x":"`
	pad := make([]byte, size-len(body)-2)
	for i := range pad {
		pad[i] = 'x'
	}
	b := buffer.Get(size + 512)
	b.Append(envelope.AppendRequestHead(nil, "report"))
	b.Append([]byte(body))
	b.Append(pad)
	b.Append([]byte(`"}`))
	b.Append(envelope.AppendRequestTail(nil, "uni_000000000000000000000001", "uni_000000000000000000000002"))
	return b
}

// TestFramesOfOneFlowKeepTheirOrder sends numbered frames of two sizes in
// several flows and own frames between them.
func TestFramesOfOneFlowKeepTheirOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		last := make(map[string]int)
		n := 0
		order := HandlerFunc(func(r *Request) {
			flow := string(r.Facts().NodeID)
			i := len(r.Body())
			if i <= last[flow] {
				t.Errorf("flow %s: frame %d after %d", flow, i, last[flow])
			}
			last[flow] = i
			n++
			r.Drop()
		})
		c, s := newRig(t, Config{Peer: "client", Handler: order}).connect(Config{Peer: "server"}, nil)
		for i := 1; i < 200; i++ {
			for _, flow := range []string{"", "a", "b", "c"} {
				if err := c.push(flow, itemOf(report("n"+flow, 100+i))); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n != 199*4 {
			t.Fatalf("%d frames arrived", n)
		}
		c.Close(CloseNormal, "")
		<-s.Done()
	})
}
