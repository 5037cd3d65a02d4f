package bench

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/hub/tunnel"
)

// bareRole is the hub's peer: the least that relays QUIC datagrams. It takes whoever
// dials, reads a datagram and sends it on, on one goroutine a connection. It judges
// nothing, and waits for whoever takes its datagrams slowly. QUIC and TLS are
// configured as the hub's, so that what differs is the hub's own.
const bareRole = "bare-datagrams"

// reservedRole is the same with as much memory that is never touched as the hub has, so
// that garbage is collected as rarely as there.
const (
	reservedRole  = "bare-datagrams-reserved"
	reservedBytes = 8 << 20
)

// addressBytes is an IPv4 address, and destinationAt where a packet bears the one it
// goes to. A datagram of just an address says whose the connection is.
const (
	addressBytes  = 4
	destinationAt = 16
)

// serveBare runs either role until standard input ends. It prints its address, and after
// each line on standard input its allocations so far.
func serveBare(reserved int) {
	reserve := make([]byte, reserved)
	defer runtime.KeepAlive(reserve)
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		panic(err)
	}
	certificate, err := tunnel.NewCertificate()
	if err != nil {
		panic(err)
	}
	transport := tunnel.HubTransport(socket, benchKey(0))
	listener, err := transport.Listen(tunnel.HubTLS(certificate, nil), tunnel.HubQUIC())
	if err != nil {
		panic(err)
	}
	fmt.Println(socket.LocalAddr())
	var owners sync.Map
	go func() {
		for {
			conn, err := listener.Accept(context.Background())
			if err != nil {
				return
			}
			go relayBare(conn, &owners)
		}
	}()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println(m.Mallocs, m.TotalAlloc, 0)
	}
}

// relayBare relays what comes over one connection. owners are connections by address.
func relayBare(conn *quic.Conn, owners *sync.Map) {
	for {
		datagram, err := conn.ReceiveDatagram(context.Background())
		if err != nil {
			return
		}
		if len(datagram) == addressBytes {
			owners.Store([addressBytes]byte(datagram), conn)
			conn.SendDatagram(datagram)
			continue
		}
		if owner, ok := owners.Load([addressBytes]byte(datagram[destinationAt:])); ok {
			owner.(*quic.Conn).SendDatagram(datagram)
		}
	}
}
