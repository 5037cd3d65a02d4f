package rig

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"time"
)

// Ports are chosen below those that the kernel gives to whoever asks for any
// (net.ipv4.ip_local_port_range begins at 32768), so that no connection of
// another process takes one while the relay that had it is being restarted.
const (
	firstPort = 20000
	lastPort  = 32767

	loopback = "127.0.0.1"
	// claimHost is where a port is claimed: tests of other packages run at the same
	// time, and whoever holds the port here may use it on loopback.
	claimHost = "127.77.0.1"
	// portTries is far more than there are ports in use.
	portTries = 1000
)

// port is a port of loopback that no other rig uses.
type port struct {
	number int
	claim  net.Listener
}

// claimPort returns a port on which nothing listens, by TCP or UDP.
func claimPort() (*port, error) {
	for range portTries {
		number := firstPort + rand.IntN(lastPort-firstPort+1)
		if p := claimNumber(number); p != nil {
			return p, nil
		}
	}
	return nil, errors.New("rig: found no free port on loopback")
}

// claimNumber returns nil for a port that another rig has, or that is in use.
func claimNumber(number int) *port {
	claim, err := net.Listen("tcp4", hostPort(claimHost, number))
	if err != nil {
		return nil
	}
	if !isFree(number) {
		claim.Close()
		return nil
	}
	return &port{number, claim}
}

// isFree lets nothing be forked while it holds the port: until its exec a child has
// a copy of every socket, and whoever is to use the port would find it taken.
func isFree(number int) bool {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	stream, err := net.Listen("tcp4", hostPort(loopback, number))
	if err != nil {
		return false
	}
	stream.Close()
	packets, err := net.ListenPacket("udp4", hostPort(loopback, number))
	if err != nil {
		return false
	}
	packets.Close()
	return true
}

// listen listens on an address of this rig. A child that was forked while an earlier
// listener stood there may hold it still, for as long as it takes to exec.
func listen(address string) (net.Listener, error) {
	for deadline := time.Now().Add(execWait); ; {
		listener, err := net.Listen("tcp4", address)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return listener, err
		}
		time.Sleep(execStep)
	}
}

// How long a forked child may take to exec on a busy machine, and how often it is
// looked whether it has.
const (
	execWait = 5 * time.Second
	execStep = 5 * time.Millisecond
)

func (p *port) address() string { return hostPort(loopback, p.number) }

func (p *port) release() { p.claim.Close() }

func hostPort(host string, number int) string { return net.JoinHostPort(host, strconv.Itoa(number)) }
