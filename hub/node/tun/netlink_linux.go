package tun

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// netlink is a socket of rtnetlink(7) for a few requests, each answered at once by the
// kernel in the same call.
type netlink struct {
	fd       int
	sequence uint32
}

// netlinkWait bounds one answer of the kernel, in seconds: it comes before the send returns.
const netlinkWait = 2

func openNetlink() (*netlink, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: netlinkWait}); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("setsockopt", err)
	}
	return &netlink{fd: fd}, nil
}

func (n *netlink) close() { unix.Close(n.fd) }

// setUp sets the MTU of an interface, and the interface up.
func (n *netlink) setUp(index, mtu int) error {
	body := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(body[4:], uint32(index))
	binary.NativeEndian.PutUint32(body[8:], unix.IFF_UP)
	binary.NativeEndian.PutUint32(body[12:], unix.IFF_UP)
	body = appendUint32(body, unix.IFLA_MTU, mtu)
	return n.call(unix.RTM_NEWLINK, 0, body)
}

// addAddress gives an interface an address, or leaves it there.
func (n *netlink) addAddress(index int, address netip.Prefix) error {
	return n.call(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, addressMessage(index, address))
}

// removeAddress takes an address away, if it is there.
func (n *netlink) removeAddress(index int, address netip.Prefix) error {
	err := n.call(unix.RTM_DELADDR, 0, addressMessage(index, address))
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil
	}
	return err
}

func addressMessage(index int, address netip.Prefix) []byte {
	body := make([]byte, unix.SizeofIfAddrmsg)
	body[0] = unix.AF_INET
	body[1] = byte(address.Bits())
	binary.NativeEndian.PutUint32(body[4:], uint32(index))
	body = appendAddress(body, unix.IFA_LOCAL, address.Addr())
	return appendAddress(body, unix.IFA_ADDRESS, address.Addr())
}

// addRoute sends a prefix to an interface. A route of somebody else to the same prefix
// through another interface is left alone, and an error.
func (n *netlink) addRoute(index int, route Route) error {
	body := make([]byte, unix.SizeofRtMsg)
	body[0] = unix.AF_INET
	body[1] = byte(route.To.Bits())
	body[4] = unix.RT_TABLE_MAIN
	body[5] = unix.RTPROT_STATIC
	body[6] = unix.RT_SCOPE_LINK
	body[7] = unix.RTN_UNICAST
	body = appendAddress(body, unix.RTA_DST, route.To.Addr())
	body = appendUint32(body, unix.RTA_OIF, index)
	if route.Source.IsValid() {
		body = appendAddress(body, unix.RTA_PREFSRC, route.Source)
	}
	return n.call(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, body)
}

func appendAddress(b []byte, kind uint16, a netip.Addr) []byte {
	four := a.As4()
	return append(appendHeader(b, kind), four[:]...)
}

func appendUint32(b []byte, kind uint16, value int) []byte {
	return binary.NativeEndian.AppendUint32(appendHeader(b, kind), uint32(value))
}

// appendHeader appends the header of an attribute of 4 bytes, which needs no padding.
func appendHeader(b []byte, kind uint16) []byte {
	b = binary.NativeEndian.AppendUint16(b, unix.SizeofRtAttr+4)
	return binary.NativeEndian.AppendUint16(b, kind)
}

// call sends one request and reads the kernel's answer to it.
func (n *netlink) call(kind, flags uint16, body []byte) error {
	n.sequence++
	message := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+len(body))
	binary.NativeEndian.PutUint32(message, uint32(unix.SizeofNlMsghdr+len(body)))
	binary.NativeEndian.PutUint16(message[4:], kind)
	binary.NativeEndian.PutUint16(message[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags)
	binary.NativeEndian.PutUint32(message[8:], n.sequence)
	message = append(message, body...)
	if err := unix.Sendto(n.fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, unix.Getpagesize())
	length, _, err := unix.Recvfrom(n.fd, answer, 0)
	if err != nil {
		return os.NewSyscallError("recvfrom", err)
	}
	return readAnswer(answer[:length], n.sequence)
}

// readAnswer reads what every request is answered with: an error number, zero for none.
func readAnswer(answer []byte, sequence uint32) error {
	if len(answer) < unix.SizeofNlMsghdr+4 {
		return fmt.Errorf("netlink answered %d bytes", len(answer))
	}
	kind := binary.NativeEndian.Uint16(answer[4:])
	if got := binary.NativeEndian.Uint32(answer[8:]); kind != unix.NLMSG_ERROR || got != sequence {
		return fmt.Errorf("netlink answered %d to %d with kind %d", got, sequence, kind)
	}
	if number := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); number != 0 {
		return unix.Errno(-number)
	}
	return nil
}
