package main

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"serve.zone/relay/config"
	"serve.zone/relay/duty"
	"serve.zone/relay/hub/node/tun"
)

const (
	// defaultInterface is the name of a node's interface.
	defaultInterface = "relay0"
	// maximumInterface is the longest name that Linux has for one, IFNAMSIZ less its
	// zero byte.
	maximumInterface = 15
	// maximumListeners bounds what --forward and --publish listen on: with a descriptor
	// for each, and one for each of the connections that package portforward has at once,
	// half of those of a process (1,024) are left.
	maximumListeners = 256
)

// nodeSettings are the flags of `relay node`, judged.
type nodeSettings struct {
	credentialFile string
	userspace      bool
	interfaceName  string
	addresses      []netip.Prefix // IPv4, as given; a bare address is a /32
	routes         []netip.Prefix // IPv4, masked
	forwards       []forwardRule
	publishes      []publishRule
	log            config.Log
}

// forwardRule leads from this machine into the cluster.
type forwardRule struct{ listen, to netip.AddrPort }

// publishRule leads from the cluster to a service that this machine reaches.
type publishRule struct {
	port uint16
	to   string // host and port
}

// settings judges the flags. The log's style is there also beside an error.
func (v *nodeVerb) settings() (nodeSettings, error) {
	var f faults
	s := nodeSettings{
		credentialFile: v.CredentialFile.text, interfaceName: v.Interface.or(defaultInterface),
		addresses: readPrefixes(&f, "address", v.Address, false), routes: readPrefixes(&f, "route", v.Route, true),
		log: v.style(&f),
	}
	if n := len(s.interfaceName); n == 0 || n > maximumInterface {
		f.add("interface", fmt.Sprintf("is not a name of 1 to %d bytes", maximumInterface))
	}
	switch given(v.Userspace).or("false") {
	case "true":
		s.userspace = true
	case "false":
	default:
		f.add("userspace", "is neither true nor false")
	}
	s.forwards, s.publishes = readForwards(&f, v.Forward), readPublishes(&f, v.Publish)
	// Flags are counted, since a value that is at fault is in no list.
	if len(v.Forward)+len(v.Publish)*len(v.Address) > maximumListeners {
		f.add("publish", fmt.Sprintf("with --forward there is more to listen on than %d: one for each --forward, and each --publish on every --address", maximumListeners))
	}
	v.judgeWay(&f, s.userspace)
	return s, f.err()
}

// judgeWay refuses the flags of the other way.
func (v *nodeVerb) judgeWay(f *faults, userspace bool) {
	const needsInterface, needsUserspace = "is for an interface, and there is none with --userspace", "needs --userspace"
	if userspace {
		if v.Interface.isGiven {
			f.add("interface", needsInterface)
		}
		if len(v.Route) > 0 {
			f.add("route", needsInterface)
		}
		if len(v.Address) == 0 {
			f.add("address", "is missing: the network inside the program has none by itself")
		}
		return
	}
	if len(v.Forward) > 0 {
		f.add("forward", needsUserspace)
	}
	if len(v.Publish) > 0 {
		f.add("publish", needsUserspace)
	}
}

// style reads what the log is to be.
func (v *nodeVerb) style(f *faults) config.Log {
	level, err := duty.ParseLevel(v.LogLevel.or("info"))
	if err != nil {
		f.add("log-level", "is not debug, info, warn or error")
	}
	format, err := duty.ParseFormat(v.LogFormat.or("json"))
	if err != nil {
		f.add("log-format", "is not json or text")
	}
	return config.Log{Level: level, Format: format}
}

// readPrefixes reads addresses or prefixes of IPv4.
func readPrefixes(f *faults, flag string, values []string, masked bool) []netip.Prefix {
	if len(values) > tun.MaxRoutes {
		f.add(flag, fmt.Sprintf("is given more than %d times", tun.MaxRoutes))
		return nil
	}
	var all []netip.Prefix
	seen := map[netip.Prefix]bool{}
	for i, text := range values {
		prefix, err := netip.ParsePrefix(text)
		if addr, failed := netip.ParseAddr(text); failed == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		same := prefix
		if !masked {
			same = netip.PrefixFrom(prefix.Addr(), prefix.Addr().BitLen()) // one address, whatever prefix it stands in
		}
		switch {
		case err != nil || !prefix.Addr().Is4():
			f.at(flag, i, "is not an address or a prefix of IPv4")
		case masked && prefix != prefix.Masked():
			f.at(flag, i, "is not a prefix: bits behind its length are set")
		case !masked && (prefix.Addr().IsUnspecified() || prefix.Addr().IsMulticast() || prefix.Addr().IsLoopback()):
			f.at(flag, i, "is not the address of one node")
		case seen[same]:
			f.at(flag, i, "is one that was given before")
		default:
			seen[same] = true
			all = append(all, prefix)
		}
	}
	return all
}

func readForwards(f *faults, values []string) []forwardRule {
	var all []forwardRule
	for i, text := range values {
		listen, to, _ := strings.Cut(text, "=")
		if !strings.Contains(listen, ":") {
			listen = net.JoinHostPort("127.0.0.1", listen)
		}
		from, err := netip.ParseAddrPort(listen)
		target, failed := netip.ParseAddrPort(to)
		switch {
		case err != nil:
			f.at("forward", i, "has no port, or address and port, before '='")
		case failed != nil || !target.Addr().Is4() || target.Addr().IsUnspecified() || target.Port() == 0:
			f.at("forward", i, "has no address of IPv4 and port behind '='")
		default:
			all = append(all, forwardRule{from, target})
		}
	}
	return all
}

func readPublishes(f *faults, values []string) []publishRule {
	var all []publishRule
	seen := map[uint16]bool{}
	for i, text := range values {
		from, to, _ := strings.Cut(text, "=")
		port, err := strconv.ParseUint(from, 10, 16)
		host, service, failed := net.SplitHostPort(to)
		number, wrong := strconv.ParseUint(service, 10, 16)
		switch {
		case err != nil || port == 0:
			f.at("publish", i, "has no port before '='")
		case seen[uint16(port)]:
			f.at("publish", i, "has a port that another has already")
		case failed != nil || host == "" || wrong != nil || number == 0:
			f.at("publish", i, "has no host and port behind '='")
		default:
			seen[uint16(port)] = true
			all = append(all, publishRule{uint16(port), to})
		}
	}
	return all
}
