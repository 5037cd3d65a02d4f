// Package cloudly keeps the relay's one upstream session: it dials Cloudly,
// exchanges the bearer for an identity, registers, hears when custody ends, and
// comes back after every loss (contract §5, §6; design §4).
//
// # What it promises
//
// On a new socket nothing precedes registerCloudlyClientSession but the exchange
// of the bearer. registerClusterRelay follows, stating what was really bound,
// and after every accepted one the pulls of contract §5.6. There is never more
// than one socket, and never more than one registration in flight.
//
// The session is a pure state machine (machine.go, with its table) in a thin
// shell. The shell executes effects in order, calls the hooks from its one loop,
// never two at once, and reports what came of an effect as the next event.
//
// A custody refusal, read on any own call or told by HeardForwarded, ends custody:
// from that instant nothing more of Cloudly is served, running pulls are told to
// end, and OnCustodyEnded has returned before the loop sends anything else, and
// of a socket that stays open whatever flows and streams had queued is dropped. A
// protocol refusal, an unnamed refusal, a lost answer and a lost socket keep
// custody. OnLost follows every OnRegistered that was the first on its socket.
//
// It tries for ever. Waits after a plain loss double from one second to sixty,
// jitter included, and begin anew only after a session stood for sixty seconds.
//
// # What it never does
//
// It never queues a request across a loss; never reads a body that it only
// carries; never writes the bearer or the identity anywhere, nor shows them: both
// are zeroed when they are not needed any more. It never trims the credential
// file. It decides nothing by the wall clock but the age of an identity.
//
// # Goroutines
//
// Run owns all of them and has ended them when it returns: the loop itself, the
// keeper of the credential, one for each call of a handshake, one that waits for
// the socket's end, one for each pull while a session stands. A pull that ignores
// its context is reported and left behind.
//
// # Lock order
//
// Each lock guards one small structure (inbox, identity, gate, what Status shows)
// and is let go before another is taken or a hook is called. The one exception
// is deliberate: a gate holds its lock while the handler serves a request, so
// that shutting it waits for the request that is being served.
//
// # Limits
//
// They stand in limits.go, each with its reason.
package cloudly
