package simulate

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket/carriertest"
)

// A port is forwarded byte for byte, to the destination that takes the connection,
// and is no hostname's traffic.
func TestPortsAreForwarded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSite(t, 0)
		s.raw(backendB, func(c net.Conn) {
			io.WriteString(c, "220 ready\r\n")
			io.Copy(c, c)
		})
		mail, other := carriertest.NewNetwork(), carriertest.NewNetwork()
		for port, l := range map[int]net.Listener{25: mail, 26: other} {
			if err := s.ServePort(port, l); err != nil {
				t.Fatal(err)
			}
		}
		ports := []IngressPortRoute{{"tcp", 25, destinations{destination(backendA), destination(backendB)}}, {"udp", 26, destinations{backend}}}
		table, err := contract.NewRouteTable(1, 1, nil, raws(ports))
		if err != nil {
			t.Fatal(err)
		}
		s.says[pullTable] = tableAnswer(table)
		s.relay.hint(1)

		conn, err := connect(t.Context(), mail)
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(conn)
		io.WriteString(conn, "EHLO\r\n")
		for _, want := range []string{"220 ready\r\n", "EHLO\r\n"} {
			if got, err := r.ReadString('\n'); got != want {
				t.Errorf("%q, %v", got, err)
			}
		}
		if len(s.Counters()) != 0 {
			t.Errorf("counted %+v", s.Counters())
		}
		began := time.Now()
		if _, err := r.ReadByte(); err == nil || time.Since(began) != clientIdle {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		s.raw(backendB, func(net.Conn) {})
		if conn, err = connect(t.Context(), mail); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); len(got) > 0 {
			t.Errorf("from a destination that ends at once: %q, %v", got, err)
		}
		synctest.Wait()
		if got := strings.Join(s.dialled, " "); got != backendA+" "+backendB+" "+backendB {
			t.Errorf("dialled %s", got)
		}
		refused, err := connect(t.Context(), other)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(refused); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := s.ClientsRefused(); got != (ClientRefusals{NoRoute: 1}) {
			t.Errorf("%+v", got)
		}
	})
}

// Who ends one direction still has the other, where connections can do that.
func TestPortsHalfClose(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	all := func(c net.Conn, what string) {
		if got, err := io.ReadAll(c); string(got) != what {
			t.Errorf("got %q, %v, want %q", got, err, what)
		}
	}
	say := func(c net.Conn, what string) {
		io.WriteString(c, what)
		c.(*net.TCPConn).CloseWrite()
	}
	for name, backendFirst := range map[string]bool{"the client": false, "the backend": true} {
		t.Run(name, func(t *testing.T) {
			first := func(c net.Conn, mine, theirs string) { say(c, mine); all(c, theirs) }
			second := func(c net.Conn, mine, theirs string) { all(c, theirs); say(c, mine) }
			near, far := first, second
			if backendFirst {
				near, far = second, first
			}
			backend, edge := listen(), listen()
			defer backend.Close()
			var ended sync.WaitGroup
			ended.Go(func() {
				if c, err := backend.Accept(); err == nil {
					defer c.Close()
					far(c, "of the backend", "of the client")
				}
			})
			i, err := NewIngress(IngressConfig{Wall: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer i.Close()
			i.table = &servedTable{ports: map[int64][]string{25: {backend.Addr().String()}}}
			if err := i.ServePort(25, edge); err != nil {
				t.Fatal(err)
			}
			c, err := net.Dial("tcp", edge.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			near(c, "of the client", "of the backend")
			ended.Wait()
		})
	}
}
