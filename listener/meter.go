package listener

import "time"

// meter stands before the handling of each message, in the place of the
// carrier's recorder. While nobody is known to speak, a peer that does not read
// its answers is not read either: nothing else bounds them below the carrier's
// bound for the largest answer, and the carrier answers some messages itself, so
// counting in the handlers would not do.
type meter struct{ c *Conn }

// Received is called by the socket's reader. It waits, which a recorder should
// not, until less than unregisteredQueue is left to send, the socket has a role,
// or it ends, for which registrationWait sees. Nobody but this peer waits with
// it.
func (m meter) Received(bool, []byte) {
	<-m.c.ready
	for wait := time.Millisecond; m.c.currentRole() == unbound; wait = min(2*wait, unreadEvery) {
		if m.c.sock.Stats().QueuedOwn <= unregisteredQueue {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-m.c.sock.Ending():
			timer.Stop()
			return
		}
	}
}

// Sent is of no interest.
func (meter) Sent(bool, []byte) {}
