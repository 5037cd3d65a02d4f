package config

import (
	"net/netip"

	"serve.zone/relay/contract"
)

// judge holds the rules that need more than one setting. A setting whose own
// value was refused is left out.
func (l *loader) judge() {
	if l.config.Registry.Upstream == "" {
		l.config.Registry.Upstream = l.config.Cloudly.URL
	}
	if l.config.Registry.RealmOrigin == "" {
		l.config.Registry.RealmOrigin = l.config.Registry.Upstream
	}
	l.judgeProgram() // before what a source of certificates needs that there is not
	l.judgeListen("listen", l.config.Listen)
	l.judgeListen("hub-listen", l.config.Hub.Listen)
	l.judgeOperator()
	l.judgeCertificate()
	l.judgeOffer()
	l.judgeOwnMethods()
	l.judgeForwarded()
}

// judgeProgram refuses what the program cannot honour.
func (l *loader) judgeProgram() {
	if l.sources.Judge == nil {
		return
	}
	for _, r := range l.sources.Judge(l.config) {
		if !l.bad[r.Setting] {
			l.refuseSetting(r.Setting, r.Rule)
		}
	}
}

// judgeListen holds contract §5.3: Cloudly publishes the address, so it must be
// one that nodes can reach. Each address that is none is refused by its own name.
func (l *loader) judgeListen(name string, at netip.AddrPort) {
	if !at.IsValid() || l.bad[name] {
		return
	}
	fault := contract.JudgeListenAddress(at.Addr().String())
	if fault == contract.AddressLoopback && l.config.AllowLoopback {
		fault = ""
	}
	switch {
	case fault != "":
		l.refuseSetting(name, Rule(fault))
	case at.Port() == 0 && !l.config.AllowLoopback:
		l.refuseSetting(name, NotListenPort)
	}
}

// judgeOperator refuses port 0 and the port that the node listener takes.
func (l *loader) judgeOperator() {
	const name = "operator-listen"
	at, nodes := l.config.OperatorListen, l.config.Listen
	switch {
	case l.bad[name]:
	case at.Port() == 0:
		if !l.config.AllowLoopback {
			l.refuseSetting(name, NotListenPort)
		}
	case l.bad["listen"] || at.Port() != nodes.Port():
	case at.Addr() == nodes.Addr(), at.Addr().IsUnspecified():
		l.refuseSetting(name, ListenPortTaken)
	}
}

// certificateNeeds says which settings a certificate source reads.
type certificateNeeds struct {
	rule             Rule // of a needed setting that is not given
	needed, optional []string
}

// needsOf returns what the chosen source and challenge read.
func (l *loader) needsOf() []certificateNeeds {
	switch l.config.TLS.Source {
	case FromFiles:
		return []certificateNeeds{{rule: RequiredByFiles, needed: []string{"tls-cert-file", "tls-key-file"}}}
	case FromACME:
		needs := []certificateNeeds{{
			rule:     RequiredByACME,
			needed:   []string{"acme-directory", "acme-storage", "acme-challenge"},
			optional: []string{"acme-email", "acme-ca-file"},
		}}
		if l.config.TLS.ACME.Challenge == DNS01 {
			needs = append(needs, certificateNeeds{rule: RequiredByDNS, needed: []string{"acme-dns-server", "acme-tsig-file"}})
		}
		return needs
	}
	return nil // cloudly brings all it needs
}

// judgeCertificate refuses a certificate source without what it needs, and
// reports what is given and not read.
func (l *loader) judgeCertificate() {
	if l.bad["tls-source"] {
		return
	}
	read := map[string]bool{"tls-source": true}
	for _, needs := range l.needsOf() {
		for _, name := range needs.needed {
			read[name] = true
			if !l.given[name] && !l.bad[name] && !l.fileBroken {
				l.refuseSetting(name, needs.rule)
			}
		}
		for _, name := range needs.optional {
			read[name] = true
		}
	}
	for _, s := range l.table {
		if name := s.Name(); s.Section == sectionCertificate && l.given[name] && !read[name] {
			l.report.Unused = append(l.report.Unused, name)
		}
	}
}

// judgeOffer holds contract §4: a relay that states a bad offer does not start.
func (l *loader) judgeOffer() {
	if l.bad[keyInterfacesVersion] || l.bad[keyMinimumPeerVersion] {
		return
	}
	for _, reason := range l.config.Protocol.Offer.Validate() {
		name, rule := splitReason(reason)
		l.refuseSetting("protocol."+name, rule)
	}
}
