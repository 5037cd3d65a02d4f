package simulate

import (
	"crypto/tls"
	"fmt"
	"regexp"
	"strings"

	"serve.zone/relay/contract"
)

// IngressRoute is IClusterHttpRoute as these peers speak it. OWN: the seeds name
// hostname, destinations and the members of a destination, and say that there is a
// certificate and optional Basic authentication (contract O28). It is secret.
type IngressRoute struct {
	Hostname     string // a DNS name, no wildcard
	Destinations []contract.Destination
	Certificate  RouteCertificate
	BasicAuth    *BasicAuth // nil: anybody is served
}

// RouteCertificate is { chain, privateKey }, both PEM: the certificate with its
// intermediates, and its key.
type RouteCertificate struct{ Chain, PrivateKey string }

// BasicAuth is { user, password }, what a client must present (RFC 7617).
type BasicAuth struct{ User, Password string }

// IngressPortRoute is IClusterPortRoute as these peers speak it: a listen port that
// is forwarded without terminating anything. OWN, as IngressRoute.
type IngressPortRoute struct {
	Transport    string // "tcp" or "udp"
	Port         int64
	Destinations []contract.Destination
}

// String keeps keys and passwords out of what is printed.
func (r IngressRoute) String() string { return fmt.Sprintf("route of %q", r.Hostname) }

// GoString is String.
func (r IngressRoute) GoString() string { return r.String() }

// String says nothing of the key.
func (c RouteCertificate) String() string { return "certificate of a route" }

// GoString is String.
func (c RouteCertificate) GoString() string { return c.String() }

// String says nothing of the password.
func (b BasicAuth) String() string { return "basic authentication of a route" }

// GoString is String.
func (b BasicAuth) GoString() string { return b.String() }

// AppendJSON appends the route.
func (r IngressRoute) AppendJSON(dst []byte) []byte {
	c := compose().text("hostname", r.Hostname).value("destinations", destinations(r.Destinations)).
		value("certificate", compose().text("chain", r.Certificate.Chain).text("privateKey", r.Certificate.PrivateKey).end())
	if r.BasicAuth != nil {
		c.value("basicAuth", compose().text("user", r.BasicAuth.User).text("password", r.BasicAuth.Password).end())
	}
	return append(dst, c.end()...)
}

// AppendJSON appends the route.
func (r IngressPortRoute) AppendJSON(dst []byte) []byte {
	return append(dst, compose().text("transport", r.Transport).integer("port", r.Port).
		value("destinations", destinations(r.Destinations)).end()...)
}

type destinations []contract.Destination

func (l destinations) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i, d := range l {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, compose().text("address", d.Address).integer("port", d.Port).end()...)
	}
	return append(dst, ']')
}

// servedRoute is a route that was judged, with its parsed certificate.
type servedRoute struct {
	hostname     string // lower case
	destinations []string
	certificate  *tls.Certificate
	auth         *BasicAuth
}

// dnsName is a host name of letters, digits and inner hyphens (RFC 1123 §2.1).
var dnsName = regexp.MustCompile(`^(?i:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*(?i:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)$`)

func isDNSName(s string) bool { return len(s) <= 253 && dnsName.MatchString(s) }

// readRoute reads everything a route carries. What this ingress could not honour
// is refused: a route is never served in part.
func readRoute(raw []byte) (servedRoute, []string) {
	o := readObject("route", raw, []string{"hostname", "destinations", "certificate"}, "basicAuth")
	r := servedRoute{
		hostname:     strings.ToLower(o.text("hostname", isDNSName, "is not a dns name")),
		destinations: o.destinations("destinations"),
	}
	if raw := o.members["basicAuth"]; raw != nil {
		inner := readObject("basicAuth", raw, []string{"user", "password"})
		r.auth = &BasicAuth{
			// A colon would end the user in what a client sends (RFC 7617 §2).
			User:     inner.text("user", func(s string) bool { return s != "" && !strings.Contains(s, ":") }, "is not a user without a colon"),
			Password: inner.text("password", func(s string) bool { return s != "" }, "is not a text"),
		}
		o.within("basicAuth", inner)
	}
	if raw := o.members["certificate"]; raw != nil {
		inner := readObject("certificate", raw, []string{"chain", "privateKey"})
		r.certificate = inner.pair(r.hostname)
		o.within("certificate", inner)
	}
	return r, o.reasons
}

// within takes over the reasons of an object inside this one.
func (o *object) within(member string, inner *object) {
	for _, reason := range inner.reasons {
		at, rule, _ := strings.Cut(reason, ": ")
		if at == "body" {
			o.refuse(member, rule)
		} else {
			o.refuse(member+"."+at, rule)
		}
	}
}

// pair returns the certificate of a route: it parses, its key is its own, and it
// names the hostname. Whether it is valid today is its clients' to judge. Reasons
// quote nothing, and errors of crypto/tls are not shown.
func (o *object) pair(hostname string) *tls.Certificate {
	text := func(string) bool { return true }
	chain, key := o.text("chain", text, "is not a text"), o.text("privateKey", text, "is not a text")
	if len(o.reasons) > 0 {
		return nil
	}
	pair, err := tls.X509KeyPair([]byte(chain), []byte(key))
	switch {
	case err != nil:
		o.refuse("body", "is no certificate with its private key")
	case hostname != "" && pair.Leaf.VerifyHostname(hostname) != nil:
		o.refuse("chain", "does not name the hostname")
	default:
		return &pair
	}
	return nil
}

// destinations returns where a route forwards to, in the form of net.Dial.
func (o *object) destinations(name string) []string {
	list := []string{}
	for n, raw := range o.elements(name) {
		inner := readObject("destination", raw, []string{"address", "port"})
		address := inner.text("address", contract.IsUnicastIPv4, "is not a unicast ipv4 literal")
		port := inner.counter("port")
		if port > 65535 {
			inner.refuse("port", "is not a port")
		}
		o.within(fmt.Sprintf("%s[%d]", name, n), inner)
		list = append(list, fmt.Sprintf("%s:%d", address, port))
	}
	return list
}
