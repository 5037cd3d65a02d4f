package cloudly

import "serve.zone/relay/contract"

// Ends of custody (contract §6).

// end ends custody by the name that was heard. The name that is being waited for
// already changes nothing.
var end = transition{"end", func(m *move) {
	if m.phase == refused && m.event.name == m.heldBy {
		return
	}
	switch m.event.name {
	case contract.RelayCredentialGenerationStale:
		m.endByCredential()
	case contract.RelaySequenceNotAdvancing:
		m.endBySequence()
	default:
		m.endByRecords(m.event.name)
	}
}}

// cutoff ends custody by a name that came while a registration was in flight. Its
// answer could revive what has just ended, so the socket goes, and the number
// counts as used.
var cutoff = transition{"cutoff", func(m *move) {
	if m.event.name == contract.RelayCredentialGenerationStale {
		m.next++
		m.endByCredential()
		return
	}
	m.leave()
	m.endCustody(m.event.name)
	m.do(doCut)
	m.next++
	if m.event.name != contract.RelaySequenceNotAdvancing {
		m.holdBy(m.event.name)
	}
	m.backOff(waitPlain)
}}

// late ends custody by a name that came on a socket which has ended since. It makes
// no wait shorter.
var late = transition{"late", func(m *move) {
	m.endCustody(m.event.name)
	switch m.event.name {
	case contract.RelayCredentialGenerationStale:
		m.awaitCredential()
	case contract.RelaySequenceNotAdvancing:
	default:
		m.holdBy(m.event.name)
	}
}}

// disable ends custody because the configuration states no relay block, which is
// the same as hearing relay-cluster-not-enabled (contract §6.3).
var disable = transition{"disable", func(m *move) { m.endByRecords(contract.RelayClusterNotEnabled) }}

// suspect leaves a configuration without relay block undecided while a
// registration is in flight: it counts only if that one is not accepted.
var suspect = transition{"suspect", func(m *move) { m.absent = true }}

// endCustody ends it, before anything else is sent, and then the session. The
// caller has shut requests and pulls.
func (m *move) endCustody(name contract.RefusalName) {
	m.effects = append(m.effects, effect{kind: doEndCustody, name: name})
	if m.phase.stands() {
		m.do(doLose)
	}
	m.document = ""
}

// holdBy keeps registrations back for the time that the contract states.
func (m *move) holdBy(name contract.RefusalName) {
	m.hold, m.heldBy = m.now+contract.UndispatchedRetryInterval, name
}

// endByRecords waits for Cloudly's records to change. An authenticated socket
// stays open, so that a push can tell.
func (m *move) endByRecords(name contract.RefusalName) {
	m.leave()
	m.endCustody(name)
	m.holdBy(name)
	if m.phase.authenticated() {
		m.do(doDropFlows)
		m.sleep(waitStart)
		m.phase, m.wakeAt = refused, max(m.hold, m.offerAt)
		return
	}
	m.do(doCut)
	m.sleep(waitRecords)
	m.wakeAt = m.hold
}

// endBySequence goes on on a new socket, with the number after the one that was
// refused.
func (m *move) endBySequence() {
	m.leave()
	m.endCustody(contract.RelaySequenceNotAdvancing)
	m.do(doCut)
	if m.phase.registers() {
		m.next++
	}
	m.backOff(waitPlain)
}

// endByCredential waits for other bytes in the credential file. When they are
// there already, the next attempt begins at once.
func (m *move) endByCredential() {
	m.leave()
	m.endCustody(contract.RelayCredentialGenerationStale)
	m.do(doCut)
	m.sleep(waitStart)
	m.awaitCredential()
}

// awaitCredential waits for other bytes in the credential file, without a socket.
func (m *move) awaitCredential() {
	m.hold = 0
	if m.fresh {
		m.begin()
		return
	}
	m.wait = waitStale
	m.wakeAt = max(m.now+contract.UndispatchedRetryInterval, m.offerAt)
	m.do(doLookAtCredential)
}
