package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket/envelope"
)

const (
	reportSize = 500     // bytes of a report with its envelope
	batchSize  = 1 << 20 // of a batch

	// batchWindow is how many batches the flooding node has in flight: the next
	// one is on its way while the one before is answered, so it never rests.
	batchWindow = 2

	// muteEvery is how often the node that does not read asks for bulkAnswer, so
	// that the relay's bound for one node is met within a run, and pushEvery how
	// often Cloudly has something to tell it.
	muteEvery = 4 * time.Millisecond
	pushEvery = 20 * time.Millisecond
	pushSize  = 4 << 10
	// muteBuffer is what its kernel takes for it, as little as can be asked for.
	muteBuffer = 4 << 10

	// lateWait is how long answers may take that are missing when a run is over,
	// and dialWait a dial and a registration.
	lateWait = 15 * time.Second
	dialWait = 30 * time.Second
	// dialsAtOnce bounds the handshakes under way.
	dialsAtOnce = 16
)

// message is a request that is sent again and again under new ids.
type message struct {
	text []byte
	at   [2]int // where the two ids stand
}

// idDigits is how long an id is.
const idDigits = 8

// compose makes a request of size bytes of a node with this session.
func compose(method string, session []byte, size int) *message {
	id := strings.Repeat("0", idDigits)
	head := append(envelope.AppendRequestHead(nil, method), `{"session":`...)
	head = append(append(head, session...), `,"x":"`...)
	tail := envelope.AppendRequestTail([]byte(`"}`), id, id)
	text := append(head, bytes.Repeat([]byte("x"), max(0, size-len(head)-len(tail)))...)
	at := len(text)
	text = append(text, tail...)
	first := at + bytes.Index(text[at:], []byte(id))
	second := first + idDigits + bytes.Index(text[first+idDigits:], []byte(id))
	return &message{text, [2]int{first, second}}
}

// numbered returns the text with k as its ids. It is good until the next call.
func (m *message) numbered(k int) []byte {
	for _, at := range m.at {
		for i, rest := at+idDigits-1, k; i >= at; i, rest = i-1, rest/10 {
			m.text[i] = '0' + byte(rest%10)
		}
	}
	return m.text
}

var beginsID = []byte(`"correlation":{"id":"`)

// numberOf returns the id of an answer, -1 for what is none, and whether it is a
// failure.
func numberOf(text []byte) (k int, failed bool) {
	at := bytes.LastIndex(text, beginsID)
	if at < 0 || len(text) < at+len(beginsID)+idDigits {
		return -1, false
	}
	tail := text[at+len(beginsID):]
	k, err := strconv.Atoi(string(tail[:idDigits]))
	if err != nil {
		return -1, false
	}
	return k, bytes.Contains(tail, errorMember)
}

// fleet is 256 nodes behind one thing that is measured.
type fleet struct {
	address string
	pid     int // of what is measured
	tls     *tls.Config
	prefix  string  // of the nodes' ids
	crowd   []*node // all but the last one, which each run dials anew
}

// node is one node's socket with a session.
type node struct {
	conn   *websocket.Conn
	id     string
	report *message
	in     bytes.Buffer
}

// dialCrowd dials and registers all nodes but the last one.
func (f *fleet) dialCrowd(b *testing.B) {
	b.Helper()
	f.crowd = make([]*node, loadNodes-1)
	failures := make([]error, len(f.crowd))
	var wg sync.WaitGroup
	slots := make(chan struct{}, dialsAtOnce)
	for i := range f.crowd {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f.crowd[i], failures[i] = f.dial(i, 0)
		})
	}
	wg.Wait()
	b.Cleanup(func() {
		for _, n := range f.crowd {
			if n != nil {
				n.conn.CloseNow()
			}
		}
	})
	if err := errors.Join(failures...); err != nil {
		b.Fatal(err)
	}
}

// dial dials and registers one node, whose kernel takes buffer bytes for it, or
// what it wants when that is 0.
func (f *fleet) dial(i, buffer int) (*node, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialWait)
	defer cancel()
	n := &node{id: fmt.Sprintf("%s-%d", f.prefix, i)}
	transport := &http.Transport{TLSClientConfig: f.tls, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp4", f.address)
		if err == nil && buffer > 0 {
			err = conn.(*net.TCPConn).SetReadBuffer(buffer)
		}
		return conn, err
	}}
	var err error
	n.conn, _, err = websocket.Dial(ctx, "wss://"+rig.OriginHost+"/", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", n.id, err)
	}
	n.conn.SetReadLimit(-1)
	stop := context.AfterFunc(ctx, func() { n.conn.CloseNow() })
	defer stop()
	if err := n.register(); err != nil {
		n.conn.CloseNow()
		return nil, fmt.Errorf("register %s: %w", n.id, err)
	}
	return n, nil
}

func (n *node) register() error {
	request := simulate.NodeRegistration{NodeID: n.id, Credential: simulate.NodeCredential{Generation: 1, Token: "load"},
		Nonce: "00000000-0000-4000-8000-000000000000", Authorities: []string{}, Offer: simulate.DefaultOffer()}
	text := envelope.AppendRequestHead(nil, contract.MethodRegisterPalletRuntimeSession)
	text = envelope.AppendRequestTail(request.AppendJSON(text), "register", "register")
	if err := n.conn.Write(context.Background(), websocket.MessageText, text); err != nil {
		return err
	}
	answer, err := readInto(&n.in, n.conn)
	if err != nil {
		return err
	}
	var f envelope.Frame
	if err := envelope.Scan(answer, &f); err != nil {
		return err
	}
	if text, _, state := envelope.ReadError(f.Error); state != envelope.ErrorNone {
		return errors.New(text)
	}
	session, err := contract.ReadSessionBinding(f.Response, n.id)
	n.report = compose(reportMethod, session.Received, reportSize)
	return err
}

// send writes one request.
func (n *node) send(m *message, k int) error {
	return n.conn.Write(context.Background(), websocket.MessageText, m.numbered(k))
}

// receive reads the answer to one request.
func (n *node) receive() (k int, failed bool, err error) {
	text, err := readInto(&n.in, n.conn)
	if err != nil {
		return 0, false, err
	}
	k, failed = numberOf(text)
	return k, failed, nil
}

// openLoop sends a report at each of the times, whatever has become of those
// before, and returns how long after these times the answers were there: a
// report that leaves late because its node or the machine was busy counts from
// when it should have left.
func (n *node) openLoop(begin time.Time, due []time.Duration) (took []time.Duration, failed int, err error) {
	sent := make(chan error, 1)
	go func() {
		for k, at := range due {
			time.Sleep(time.Until(begin.Add(at)))
			if err := n.send(n.report, k); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	took = make([]time.Duration, 0, len(due))
	for range due {
		k, refused, err := n.receive()
		if err == nil && (k < 0 || k >= len(due)) {
			err = fmt.Errorf("an answer to nothing: %d", k)
		}
		if err != nil {
			n.conn.CloseNow() // so that sending ends as well
			<-sent
			return took, failed, fmt.Errorf("%s: %d of %d answers: %w", n.id, len(took), len(due), err)
		}
		took = append(took, time.Since(begin)-due[k])
		if refused {
			failed++
		}
	}
	return took, failed, <-sent
}

// closedLoop sends the next report when the one before is answered, until the
// time is up, and returns how many were.
func (n *node) closedLoop(until time.Time) (answered int, err error) {
	for k := 0; time.Now().Before(until); k++ {
		if err := n.send(n.report, k); err != nil {
			return answered, err
		}
		if _, failed, err := n.receive(); err != nil || failed {
			return answered, fmt.Errorf("%s: refused %t: %w", n.id, failed, err)
		}
		answered++
	}
	return answered, nil
}

// flood sends batches back to back until the time is up, waits for their answers,
// and returns how many there were within it.
func (n *node) flood(begin, until time.Time) (answered, failed int, err error) {
	batch := compose(batchMethod, sessionOf(n.id), batchSize)
	time.Sleep(time.Until(begin))
	for k, inFlight := 0, 0; ; inFlight-- {
		for ; inFlight < batchWindow && time.Now().Before(until); inFlight++ {
			if err := n.send(batch, k); err != nil {
				return answered, failed, fmt.Errorf("%s: %w", n.id, err)
			}
			k++
		}
		if inFlight == 0 {
			return answered, failed, nil
		}
		_, refused, err := n.receive()
		switch {
		case err != nil:
			return answered, failed, fmt.Errorf("%s: %w", n.id, err)
		case refused:
			failed++
		case time.Now().Before(until):
			answered++
		}
	}
}

// ask sends requests with large answers until the time is up or its socket is
// gone, and reads none of them.
func (n *node) ask(begin, until time.Time) (asked int) {
	question := compose(bulkMethod, sessionOf(n.id), reportSize)
	for next := begin; next.Before(until); next = next.Add(muteEvery) {
		time.Sleep(time.Until(next))
		if n.send(question, asked) != nil {
			return asked
		}
		asked++
	}
	return asked
}
