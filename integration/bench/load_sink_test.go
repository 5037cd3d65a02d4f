package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket/envelope"
)

// Methods of the load. The relay forwards each and reads no body.
const (
	reportMethod = "reportRuntimeAssignmentObservation" // answered in few bytes
	batchMethod  = "reportRuntimeAssignmentLogs"        // answered in few bytes
	bulkMethod   = "reportRuntimeNetworkProtection"     // answered with bulkAnswer
	pushMethod   = "applyRuntimeAssignment"             // Cloudly's, to a node
)

// bulkAnswer is how many bytes a node that does not read is answered with: some
// of them fill every buffer on the way.
const bulkAnswer = 64 << 10

// registerWait is far more than a relay needs to start and register.
const registerWait = 30 * time.Second

// sink is Cloudly's end of the load, and as light as it can be, since it shares
// the machine with what is measured: it accepts every registration on every
// socket, the relay's and the nodes' own, and answers every report at once.
type sink struct {
	address string
	origin  string // of the relay
	bulk    []byte

	// registered is told when a registration of the relay was accepted.
	registered chan time.Time
	// answered and refused count the answers to pushes.
	answered, refused atomic.Int64

	server *http.Server
	work   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[*websocket.Conn]struct{}
	relay  *websocket.Conn            // which the relay registered on last
	nodes  map[string]*websocket.Conn // which a node registered on last, by its id
}

// newSink serves on a port of its own under the rig's authority, and becomes the
// Cloudly of a relay that is not started yet.
func newSink(b *testing.B, r *rig.Rig) *sink {
	b.Helper()
	// One certificate for both names, so that a node behind the proxy dials as one
	// behind the relay does.
	pair, err := r.Authority.Issue(rig.Leaf{Names: []string{rig.OriginHost}, Addresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		b.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		b.Fatal(err)
	}
	listener, err := tls.Listen("tcp4", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}})
	if err != nil {
		b.Fatal(err)
	}
	s := &sink{
		address: listener.Addr().String(), origin: r.Origin(), bulk: []byte(`{"x":"` + strings.Repeat("y", bulkAnswer) + `"}`),
		registered: make(chan time.Time, 16),
		conns:      map[*websocket.Conn]struct{}{}, nodes: map[string]*websocket.Conn{},
	}
	s.server = &http.Server{Handler: http.HandlerFunc(s.serve)}
	s.work.Go(func() { s.server.Serve(listener) })
	b.Cleanup(s.close)
	r.Set("cloudly-url", "https://"+s.address)
	return s
}

func (s *sink) close() {
	s.server.Close()
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.CloseNow()
	}
	s.mu.Unlock()
	s.work.Wait()
}

// cut breaks the relay's socket. A new one is served at once.
func (s *sink) cut() {
	s.mu.Lock()
	c := s.relay
	s.mu.Unlock()
	c.CloseNow()
}

// waitRegistered waits for a registration of the relay and returns when it was
// accepted.
func (s *sink) waitRegistered(b *testing.B) time.Time {
	b.Helper()
	select {
	case at := <-s.registered:
		return at
	case <-time.After(registerWait):
		b.Fatalf("the relay has not registered within %s", registerWait)
		return time.Time{}
	}
}

// forgetRegistrations makes waitRegistered wait for one to come.
func (s *sink) forgetRegistrations() {
	for {
		select {
		case <-s.registered:
		default:
			return
		}
	}
}

// keep takes a socket over, unless the sink is closed.
func (s *sink) keep(c *websocket.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = struct{}{}
	s.work.Add(1)
	return true
}

func (s *sink) serve(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return
	}
	defer c.CloseNow()
	if !s.keep(c) {
		return
	}
	defer s.work.Done()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
	}()
	c.SetReadLimit(-1)
	var in bytes.Buffer
	var out []byte
	for {
		text, err := readInto(&in, c)
		if err != nil {
			return
		}
		if out = s.answer(out[:0], c, text); len(out) == 0 {
			continue
		}
		if c.Write(context.Background(), websocket.MessageText, out) != nil {
			return
		}
	}
}

// readInto reads one message into memory that is used again.
func readInto(in *bytes.Buffer, c *websocket.Conn) ([]byte, error) {
	_, r, err := c.Reader(context.Background())
	if err != nil {
		return nil, err
	}
	in.Reset()
	_, err = in.ReadFrom(r)
	return in.Bytes(), err
}

var (
	beginsMethod   = []byte(`{"method":"`)
	beginsTail     = []byte(`,"requestInstanceId":`)
	requestPhase   = []byte(`"phase":"request"`)
	responsePhase  = []byte(`"phase":"response"`)
	errorMember    = []byte(`"error":`)
	reportAccepted = []byte(`{"status":"accepted"}`)
)

// answer appends the answer to a message, or nothing when there is none. Load is
// not parsed: its envelopes are spelled as the relay and the nodes here do.
func (s *sink) answer(dst []byte, c *websocket.Conn, text []byte) []byte {
	method, ok := bytes.CutPrefix(text, beginsMethod)
	end := bytes.IndexByte(method, '"')
	if !ok || end < 0 {
		return dst
	}
	tail := text[max(0, bytes.LastIndex(text, beginsTail)):]
	body := reportAccepted
	switch string(method[:end]) {
	case reportMethod, batchMethod:
	case bulkMethod:
		body = s.bulk
	case pushMethod:
		if bytes.Contains(tail, errorMember) {
			s.refused.Add(1)
		} else {
			s.answered.Add(1)
		}
		return dst
	default:
		return s.control(dst, c, text)
	}
	dst = envelope.AppendResponseHead(dst, string(method[:end]))
	dst = append(dst, body...)
	return append(dst, bytes.Replace(tail, requestPhase, responsePhase, 1)...)
}

// control answers what is not load.
func (s *sink) control(dst []byte, c *websocket.Conn, text []byte) []byte {
	var f envelope.Frame
	if envelope.Scan(text, &f) != nil || f.Kind() != envelope.KindRequest {
		return dst
	}
	method := string(f.Method)
	body := s.controlAnswer(method, c, &f)
	dst = envelope.AppendResponseHead(dst, method)
	if body == nil {
		dst = append(dst, "null"...)
		refusal := envelope.AppendError(nil, "There is no available method for this call on the server side", nil)
		return envelope.AppendResponseTail(dst, f.IDToken, f.InstanceToken, refusal, nil)
	}
	dst = append(dst, body...)
	return envelope.AppendResponseTail(dst, f.IDToken, f.InstanceToken, nil, nil)
}

// controlAnswer returns nil for a method that this Cloudly does not have.
func (s *sink) controlAnswer(method string, c *websocket.Conn, f *envelope.Frame) []byte {
	switch method {
	case contract.DefaultMethodExchangeIdentity:
		return fmt.Appendf(nil, `{"identity":{"name":"cluster-a","userId":"relay-cluster-a","type":"machine","role":"cluster","expiresAt":%d,"jwt":"load.load.load"}}`,
			time.Now().Add(time.Hour).UnixMilli())
	case contract.MethodRegisterCloudlyClientSession:
		return contract.ClientSessionAnswer{Protocol: simulate.DefaultOffer()}.AppendJSON(nil)
	case contract.MethodRegisterClusterRelay:
		s.mu.Lock()
		s.relay = c
		s.mu.Unlock()
		select {
		case s.registered <- time.Now():
		default:
		}
		record := contract.Reference{ID: "record-1", Generation: 1, Digest: "sha256:" + strings.Repeat("0", 64)}
		return contract.RelayRegistrationAnswer{Origin: s.origin, Protocol: simulate.DefaultOffer(),
			Credential: record, AcceptedRegistration: record}.AppendJSON(nil)
	case contract.DefaultMethodGetConfiguration:
		return fmt.Appendf(nil, `{"configData":{"id":"cluster-a","data":{"name":"cluster-a","relay":{"origin":%q},"nodes":[]}},"services":[]}`, s.origin)
	case contract.MethodGetVPNNetwork:
		return contract.GetVPNNetworkAnswer{}.AppendJSON(nil)
	case contract.MethodGetRouteTable:
		return contract.RouteTableAnswer{}.AppendJSON(nil)
	case contract.MethodRegisterPalletRuntimeSession:
		id := string(f.Body.NodeID)
		s.mu.Lock()
		s.nodes[id] = c
		s.mu.Unlock()
		answer := append([]byte(`{"session":`), sessionOf(id)...)
		answer = append(answer, `,"protocol":`...)
		return append(simulate.DefaultOffer().AppendJSON(answer), '}')
	}
	return nil
}

// sessionOf is the binding that a node gets, the same each time.
func sessionOf(id string) []byte {
	return fmt.Appendf(nil, `{"controller":{"kind":"cloudly"},"clusterId":"cluster-a","nodeId":%q,"runtimeNamespace":"default","credentialGeneration":1,"sessionEpoch":1}`, id)
}

// push sends a node requests of a size until the time is up or its socket is
// gone, and waits for no answer.
func (s *sink) push(id string, size int, every time.Duration, until time.Time) {
	s.mu.Lock()
	c := s.nodes[id]
	s.mu.Unlock()
	text := compose(pushMethod, sessionOf(id), size)
	for k := 0; c != nil && time.Now().Before(until); k++ {
		if c.Write(context.Background(), websocket.MessageText, text.numbered(k)) != nil {
			return
		}
		time.Sleep(every)
	}
}
