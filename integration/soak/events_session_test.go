package soak_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"sync"
	"syscall"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/duty/failpoint/control"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// lose has the session to Cloudly be lost, and comes back from it.
func (s *soak) lose(do func()) {
	s.t.Helper()
	was := s.cutting()
	do()
	s.back(was)
}

// cloudlyAway takes Cloudly away for a while in which other things go on.
func (s *soak) cloudlyAway() {
	s.t.Helper()
	s.lose(func() {
		s.Upstream.Outage()
		s.small()
		s.pause(0, time.Second)
		s.small()
	})
}

// cloudlyStalls lets nothing pass for a while in either direction, and ends nothing.
func (s *soak) cloudlyStalls() {
	s.Upstream.Stall()
	s.small()
	s.pause(200*time.Millisecond, time.Second)
	s.must(s.Upstream.Resume())
}

// cloudlyTorn breaks the connection in the middle of what the relay writes.
func (s *soak) cloudlyTorn() {
	s.t.Helper()
	s.lose(func() { s.must(s.remote.Cut(string(failpoint.CloudlyConnection), 0, 1+s.random.IntN(20_000))) })
}

// cloudlyOdd has Cloudly be there in odd ways.
func (s *soak) cloudlyOdd() {
	s.t.Helper()
	s.lose(func() {
		for _, how := range []simulate.Reachability{simulate.Dying, simulate.Unavailable} {
			s.Cloudly.SetReachability(how)
			s.Cloudly.CutSockets()
			s.Signal(syscall.SIGHUP)
			s.pause(100*time.Millisecond, 300*time.Millisecond)
		}
	})
}

// cloudlyHangs has Cloudly take connections and say nothing.
func (s *soak) cloudlyHangs() {
	s.t.Helper()
	s.lose(func() {
		for _, how := range []simulate.Reachability{simulate.Hanging, simulate.Mute} {
			s.Cloudly.SetReachability(how)
			s.Upstream.Cut()
			s.Signal(syscall.SIGHUP)
			s.pause(300*time.Millisecond, time.Second)
		}
		s.Cloudly.Return()
		s.Upstream.Cut()
	})
}

// answerLost breaks the socket in place of the answer to a registration.
func (s *soak) answerLost() {
	s.t.Helper()
	s.Cloudly.Script(contract.MethodRegisterClusterRelay, simulate.CutOff())
	s.lose(func() { s.Upstream.Cut() })
	s.Cloudly.ClearScript(contract.MethodRegisterClusterRelay)
}

// registrationAnswered breaks the socket when the answer to the registration was read,
// and nobody knows it yet.
func (s *soak) registrationAnswered() {
	s.t.Helper()
	times := s.hold(failpoint.RegistrationAnswered, 1)
	was := s.cutting()
	s.Upstream.Cut()
	s.accepted(was) // and the relay does not know
	s.reached(failpoint.RegistrationAnswered, times+1)
	s.small()
	was = s.cutting()
	s.Upstream.Cut()
	s.pause(0, 100*time.Millisecond)
	s.release(failpoint.RegistrationAnswered)
	s.back(was)
}

// lossHeld has the duties learn late that the session is lost.
func (s *soak) lossHeld() {
	s.t.Helper()
	times := s.hold(failpoint.LossSeen, 1)
	was := s.cutting()
	s.Upstream.Cut()
	s.reached(failpoint.LossSeen, times+1)
	s.small()
	s.pause(50*time.Millisecond, 300*time.Millisecond)
	s.release(failpoint.LossSeen)
	s.back(was)
}

// nodeRequestsHeld loses Cloudly between the reading of some nodes' requests and whatever
// is done about them.
func (s *soak) nodeRequestsHeld() {
	s.t.Helper()
	const some = 12
	times := s.hold(failpoint.NodeRequestRead, some)
	s.reached(failpoint.NodeRequestRead, times+some)
	was := s.cutting()
	s.Upstream.Cut()
	s.pause(0, 300*time.Millisecond)
	if s.random.IntN(2) == 0 { // it is back before they go on
		s.back(was)
	}
	s.release(failpoint.NodeRequestRead)
	s.back(was)
}

// cloudlyRequestsHeld loses nodes, or Cloudly, between the reading of a push and its way
// to a node.
func (s *soak) cloudlyRequestsHeld() {
	s.t.Helper()
	times := s.hold(failpoint.CloudlyRequestRead, 1)
	s.reached(failpoint.CloudlyRequestRead, times+1)
	for _, p := range s.some(len(s.fleet.nodes) / 2) {
		p.Reconnect()
	}
	was, cut := s.cutting(), s.random.IntN(2) == 0
	if cut {
		s.Upstream.Cut()
	}
	s.pause(0, 200*time.Millisecond)
	s.release(failpoint.CloudlyRequestRead)
	if cut {
		s.back(was)
	}
}

// some returns different nodes.
func (s *soak) some(n int) []*simulate.Pallet {
	var all []*simulate.Pallet
	for _, i := range s.random.Perm(len(s.fleet.nodes))[:n] {
		all = append(all, s.fleet.nodes[i])
	}
	return all
}

func (s *soak) nodesCut() {
	for _, p := range s.some(4) {
		p.Reconnect()
	}
}

// nodesTorn breaks connections of nodes in the middle of what the relay writes.
func (s *soak) nodesTorn() {
	s.t.Helper()
	for range 4 {
		// All nodes may be away this moment.
		s.remote.Cut(string(failpoint.NodeConnection), s.random.IntN(len(s.fleet.nodes)), 1+s.random.IntN(3000))
	}
}

// nodesRestart has nodes begin anew, or take their next credential.
func (s *soak) nodesRestart() {
	s.t.Helper()
	for _, p := range s.some(2) {
		p.Restart()
	}
	i := s.random.IntN(len(s.fleet.nodes))
	credential := s.RotateNode(s.fleet.ids[i])
	s.fleet.beside.Go(func() {
		// A node that gave up waiting would not know which session it has got.
		ctx, cancel := within(answerWait)
		defer cancel()
		s.fleet.nodes[i].Rotate(ctx, credential) // who has no socket registers with it later
	})
}

// nodesStall has nodes take nothing for a while.
func (s *soak) nodesStall() {
	stalled := s.some(3)
	for _, p := range stalled {
		p.StopReading()
	}
	s.pause(100*time.Millisecond, 800*time.Millisecond)
	for _, p := range stalled {
		p.ResumeReading()
	}
}

// relayStalls has the relay wait with what it reads from nodes and writes to them.
func (s *soak) relayStalls() {
	s.t.Helper()
	which := control.Every
	if s.random.IntN(2) == 0 {
		which = s.random.IntN(len(s.fleet.nodes))
	}
	d := time.Duration(s.random.Int64N(int64(time.Second))) + 50*time.Millisecond
	s.remote.Stall(string(failpoint.NodeConnection), which, d)
	s.pause(d, d)
}

// certificate replaces the files of the origin's certificate.
func (s *soak) certificate() {
	s.t.Helper()
	s.installed = s.Issue(rig.Leaf{})
	s.InstallCertificate(s.installed)
	if s.random.IntN(2) == 0 {
		s.Signal(syscall.SIGHUP)
	}
}

// wantCertificate waits until a new connection is shown the certificate that was
// installed last, if any was.
func (s *soak) wantCertificate() {
	s.t.Helper()
	if s.installed.Certificate == nil {
		return
	}
	want, _ := pem.Decode(s.installed.Certificate)
	s.Eventually("the certificate that was installed last", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		conn, err := (&tls.Dialer{Config: s.ClientTLS()}).DialContext(ctx, "tcp4", s.ListenAddress())
		if err != nil {
			return err
		}
		defer conn.Close()
		if shown := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]; string(shown.Raw) != string(want.Bytes) {
			return errors.New("another one is shown")
		}
		return nil
	})
}

func (s *soak) reload() {
	for range 3 {
		s.Signal(syscall.SIGHUP)
	}
}

// clockSet sets the clock forth or back and, a moment later, right, while Cloudly is
// there, or is lost meanwhile.
func (s *soak) clockSet() {
	s.t.Helper()
	by := []time.Duration{2 * time.Minute, -2 * time.Minute, 20 * time.Second, -20 * time.Second}[s.random.IntN(4)]
	s.step(by)
	s.small()
	s.pause(0, 500*time.Millisecond)
	s.step(-by)
}

// ingressMoves has the ingress, its table and its counters asked for in a row.
func (s *soak) ingressMoves() {
	var all sync.WaitGroup
	all.Go(s.edge.traffic)
	s.edge.publish()
	if s.random.IntN(2) == 0 {
		s.edge.ingress.Reconnect()
	}
	s.edge.publish()
	all.Wait()
}
