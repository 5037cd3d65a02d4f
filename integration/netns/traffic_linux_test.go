package netns_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	innerMTU = 1400
	// What ping and iperf3 are told to send goes behind the headers of IPv4 and of ICMP or
	// UDP, which have 28 bytes together.
	fullEcho     = innerMTU - 28
	fullDatagram = innerMTU - 28
	smallEcho    = 56
)

// echo is how ping is told to send echo requests of a size, that nobody may cut on the way,
// to another member's workload.
func (m *member) echo(to *member, size int, more ...string) []string {
	return append([]string{"-n", "-M", "do", "-s", strconv.Itoa(size), "-I", m.workload.String(), to.workload.String()}, more...)
}

// asks has the member send small echo requests, answered or not, until the program is
// stopped.
func (m *member) asks(to *member) *program {
	m.c.t.Helper()
	return m.space.start("", "ping", m.echo(to, smallEcho, "-q", "-i", "0.05")...)
}

// ping has another member answer as many echo requests at once. For those that are late ping
// waits as long as the interval says, once any was answered.
func (m *member) ping(to *member, count, size int) {
	m.c.t.Helper()
	out := m.space.must("", "ping", m.echo(to, size, "-l", strconv.Itoa(count), "-c", strconv.Itoa(count), "-i", "5", "-W", "5")...)
	if !strings.Contains(out, fmt.Sprintf(" %d received", count)) {
		m.c.t.Fatalf("%s pings %s: %s", m.name, to.name, out)
	}
}

// report is what iperf3 says of a run, as far as tests judge it.
type report struct {
	Error string `json:"error"`
	End   struct {
		Sum      flow `json:"sum"`          // of UDP
		Sent     flow `json:"sum_sent"`     // of TCP
		Received flow `json:"sum_received"` // of TCP
	} `json:"end"`
}

// flow is one count of iperf3's.
type flow struct {
	Bytes       uint64  `json:"bytes"`
	BitsASecond float64 `json:"bits_per_second"`
	Packets     int64   `json:"packets"`
	Lost        int64   `json:"lost_packets"`
	Retransmits int64   `json:"retransmits"`
}

// serve starts the end of iperf3 that waits for others, and waits until it does.
func (m *member) serve() {
	m.c.t.Helper()
	server := m.space.start("", "iperf3", "--server", "--bind", m.workload.String(), "--forceflush")
	m.c.Eventually("iperf3 listens", func() error {
		if err := server.running(); err != nil {
			return err
		}
		if !strings.Contains(server.stdout.String(), "Server listening") {
			return errors.New("it says " + server.output())
		}
		return nil
	})
}

// iperf starts a transfer to another member, which serves.
func (m *member) iperf(to *member, arguments ...string) *transfer {
	m.c.t.Helper()
	return &transfer{m.c.t, m.space.start("", "iperf3", append([]string{"--client", to.workload.String(),
		"--bind", m.workload.String(), "--json", "--connect-timeout", "10000"}, arguments...)...)}
}

// transfer is a run of iperf3.
type transfer struct {
	t testing.TB
	*program
}

// done waits for the end of the transfer and returns what iperf3 says of it.
func (x *transfer) done() report {
	x.t.Helper()
	ended := x.wait(2 * testLimit)
	var r report
	if err := json.Unmarshal([]byte(x.stdout.String()), &r); err != nil || ended != nil || r.Error != "" {
		x.t.Fatalf("iperf3: %v, %v\n%.2000s", ended, err, x.output())
	}
	return r
}

// stream is how a transfer over TCP is told to be: of so many seconds, however fast the
// machine is, and at a rate that leaves it to others as well.
func stream(seconds int) []string {
	return []string{"--time", strconv.Itoa(seconds), "--bitrate", "200M"}
}

// carried waits for the end of a transfer over TCP, which must have got somewhere. iperf3
// counts what was read when the last byte has been written: that all of it arrives, and as
// it was sent, is for send to see.
func (x *transfer) carried() {
	x.t.Helper()
	r := x.done().End
	if r.Sent.Bytes == 0 || r.Received.Bytes == 0 {
		x.t.Errorf("tcp: %d bytes sent, %d read", r.Sent.Bytes, r.Received.Bytes)
	}
	x.t.Logf("tcp: %d bytes, %.0f Mbit/s, %d retransmits", r.Received.Bytes, r.Received.BitsASecond/1e6, r.Sent.Retransmits)
}

// datagramRate is how many datagrams a second a transfer over UDP has. iperf3 sends at once
// what it was kept from sending, and QUIC keeps 128 for a reader that is not there: so the
// machine may let a program wait for half a second before one is lost.
const datagramRate = 250

// datagrams is how a transfer over UDP is told to be: of a number of datagrams that fill
// the inner MTU.
func datagrams(count int) []string {
	return []string{"--udp", "--length", strconv.Itoa(fullDatagram), "--blockcount", strconv.Itoa(count),
		"--bitrate", strconv.Itoa(datagramRate * fullDatagram * 8)}
}

// lost waits for the end of a transfer over UDP, and returns how many datagrams it had
// and how many of them did not arrive.
func (x *transfer) lost() (packets, lost int64) {
	x.t.Helper()
	r := x.done().End.Sum
	x.t.Logf("udp: %d datagrams, %d lost, %.1f Mbit/s", r.Packets, r.Lost, r.BitsASecond/1e6)
	return r.Packets, r.Lost
}

// allArrived waits for the end of a transfer over UDP, of which nothing may be lost.
func (x *transfer) allArrived(count int) {
	x.t.Helper()
	if packets, lost := x.lost(); packets < int64(count) || lost != 0 {
		x.t.Errorf("udp: %d of %d datagrams were lost, %d were asked for", lost, packets, count)
	}
}

// send sends random bytes to another member's workload over TCP, and fails the test unless
// the same bytes arrive.
func (m *member) send(to *member, size int64) {
	m.c.t.Helper()
	if err := m.transmit(to, size); err != nil {
		m.c.t.Errorf("%s sends %d bytes to %s: %v", m.name, size, to.name, err)
	}
}

func (m *member) transmit(to *member, size int64) error {
	deadline := time.Now().Add(testLimit)
	var listener *net.TCPListener
	var conn net.Conn
	err := to.space.inside(func() (err error) {
		listener, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: to.workload.AsSlice()})
		return err
	})
	if err != nil {
		return err
	}
	defer listener.Close()
	listener.SetDeadline(deadline)
	arrived := make(chan digest, 1)
	go func() {
		arrived <- func() digest {
			conn, err := listener.Accept()
			if err != nil {
				return digest{err: err}
			}
			defer conn.Close()
			conn.SetDeadline(deadline)
			return digestOf(io.Discard, conn)
		}()
	}()
	err = m.space.inside(func() (err error) {
		dialer := net.Dialer{Deadline: deadline, LocalAddr: &net.TCPAddr{IP: m.workload.AsSlice()}}
		conn, err = dialer.Dial("tcp4", listener.Addr().String())
		return err
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(deadline)
	sent := digestOf(conn, io.LimitReader(rand.Reader, size))
	conn.Close()
	if got := <-arrived; sent.err != nil || got.err != nil || got != sent {
		return fmt.Errorf("sent %+v, arrived %+v", sent, got)
	}
	return nil
}

// digest tells a stream of bytes from any other.
type digest struct {
	bytes int64
	sum   [sha256.Size]byte
	err   error
}

func digestOf(to io.Writer, from io.Reader) (d digest) {
	sum := sha256.New()
	d.bytes, d.err = io.Copy(io.MultiWriter(to, sum), from)
	sum.Sum(d.sum[:0])
	return d
}

// bothWays carries traffic between two members in both directions: a flow of datagrams of
// which none may be lost, a TCP stream, and so many bytes that are compared.
func (c *cluster) bothWays(a, b *member, bytes int64) {
	c.t.Helper()
	a.serve()
	b.serve()
	there, back := a.iperf(b, datagrams(300)...), b.iperf(a, datagrams(300)...)
	there.allArrived(300)
	back.allArrived(300)
	c.nothingDropped()
	a.iperf(b, stream(1)...).carried()
	b.iperf(a, stream(1)...).carried()
	a.send(b, bytes)
	b.send(a, bytes)
}
