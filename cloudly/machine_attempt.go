package cloudly

import "serve.zone/relay/contract"

// From a wait to an authenticated socket, and back.

// dial begins an attempt.
var dial = transition{"dial", func(m *move) { m.begin() }}

func (m *move) begin() {
	if m.offerAt > m.now {
		m.phase, m.wait, m.wakeAt = waiting, waitProtocol, m.offerAt
		return
	}
	m.phase, m.wait, m.wakeAt = dialing, waitStart, 0
	m.epoch++
	m.fresh = false
	m.do(doDial)
}

var exchange = transition{"exchange", func(m *move) {
	m.phase = exchanging
	m.do(doExchange)
}}

var authenticate = transition{"authenticate", func(m *move) {
	m.phase = authenticating
	m.do(doAuthenticate)
}}

// admit goes on to the registration, or waits in phase refused for what is left
// of the time after a custody refusal. The configuration is pulled then, because
// the push that enables the relay may have gone to no socket.
var admit = transition{"admit", func(m *move) {
	if m.hold > m.now {
		m.phase, m.wakeAt = refused, m.hold
		m.do(doPullConfiguration)
		return
	}
	m.register()
}}

// fail gives the attempt or the session up and waits.
var fail = transition{"fail", func(m *move) {
	why := waitPlain
	if m.event.kind == evUnusable {
		why = waitCredential
	}
	m.fail(why)
}}

func (m *move) fail(why waitKind) {
	m.leave(doLose)
	if m.phase.hasSocket() {
		m.do(doClose)
	}
	m.backOff(why)
}

// backOff waits as after a plain loss.
func (m *move) backOff(why waitKind) {
	m.failures++
	m.sleep(why)
	m.wakeAt = m.now + backoff(m.failures, m.event.chance)
	if m.offerAt > m.wakeAt {
		m.wait, m.wakeAt = waitProtocol, m.offerAt
	}
}

// sleep enters phase waiting. Whoever calls it sets wakeAt.
func (m *move) sleep(why waitKind) {
	m.phase, m.wait = waiting, why
	m.due, m.absent, m.postponed = false, false, 0
}

// leave ends what stands on the socket: requests and pulls, and the session with
// the effects that are to follow.
func (m *move) leave(then ...effectKind) {
	if m.phase.hasSocket() {
		m.do(doShut)
	}
	if m.phase.stands() {
		m.do(then...)
		if m.now-m.stoodFrom >= standsAfter {
			m.failures = 0
		}
	}
}

// pause waits after a protocol refusal. It is neither a loss nor an end of
// custody: an operator has to change one of the sides (contract §4).
var pause = transition{"pause", func(m *move) {
	m.refuseOffer()
	m.pause()
}}

// refuseOffer takes note that the offers do not go together. Where the refusal is
// ours, Cloudly has accepted and used the number.
func (m *move) refuseOffer() {
	if m.event.used {
		m.next++
	}
	m.offerAt = m.now + contract.RefusedOfferRetryInterval
}

// pause closes the socket and waits until the offer may be made again. A
// configuration without relay block that came meanwhile counts.
func (m *move) pause() {
	if m.absent && m.accepted > 0 {
		m.leave()
		m.endCustody(contract.RelayClusterNotEnabled)
		m.do(doCut)
	} else {
		m.leave(doLose)
		m.do(doClose)
	}
	m.sleep(waitProtocol)
	m.wakeAt = m.offerAt
}

// hurry begins the next attempt now. It shortens neither the wait after a
// protocol refusal nor, without other bytes in the credential file, the one after
// a custody refusal.
var hurry = transition{"hurry", func(m *move) {
	if m.event.kind == evKick {
		if m.wait == waitPlain || m.wait == waitCredential {
			m.begin()
		}
		return
	}
	m.fresh = m.event.fresh
	if m.fresh && m.wait != waitProtocol {
		m.hold = 0
		m.begin()
	}
}}

// note keeps what is known about the credential file.
var note = transition{"note", func(m *move) { m.fresh = m.event.fresh }}

// replace leaves an authenticated socket for one with the new credential.
var replace = transition{"replace", func(m *move) {
	m.fresh = m.event.fresh
	if m.fresh {
		m.hold = 0
		m.do(doShut, doClose)
		m.begin()
	}
}}

var stop = transition{"stop", func(m *move) {
	m.leave(doLose)
	if m.phase.hasSocket() {
		m.do(doClose)
	}
	m.sleep(waitStart)
	m.phase, m.wakeAt = stopped, 0
}}
