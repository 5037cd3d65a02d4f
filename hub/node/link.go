package node

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/duty/field"
	"serve.zone/relay/hub/tunnel"
)

// link is one tunnel that is up.
type link struct {
	client  *Client
	conn    *quic.Conn
	stream  *quic.Stream
	session *tunnel.Session
	joiner  *tunnel.Joiner
	sender  sender

	splitter tunnel.Splitter // of all that is sent here
	checker  *checker
	mover    *mover

	limit   atomic.Int64 // bytes that a datagram to the hub holds
	hubSize atomic.Int64 // bytes that the hub says a datagram to the node holds
}

// attempt dials the hub once, keeps the tunnel for as long as it stands, and returns how
// it ended.
func (c *Client) attempt(ctx context.Context) event {
	c.mu.Lock()
	credential := c.credential
	c.mu.Unlock()
	socket, err := c.listen(ctx, credential.Hub.Addr())
	if err != nil {
		c.log.Warn("node-no-socket", field.Error(err))
		return event{kind: ended, reason: NoSocket}
	}
	defer socket.Close()
	transport := tunnel.NodeTransport(socket)
	defer transport.Close()

	dialling, cancel := context.WithTimeout(ctx, tunnel.HandshakeLimit)
	defer cancel()
	conn, err := transport.Dial(dialling, net.UDPAddrFromAddrPort(credential.Hub), tunnel.NodeTLS(), tunnel.NodeQUIC())
	if err != nil {
		return failed(err)
	}
	// Every other way than a panic has closed it by then. The transport's end tells nobody.
	defer conn.CloseWithError(tunnel.CloseInternal.QUIC(), tunnel.CloseInternal.String())
	c.step(event{kind: connected})
	l, err := c.handshake(dialling, conn, credential)
	if err != nil {
		code := tunnel.CloseCodeFor(err)
		if ctx.Err() != nil {
			code = tunnel.CloseDone
		}
		conn.CloseWithError(code.QUIC(), code.String())
		return failed(err)
	}
	if err := c.configure(settingsOf(l.session.Answer())); err != nil {
		c.log.Warn("node-device-refused", field.Error(err))
		l.leave(tunnel.CloseDone)
		return event{kind: ended, reason: DeviceRefused}
	}
	l.mover.from = transport
	defer l.mover.close()
	return l.keep(ctx)
}

func failed(err error) event { return event{kind: ended, reason: reasonOf(err, false)} }

// handshake runs the tunnel's handshake on a stream of its own.
func (c *Client) handshake(ctx context.Context, conn *quic.Conn, credential Credential) (*link, error) {
	stream, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	// The handshake waits in the stream alone; the context's deadline becomes the stream's.
	stop := context.AfterFunc(ctx, func() { stream.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	initiator := tunnel.Initiator{
		Static: credential.Key, Hub: credential.HubKey, AuthorityID: credential.AuthorityID,
		Offer: tunnel.Offer{
			Versions: []uint8{tunnel.Version},
			InnerMTU: tunnel.MaxInnerMTU,
			Lanes:    []tunnel.Lane{tunnel.LaneDatagram},
		},
	}
	session, err := initiator.Handshake(stream, tunnel.ExporterOf(conn))
	if err != nil {
		return nil, err
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	stream.SetDeadline(time.Time{})
	l := &link{client: c, conn: conn, stream: stream, session: session, mover: newMover(c, conn, credential.Hub.Addr())}
	mtu := int(session.Answer().InnerMTU)
	l.joiner = tunnel.NewJoiner(mtu)
	l.sender = sender{lane: conn, limit: &l.limit, splitter: &l.splitter, traffic: &c.traffic}
	l.checker = newChecker(l)
	return l, nil
}

// configure tells the device what is new.
func (c *Client) configure(s Settings) error {
	device, ok := c.device.(Configurer)
	if !ok || s == c.configured {
		return nil
	}
	if err := device.Configure(s); err != nil {
		return err
	}
	c.configured = s
	return nil
}

// keep keeps a tunnel until it ends.
func (l *link) keep(ctx context.Context) event {
	c := l.client
	l.measure()
	c.traffic.drop(DropOutLost, c.out.clear()) // what came while the tunnel before ended
	c.mu.Lock()
	c.link = l
	c.mu.Unlock()
	c.mtu.Store(int64(l.session.Answer().InnerMTU))
	c.step(event{kind: confirmed})

	gone := make(chan event, 1)
	var workers sync.WaitGroup
	workers.Go(func() { gone <- c.part(l.listen) })
	for _, run := range []func(){l.receive, l.send, l.checker.run, l.mover.run} {
		workers.Go(func() { c.guarded(run) })
	}
	end := c.part(func() event { return l.watch(ctx, gone) })
	l.conn.CloseWithError(tunnel.CloseDone.QUIC(), tunnel.CloseDone.String())
	workers.Wait()

	c.mtu.Store(0)
	c.traffic.drop(DropOutLost, c.out.clear())
	stats := l.joiner.Stats()
	c.mu.Lock()
	c.traffic.expired.Add(stats.Expired)
	c.traffic.evicted.Add(stats.Evicted)
	c.link = nil
	c.mu.Unlock()
	return end
}

// watch does what is due now and then, until the hub or the context ends the tunnel. It
// alone writes on the stream.
func (l *link) watch(ctx context.Context, gone <-chan event) event {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	told := int64(0)
	for {
		if size := l.limit.Load(); size != told {
			told = size
			if err := l.tell(tunnel.Path{Lane: tunnel.LaneDatagram, Size: uint16(min(size, 0xffff))}); err != nil {
				return l.stuck(gone)
			}
		}
		select {
		case end := <-gone:
			return end
		case <-ctx.Done():
			l.leave(tunnel.CloseDone)
			return event{kind: stopped}
		case now := <-ticker.C:
			l.joiner.Expire(now)
			l.measure()
			l.checker.look(now)
		}
	}
}

// stuck tells why a message could not be written: the connection is gone, or the hub reads
// nothing.
func (l *link) stuck(gone <-chan event) event {
	if l.conn.Context().Err() != nil {
		return <-gone
	}
	return event{kind: ended, reason: HubStuck}
}

func (l *link) tell(m tunnel.Message) error {
	l.stream.SetWriteDeadline(time.Now().Add(controlWait))
	return tunnel.WriteMessage(l.stream, m)
}

// leave tells the hub that the node goes, and gives it a moment to hear it: what closes the
// connection is not sent again when it is lost.
func (l *link) leave(code tunnel.CloseCode) {
	l.stream.SetWriteDeadline(time.Now().Add(farewell))
	if tunnel.WriteMessage(l.stream, tunnel.Close{Code: code}) == nil {
		timer := time.NewTimer(farewell)
		defer timer.Stop()
		select {
		case <-l.conn.Context().Done():
		case <-timer.C:
		}
	}
	l.conn.CloseWithError(code.QUIC(), code.String())
}

// listen reads the hub's messages until the tunnel ends, and says how it did.
func (l *link) listen() event {
	control := l.session.Control(l.stream)
	for {
		message, err := control.Next()
		switch m := message.(type) {
		case tunnel.Path:
			l.hubSize.Store(int64(m.Size))
			l.checker.told.Add(1)
		case tunnel.Close:
			return event{kind: ended, reason: reasonOfCode(m.Code), after: m.RetryAfter}
		}
		if err != nil {
			code := tunnel.CloseCodeFor(err)
			// Where the connection has ended already this does nothing.
			l.conn.CloseWithError(code.QUIC(), code.String())
			return event{kind: ended, reason: reasonOf(err, true)}
		}
	}
}

// oversize is longer than any datagram can be.
var oversize [1 << 16]byte

// measure asks QUIC how much a datagram holds on the path as it is now: there is no other
// way than to offer it one that never fits.
func (l *link) measure() {
	if size, ok := tooLarge(l.conn.SendDatagram(oversize[:])); ok {
		l.limit.Store(size)
	}
}

// tooLarge returns how much a datagram may hold, if that is what an error says.
func tooLarge(err error) (size int64, ok bool) {
	var large *quic.DatagramTooLargeError
	if !errors.As(err, &large) {
		return 0, false
	}
	return large.MaxDatagramPayloadSize, true
}
