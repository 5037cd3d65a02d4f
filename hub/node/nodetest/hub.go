package nodetest

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
)

// AuthorityID is that of every hub here.
const AuthorityID = "runtime-network-authority/test"

// HubAddress is every hub's address in the control prefix. A packet that a node sends there
// comes back as it is, but for an echo request, which is answered.
var HubAddress = netip.MustParseAddr("10.200.0.1")

// A Member is who may connect.
type Member struct {
	Control  netip.Prefix
	Workload netip.Addr
}

// A Hub listens on one socket. Its methods may be called from any goroutine.
type Hub struct {
	// Sessions gets every session that was confirmed, as long as there is room.
	Sessions chan *Session

	responder tunnel.Responder
	transport *quic.Transport
	listener  *quic.Listener
	ctx       context.Context
	cancel    context.CancelFunc
	running   sync.WaitGroup

	mu       sync.Mutex
	members  map[contract.NoiseKey]Member
	terms    tunnel.Terms
	refusal  tunnel.CloseCode // of every first message, unless CloseDone
	mute     bool
	sessions map[netip.Addr]*Session // by workload address
	refused  int
}

// Listen starts a hub on a socket, which Close closes.
func Listen(socket net.PacketConn, key tunnel.PrivateKey) (*Hub, error) {
	certificate, err := tunnel.NewCertificate()
	if err != nil {
		return nil, err
	}
	h := &Hub{
		Sessions:  make(chan *Session, 64),
		responder: tunnel.Responder{Static: key, AuthorityID: AuthorityID},
		transport: tunnel.HubTransport(socket, key),
		members:   map[contract.NoiseKey]Member{},
		sessions:  map[netip.Addr]*Session{},
		terms:     tunnel.DatagramTerms(),
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	if h.listener, err = h.transport.Listen(tunnel.HubTLS(certificate, nil), tunnel.HubQUIC()); err != nil {
		h.cancel()
		return nil, err
	}
	h.running.Go(h.accept)
	return h, nil
}

// Admit lets a key in, from now on.
func (h *Hub) Admit(key contract.NoiseKey, m Member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.members[key] = m
}

// Refuse answers every first message with a close code. CloseDone ends that.
func (h *Hub) Refuse(code tunnel.CloseCode) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusal = code
}

// Mute keeps the hub from answering any first message.
func (h *Hub) Mute() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mute = true
}

// SetTerms changes what new nodes are answered.
func (h *Hub) SetTerms(t tunnel.Terms) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.terms = t
}

// Refused returns how many first messages were refused.
func (h *Hub) Refused() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refused
}

// Close ends the hub as a program that is killed does: no node hears of it.
func (h *Hub) Close() {
	h.cancel()
	socket := h.transport.Conn
	socket.Close()
	h.listener.Close()
	h.transport.Close()
	h.running.Wait()
}

func (h *Hub) accept() {
	for {
		conn, err := h.listener.Accept(h.ctx)
		if err != nil {
			return
		}
		h.running.Go(func() { h.serve(conn) })
	}
}

func (h *Hub) serve(conn *quic.Conn) {
	session, err := h.handshake(conn)
	if err != nil {
		code := tunnel.CloseCodeFor(err)
		var refusal refusal
		if errors.As(err, &refusal) {
			code = tunnel.CloseCode(refusal)
		}
		h.mu.Lock()
		h.refused++
		h.mu.Unlock()
		conn.CloseWithError(code.QUIC(), code.String())
		return
	}
	h.mu.Lock()
	h.sessions[session.Member.Workload] = session
	h.mu.Unlock()
	select {
	case h.Sessions <- session:
	default:
	}
	h.running.Go(session.listen)
	session.receive(h)
}

type refusal tunnel.CloseCode

func (r refusal) Error() string { return tunnel.CloseCode(r).String() }

func (h *Hub) handshake(conn *quic.Conn) (*Session, error) {
	ctx, cancel := context.WithTimeout(h.ctx, tunnel.HandshakeLimit)
	defer cancel()
	stream, err := conn.AcceptStream(ctx)
	if err != nil {
		return nil, err
	}
	stream.SetDeadline(time.Now().Add(tunnel.HandshakeLimit))
	request, err := h.responder.Receive(stream, tunnel.ExporterOf(conn))
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	member, admitted := h.members[request.Peer()]
	terms, code, mute := h.terms, h.refusal, h.mute
	h.mu.Unlock()
	switch {
	case mute:
		<-conn.Context().Done()
		return nil, context.Cause(conn.Context())
	case code != tunnel.CloseDone:
		return nil, refusal(code)
	case !admitted:
		return nil, refusal(tunnel.CloseNotAdmitted)
	}
	answer, err := terms.Negotiate(request.Offer())
	if err != nil {
		return nil, err
	}
	answer.ControlAddress, answer.HubAddress = member.Control, HubAddress
	session, err := request.Answer(stream, answer)
	if err != nil {
		return nil, err
	}
	control := session.Control(stream)
	if _, err := control.Next(); err != nil {
		return nil, err
	}
	stream.SetDeadline(time.Time{})
	return &Session{
		Conn: conn, Stream: stream, Member: member, Messages: make(chan tunnel.Message, 64),
		control: control, joiner: tunnel.NewJoiner(int(answer.InnerMTU)),
		outlet: make(chan []byte, 512),
	}, nil
}

func (h *Hub) to(addr netip.Addr) *Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[addr]
}

// A Session is a node that is connected.
type Session struct {
	Conn     *quic.Conn
	Stream   *quic.Stream
	Member   Member
	Messages chan tunnel.Message // what the node said, as long as there is room

	control  *tunnel.Control
	joiner   *tunnel.Joiner
	splitter tunnel.Splitter
	outlet   chan []byte
	whole    atomic.Bool
}

// CloseWith tells the node why and closes the connection a moment later, as the hub does.
func (s *Session) CloseWith(code tunnel.CloseCode, after time.Duration) error {
	err := tunnel.WriteMessage(s.Stream, tunnel.Close{Code: code, RetryAfter: after})
	time.AfterFunc(time.Second, func() { s.Conn.CloseWithError(code.QUIC(), code.String()) })
	return err
}

// Whole has packets sent whole from now on where QUIC takes them.
func (s *Session) Whole() { s.whole.Store(true) }

// Tell tells the node how much a datagram to it holds, as the hub does.
func (s *Session) Tell(size int) error {
	return tunnel.WriteMessage(s.Stream, tunnel.Path{Lane: tunnel.LaneDatagram, Size: uint16(size)})
}

// Drop closes the connection without a word on the stream.
func (s *Session) Drop(code tunnel.CloseCode) { s.Conn.CloseWithError(code.QUIC(), code.String()) }

func (s *Session) listen() {
	for {
		m, err := s.control.Next()
		if err != nil {
			close(s.Messages)
			return
		}
		select {
		case s.Messages <- m:
		default:
		}
		if m, ok := m.(tunnel.Close); ok {
			s.Drop(m.Code)
		}
	}
}

func (s *Session) receive(h *Hub) {
	h.running.Go(s.send)
	var scratch [tunnel.MaxInnerMTU]byte
	for {
		datagram, err := s.Conn.ReceiveDatagram(h.ctx)
		if err != nil {
			return
		}
		packet, _ := s.joiner.Take(datagram, &scratch, time.Now())
		if packet == nil {
			continue
		}
		to := s
		if destination := netip.AddrFrom4([4]byte(packet[16:])); destination != HubAddress {
			to = h.to(destination)
		} else if len(packet) >= 28 && packet[9] == 1 && packet[20] == 8 {
			policy.AnswerEcho(packet)
		}
		if to != nil {
			to.Send(packet)
		}
	}
}

// give hands a packet to QUIC, in two parts where a datagram does not hold it.
func (s *Session) give(packet []byte, limit int, bufs *[2][]byte) error {
	first, second, err := s.splitter.Split(packet, limit, bufs)
	if err != nil {
		return nil // it is dropped
	}
	err = s.Conn.SendDatagram(first)
	var large *quic.DatagramTooLargeError
	if errors.As(err, &large) {
		return s.give(packet, min(limit-1, int(large.MaxDatagramPayloadSize)), bufs)
	}
	if err == nil && second != nil {
		err = s.Conn.SendDatagram(second)
	}
	return err
}

// Send sends the node a packet, or drops it.
func (s *Session) Send(packet []byte) {
	select {
	case s.outlet <- append([]byte(nil), packet...):
	default:
	}
}

func (s *Session) send() {
	limit := 1100 // less than the least that QUIC begins with, until Whole
	var bufs [2][]byte
	for {
		select {
		case <-s.Conn.Context().Done():
			return
		case packet := <-s.outlet:
			if s.whole.Load() {
				limit = tunnel.MaxInnerMTU
			}
			if err := s.give(packet, limit, &bufs); err != nil {
				return
			}
		}
	}
}
