package appliance

import (
	"context"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/listener"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// B035: attempts to reach Cloudly fail at each stage that a dial and a handshake
// have, in every way. Each gives back what it took.
func TestB035_EveryStageOfAnAttemptGivesBackWhatItTook(t *testing.T) {
	bubble(t, func(t *testing.T) {
		up := newLines()
		r := newRig(t, long(up))
		r.registered(0)
		f := r.fleet(1)
		// Once through all of it, so that what is made once has been made.
		f.failAtEachStage()
		before := f.weigh()
		for range 5 {
			f.failAtEachStage()
		}
		wantFlat(t, before, f.weigh(), 256<<10)
		if open, most := up.counts(); open != 1 || most != 1 {
			t.Errorf("%d connections to Cloudly, %d at once", open, most)
		}
		f.wantPeace()
	})
}

// failAtEachStage has attempts fail for two minutes at each stage in turn, and then
// succeed.
func (f *fleet) failAtEachStage() {
	cloudly := f.r.cloudly
	end := func(reach simulate.Reachability) {
		cloudly.SetReachability(reach)
		cloudly.CutSockets()
		time.Sleep(2 * time.Minute)
	}
	for _, reach := range []simulate.Reachability{
		simulate.Unreachable, simulate.Unavailable, simulate.Hanging, simulate.Dying, simulate.Mute,
	} {
		end(reach)
	}
	for _, method := range []string{
		contract.DefaultMethodExchangeIdentity, contract.MethodRegisterCloudlyClientSession, contract.MethodRegisterClusterRelay,
	} {
		for _, step := range []simulate.Step{
			simulate.Refuse("not today", nil), simulate.Ignore(), simulate.CutOff(), simulate.Respond([]byte(`{}`)),
			{Close: typedsocket.CloseRestart},
		} {
			cloudly.ScriptAlways(method, step)
			end(simulate.Serving)
			cloudly.ClearScript(method)
		}
	}
	f.wantRegistered(2*time.Minute + allBack)
	time.Sleep(2 * time.Minute)
}

// B005, B035, B106: strangers leave at each stage of a connection to the node
// listener. Each gives its place back.
func TestB005_B035_B106_EveryStageOfAConnectionGivesItsPlaceBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, long(newLines()))
		r.registered(0)
		f := r.fleet(1)
		r.leaveAtEachStage() // what is made once has been made
		time.Sleep(2 * time.Minute)
		before, shown := f.weigh(), r.relay.listener.Status().(listener.Status)
		for range 20 {
			r.leaveAtEachStage()
		}
		time.Sleep(2 * time.Minute) // deadlines of those that only hang
		after := r.relay.listener.Status().(listener.Status)
		if after.Sockets != shown.Sockets || after.Connections != shown.Connections || after.Unbound != 0 {
			t.Errorf("places: %+v %+v and %d unbound, before %+v %+v", after.Sockets, after.Connections, after.Unbound, shown.Sockets, shown.Connections)
		}
		if n := r.carries().Sockets; n != 1 {
			t.Errorf("%d sockets are known", n)
		}
		wantFlat(t, before, f.weigh(), 512<<10)
		if err := f.report(t, f.nodes[0], f.ids[0]); err != nil {
			t.Errorf("a report after that met %v", err)
		}
		f.wantPeace()
	})
}

// leaveAtEachStage connects as strangers do, and leaves or falls silent.
func (r *rig) leaveAtEachStage() {
	r.t.Helper()
	connect := func() net.Conn {
		conn, err := r.net.dial(r.soon(), "tcp", relayListens)
		if err != nil {
			r.t.Fatal(err)
		}
		return conn
	}
	trust := &tls.Config{RootCAs: certificates().pool, ServerName: originHost, Time: r.clock.now}
	secured := func() *tls.Conn {
		conn := tls.Client(connect(), trust)
		if err := conn.Handshake(); err != nil {
			r.t.Fatal(err)
		}
		return conn
	}
	connect().Close()
	connect() // and never a byte: its handshake has a deadline
	garbage := connect()
	io.WriteString(garbage, "GET / HTTP/1.1\r\n\r\n")
	garbage.Close()
	distrusts := tls.Client(connect(), &tls.Config{ServerName: originHost, Time: r.clock.now})
	if distrusts.Handshake() == nil {
		r.t.Error("a client without our authority trusts the certificate")
	}
	distrusts.Close()
	secured().Close()
	half := secured()
	io.WriteString(half, "GET / HTTP/1.1\r\nHost: ")
	half.Close()
	refused := secured()
	io.WriteString(refused, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // 426
	io.CopyN(io.Discard, refused, 16)
	refused.Close()
	for _, leave := range []func(*typedsocket.Socket){
		func(s *typedsocket.Socket) { s.Close(typedsocket.CloseNormal, "") },
		func(s *typedsocket.Socket) { s.Cut(typedsocket.CloseNormal, "") },
		func(s *typedsocket.Socket) { // a registration that Cloudly refuses
			_, err := s.Call(context.Background(), contract.MethodRegisterPalletRuntimeSession, []byte(`{"nodeId":"node-x"}`), typedsocket.CallOptions{})
			if err == nil {
				r.t.Error("a registration without anything was accepted")
			}
			s.Close(typedsocket.CloseNormal, "")
		},
	} {
		socket, err := typedsocket.Connect(r.soon(), typedsocket.Dial{URL: originText, TLS: trust, Net: r.net.dial})
		if err != nil {
			r.t.Fatal(err)
		}
		leave(socket)
		<-socket.Done()
	}
	synctest.Wait()
}

// B047: a thousand times a node asks to be registered with a credential that Cloudly
// refuses, on one socket after the other. It costs nothing that stays, and the
// other node nothing at all.
func TestB047_RefusedRegistrationsLeaveNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, long(newLines()))
		r.registered(0)
		f := r.fleet(1)
		stranger := newLines()
		p := r.dialling("node-stranger", func(c *simulate.PalletConfig) {
			c.RecordLimit = nodeRecord
			c.Credential.Generation++ // of which Cloudly knows nothing yet
			c.Dial, c.LastBackoff = stranger.through(c.Dial), time.Second
		})
		time.Sleep(10 * time.Minute)
		p.Frames().Forget()
		before := f.weigh()
		for range 4 {
			time.Sleep(10 * time.Minute)
			if err := f.report(t, f.nodes[0], f.ids[0]); err != nil {
				t.Errorf("the other node's report met %v", err)
			}
		}
		p.Frames().Forget()
		after := f.weigh()
		if n := len(stranger.dialled()); n < 80 {
			t.Errorf("it dialled %d times", n)
		}
		if s := r.carries(); len(s.Nodes) != 1 || s.Sockets > 2 {
			t.Errorf("%d nodes, %d sockets are known", len(s.Nodes), s.Sockets)
		}
		wantFlat(t, before, after, 256<<10)
		f.wantPeace()
	})
}

// B037: node, relay and Cloudly are restarted in turn, under load. Afterwards there
// is one connection to Cloudly and one of each node, whoever was restarted last.
func TestB037_WhicheverEndIsRestarted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		up := newLines()
		c := long(up)
		r := newRig(t, c)
		r.registered(0)
		f := r.fleet(3)
		restart := []func(){
			func() { f.nodes[random.IntN(3)].Restart() },
			func() { r.cloudly.Outage(); time.Sleep(time.Second); r.cloudly.Return() },
			func() {
				if err := r.halt(); err != nil {
					t.Error(err)
				}
				r.build(c)
				r.start()
			},
		}
		round := func() {
			stop := f.reporting(random, time.Second)
			for _, i := range random.Perm(3) {
				time.Sleep(time.Duration(random.Int64N(int64(10 * time.Second))))
				restart[i]()
			}
			f.wantRegistered(4 * time.Minute)
			stop()
			time.Sleep(2 * time.Minute)
			open, _ := up.counts()
			if nodes, _ := f.lines.counts(); open != 1 || nodes != 3 {
				t.Fatalf("%d connections to Cloudly, %d of 3 nodes", open, nodes)
			}
		}
		round()
		before := f.weigh()
		for range 10 {
			round()
		}
		after := f.weigh()
		acked, taken := f.wantBooks(t)
		t.Logf("%d reports acknowledged, %d taken, others met %v", acked, taken, f.told)
		wantFlat(t, before, after, 1<<20)
		f.wantPeace()
	})
}
