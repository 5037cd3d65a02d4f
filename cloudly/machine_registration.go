package cloudly

import "serve.zone/relay/contract"

// Registrations, and the configuration as far as it leads to one.

// register sends the first registration on an authenticated socket.
var register = transition{"register", func(m *move) { m.register() }}

func (m *move) register() { m.send(registering) }

// renew sends another one while the session stands, when one is wanted.
var renew = transition{"renew", func(m *move) {
	if m.due {
		m.send(renewing)
	}
}}

func (m *move) send(in phase) {
	m.phase, m.wakeAt, m.due = in, 0, false
	m.effects = append(m.effects, effect{kind: doRegister, sequence: m.next})
}

// enter begins the session.
var enter = transition{"enter", func(m *move) {
	m.stoodFrom = m.now
	m.accept(doEnter)
}}

// confirm goes on with a session that was registered once more.
var confirm = transition{"confirm", func(m *move) { m.accept(doConfirm) }}

// accept takes note of an accepted registration. The number is used; whatever was
// refused before is lifted; a configuration that came while the registration was
// in flight counts no more, since the pull that follows tells what holds now.
func (m *move) accept(tell effectKind) {
	m.next++
	m.accepted++
	m.phase, m.wakeAt, m.hold, m.offerAt = registered, 0, 0, 0
	m.postponed, m.absent = 0, false
	m.do(tell, doPull)
	if m.due {
		m.send(renewing)
	}
}

// lose gives up a socket with a registration in flight. Whether Cloudly has used
// the number is not known, so the next one is taken (contract O20).
var lose = transition{"lose", func(m *move) {
	m.next++
	m.giveUp()
}}

// decline gives up after a first registration that was refused without a name.
// The number is not used (contract §5.5).
var decline = transition{"decline", func(m *move) {
	if m.absent && m.accepted > 0 {
		m.endByRecords(contract.RelayClusterNotEnabled)
		return
	}
	m.fail(waitPlain)
}}

// giveUp fails, and lets a configuration without relay block count that came
// meanwhile: as far as is known it began after the last accepted registration.
func (m *move) giveUp() {
	if !m.absent || m.accepted == 0 {
		m.fail(waitPlain)
		return
	}
	m.leave()
	m.endCustody(contract.RelayClusterNotEnabled)
	m.do(doCut)
	m.holdBy(contract.RelayClusterNotEnabled)
	m.backOff(waitPlain)
}

// postpone keeps the session whose repeated registration was refused without a
// name, and tries again.
var postpone = transition{"postpone", func(m *move) {
	if m.absent {
		m.endByRecords(contract.RelayClusterNotEnabled)
		return
	}
	m.phase, m.due = registered, true
	m.postponed++
	m.wakeAt = m.now + backoff(m.postponed, m.event.chance)
}}

// postponeOffer keeps the session whose repeated registration was refused by
// protocol: a refused hop changes nothing (contract §4).
var postponeOffer = transition{"defer", func(m *move) {
	m.refuseOffer()
	if m.absent {
		m.pause()
		return
	}
	m.phase, m.due = registered, true
	m.wakeAt = m.offerAt
}}

// again wants another registration. One that waits for its time keeps waiting.
var again = transition{"again", func(m *move) {
	m.due = true
	if m.wakeAt == 0 {
		m.send(renewing)
	}
}}

// want has another registration follow the one in flight.
var want = transition{"want", func(m *move) { m.due = true }}

// compare takes a configuration over and registers anew, once, when its origin is
// not the one of the configuration before (design §4, O11).
var compare = transition{"compare", func(m *move) {
	m.do(doConfigure)
	if !m.moved() {
		return
	}
	m.due = true
	if m.phase == registered && m.wakeAt == 0 {
		m.send(renewing)
	}
}}

// remember is compare without a session: nothing is taken over, since the pull
// that follows the acceptance brings it.
var remember = transition{"remember", func(m *move) {
	if m.moved() {
		m.due = true
	}
}}

// moved notes the origin and reports whether it is another one.
func (m *move) moved() bool {
	before := m.document
	m.document = m.event.origin
	return before != "" && before != m.event.origin
}

// take hands a configuration over whose relay block is not valid: the block
// changes nothing, its other parts hold.
var take = transition{"take", func(m *move) { m.do(doConfigure) }}

// enable registers at once, because the configuration states a relay block. One
// that was pulled says something new only to a relay that was told of none; what
// another name waits for is not written there (contract §6.1, O19).
var enable = transition{"enable", func(m *move) {
	m.document = m.event.origin
	if !m.event.pushed && m.heldBy != contract.RelayClusterNotEnabled {
		return
	}
	m.hold = 0
	if m.offerAt > m.now {
		m.wakeAt = m.offerAt
		return
	}
	m.register()
}}
