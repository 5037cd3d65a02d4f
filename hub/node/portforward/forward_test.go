package portforward

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/hub/node/userspace"
)

// halves is one end of a connection inside the process: two pipes, so that each
// direction ends by itself, as TCP's do.
type halves struct {
	in, out net.Conn
}

// connection returns both ends of one.
func connection() (a, b *halves) {
	there, here := net.Pipe()
	back, forth := net.Pipe()
	return &halves{in: back, out: there}, &halves{in: here, out: forth}
}

func (h *halves) Read(b []byte) (int, error)         { return h.in.Read(b) }
func (h *halves) Write(b []byte) (int, error)        { return h.out.Write(b) }
func (h *halves) CloseWrite() error                  { return h.out.Close() }
func (h *halves) Close() error                       { return errors.Join(h.in.Close(), h.out.Close()) }
func (h *halves) LocalAddr() net.Addr                { return h.in.LocalAddr() }
func (h *halves) RemoteAddr() net.Addr               { return h.in.RemoteAddr() }
func (h *halves) SetReadDeadline(t time.Time) error  { return h.in.SetReadDeadline(t) }
func (h *halves) SetWriteDeadline(t time.Time) error { return h.out.SetWriteDeadline(t) }
func (h *halves) SetDeadline(t time.Time) error {
	return errors.Join(h.in.SetDeadline(t), h.out.SetDeadline(t))
}

// listener gives out what a test sends it, or fails as it says.
type listener struct {
	conns  chan net.Conn
	errs   chan error
	closed chan struct{}
	once   sync.Once
}

func newListener() *listener {
	return &listener{conns: make(chan net.Conn), errs: make(chan error), closed: make(chan struct{})}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case err := <-l.errs:
		if err == errPanic {
			panic(marker)
		}
		return nil, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *listener) Close() error { l.once.Do(func() { close(l.closed) }); return nil }
func (*listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7} }

// service is what a rule's Dial leads to.
type service struct {
	conns chan net.Conn // the service's ends
	fail  error
	hangs bool // a dial waits for its context
	wrong any  // a dial panics with it
	wrap  func(net.Conn) net.Conn
}

func (s *service) dial(ctx context.Context) (net.Conn, error) {
	if s.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s.wrong != nil {
		panic(s.wrong)
	}
	if s.fail != nil {
		return nil, s.fail
	}
	here, there := connection()
	s.conns <- there
	if s.wrap != nil {
		return s.wrap(here), nil
	}
	return here, nil
}

// rig is a Forwarder that runs with one rule.
type rig struct {
	*Forwarder
	listener *listener
	service  *service
	log      *bytes.Buffer
	stop     func() // ends Run and waits for it
}

func run(t *testing.T) *rig {
	r := &rig{listener: newListener(), service: &service{conns: make(chan net.Conn, MaxConnections)}, log: &bytes.Buffer{}}
	var mu sync.Mutex
	log := duty.NewLogger(duty.LogConfig{Level: -4, Out: writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return r.log.Write(b)
	})})
	r.Forwarder = New(log, Rule{r.listener, r.service.dial})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); r.Run(ctx) }()
	r.stop = func() { cancel(); <-ended }
	t.Cleanup(r.stop)
	return r
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// connect makes a connection to the rule's listener and returns its client's end.
func (r *rig) connect() net.Conn {
	near, client := connection()
	r.listener.conns <- near
	return client
}

// ended fails the test unless a connection has been closed from the other side.
func ended(t *testing.T, what string, conn net.Conn) {
	t.Helper()
	synctest.Wait()
	conn.SetReadDeadline(time.Now())
	if n, err := conn.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s stands: %v", what, err)
	}
}

// B200: what counts is data. Both directions carry what they were given, whole, in any
// pieces, and each ends by itself.
func TestB200_BothDirectionsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		client := r.connect()
		server := <-r.service.conns
		const size = 3*bufferSize + 7
		question, answer := make([]byte, size), make([]byte, size)
		rand.Read(question)
		rand.Read(answer)

		go func() {
			for rest := question; len(rest) > 0; {
				n := min(len(rest), 1000)
				client.Write(rest[:n])
				rest = rest[n:]
			}
			client.(*halves).CloseWrite()
		}()
		got, err := io.ReadAll(server) // to its end, with the other direction still open
		if err != nil || !bytes.Equal(got, question) {
			t.Fatalf("%d bytes came: %v", len(got), err)
		}
		go func() {
			server.Write(answer)
			server.(*halves).CloseWrite()
		}()
		if got, err = io.ReadAll(client); err != nil || !bytes.Equal(got, answer) {
			t.Fatalf("%d bytes came back: %v", len(got), err)
		}
		synctest.Wait()
		if c := r.Counts(); c != (Counts{Taken: 1, Bytes: 2 * size}) {
			t.Errorf("%+v", c)
		}
	})
}

// An end that goes takes the other with it, in either direction.
func TestOneEndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		client := r.connect()
		server := <-r.service.conns
		client.Close()
		synctest.Wait()
		server.Write([]byte("x")) // nobody is there to take it
		ended(t, "the server's end", server)

		client = r.connect()
		server = <-r.service.conns
		server.Close()
		synctest.Wait()
		client.Write([]byte("x"))
		ended(t, "the client's end", client)
		if c := r.Counts(); c.Open != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// A connection ends an hour after the last byte, whichever way it went, and not before.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		client := r.connect()
		server := <-r.service.conns
		one := make([]byte, 1)
		for range 5 { // one direction rests all the time
			time.Sleep(IdleWait - time.Second)
			if _, err := client.Write(one); err != nil {
				t.Fatal(err)
			}
			if _, err := server.Read(one); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(IdleWait - time.Second)
		synctest.Wait()
		if c := r.Counts(); c.Open != 1 {
			t.Errorf("ended early: %+v", c)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if c := r.Counts(); c.Open != 0 || c.Bytes != 5 {
			t.Errorf("stands: %+v", c)
		}
		ended(t, "the client's end", client)
		ended(t, "the server's end", server)
	})
}

// A client that has said all and hears nothing more is let go too.
func TestIdle_HalfClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		client := r.connect()
		server := <-r.service.conns
		client.(*halves).CloseWrite()
		if _, err := server.Read(make([]byte, 1)); err != io.EOF {
			t.Fatal(err)
		}
		time.Sleep(IdleWait + time.Second)
		synctest.Wait()
		if c := r.Counts(); c.Open != 0 {
			t.Errorf("stands: %+v", c)
		}
	})
}

// Who is not there is waited for ten seconds, and costs nobody else anything.
func TestDialling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		r.service.hangs = true
		client := r.connect()
		synctest.Wait()
		time.Sleep(DialWait - time.Millisecond)
		synctest.Wait()
		if c := r.Counts(); c.Open != 1 {
			t.Errorf("given up early: %+v", c)
		}
		time.Sleep(2 * time.Millisecond)
		ended(t, "a client whose service does not answer", client)

		r.service.hangs, r.service.fail = false, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		ended(t, "a client whose service refuses", r.connect())
		if c := r.Counts(); c != (Counts{Taken: 2, Failed: 2}) {
			t.Errorf("%+v", c)
		}
		for _, why := range []string{"timeout", "refused"} {
			if n := len(r.lines(`"level":"INFO"`, `"port-forward-failed"`, `"reason":"`+why+`"`)); n != 1 {
				t.Errorf("it fails by %s %d times:\n%s", why, n, r.log)
			}
		}
	})
}

// There are as many connections as the bound says; those beyond it are closed at once,
// and a place that is given back is taken again.
func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		first := r.connect()
		server := <-r.service.conns
		for range MaxConnections - 1 {
			r.connect()
		}
		synctest.Wait()
		ended(t, "one too many", r.connect())
		if c := r.Counts(); c != (Counts{Taken: MaxConnections + 1, Refused: 1, Open: MaxConnections}) {
			t.Errorf("%+v", c)
		}
		first.Close()
		server.Close()
		synctest.Wait()
		r.connect()
		synctest.Wait()
		if c := r.Counts(); c.Open != MaxConnections || c.Refused != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// The end takes everything with it, at once: what is open, what is dialled, and who
// listens.
func TestTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		client := r.connect()
		server := <-r.service.conns
		r.service.hangs = true
		dialling := r.connect()
		synctest.Wait()
		begin := time.Now()
		r.stop()
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("it took %v", waited)
		}
		for what, conn := range map[string]net.Conn{"the client's end": client, "the server's": server, "one whose service was dialled": dialling} {
			ended(t, what, conn)
		}
		select {
		case <-r.listener.closed:
		default:
			t.Error("the listener is open")
		}
		if c := r.Counts(); c.Open != 0 || c.Failed != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// A machine that is short of descriptors is asked again, and a listener that has ended
// is not.
func TestListenerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		for range 3 {
			begin := time.Now()
			r.listener.errs <- syscall.EMFILE
			client := r.connect()
			if waited := time.Since(begin); waited != restWait {
				t.Errorf("asked again after %v", waited)
			}
			synctest.Wait()
			client.Close()
			(<-r.service.conns).Close()
		}
		r.listener.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := strings.Count(r.log.String(), `"port-forward-not-taken"`); n != 4 {
			t.Errorf("told %d times:\n%s", n, r.log)
		}
	})
}

// lines returns the lines of the log that have all of these.
func (r *rig) lines(has ...string) (found []string) {
	for line := range strings.Lines(r.log.String()) {
		if !slices.ContainsFunc(has, func(text string) bool { return !strings.Contains(line, text) }) {
			found = append(found, line)
		}
	}
	return found
}

// What could not be dialled has a name, and its address stands in no name.
func TestReasons(t *testing.T) {
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 77), Port: 80}, Err: err}
	}
	for _, test := range []struct {
		err  error
		want string
	}{
		{context.DeadlineExceeded, "timeout"},
		{dial(os.ErrDeadlineExceeded), "timeout"},
		{dial(os.NewSyscallError("connect", syscall.ETIMEDOUT)), "timeout"},
		{dial(&net.DNSError{Name: "peer.example", IsTimeout: true}), "timeout"},
		{dial(&net.DNSError{Name: "peer.example", IsNotFound: true}), "name-not-resolved"},
		{dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "refused"},
		{dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "no-route"},
		{dial(os.NewSyscallError("connect", syscall.ENETUNREACH)), "no-route"},
		{dial(errors.New("connection was refused")), "not-reached"},
		{errors.New("192.0.2.77"), "not-reached"},
	} {
		if got := reason(test.err); got != test.want {
			t.Errorf("%v is %q, want %q", test.err, got, test.want)
		}
	}
}

// Nothing of what is carried stands in the log, and no peer above the level debug.
func TestTheLogShowsNothingCarried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		client := r.connect()
		server := <-r.service.conns
		go client.Write([]byte("5ec2e7-marker"))
		io.ReadFull(server, make([]byte, 13))
		client.Close()
		server.Close()
		synctest.Wait()
		r.service.fail = &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 77), Port: 80}, Err: syscall.ECONNREFUSED}
		ended(t, "a client whose service refuses", r.connect())
		r.service.fail = &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Name: "peer-77.example", Server: "192.0.2.77:53", IsNotFound: true}}
		ended(t, "a client whose service has no address", r.connect())
		for _, peer := range []string{"192.0.2.77", "peer-77"} {
			// Who looks at the level debug is told, so the address was there to be shown.
			if all, debug := r.lines(peer), r.lines(peer, `"level":"DEBUG"`); len(debug) == 0 || len(all) != len(debug) {
				t.Errorf("%s stands in %q, and at the level debug in %q", peer, all, debug)
			}
		}
		if n := len(r.lines(`"level":"INFO"`, `"port-forward-failed"`)); n != 2 {
			t.Errorf("two dials failed, and the log says so %d times", n)
		}
		for _, want := range []string{`"port-forward-opened"`, `"port-forward-closed"`} {
			if strings.Count(r.log.String(), want) != 1 {
				t.Errorf("no %s in %s", want, r.log)
			}
		}
		if strings.Contains(r.log.String(), "5ec2e7") {
			t.Errorf("the log says %s", r.log)
		}
	})
}

// A port of a node's own network on which nobody listens refuses by the same name as one
// of the machine's.
func TestReasonOfAStack(t *testing.T) {
	stack, err := userspace.New(netip.MustParseAddr("10.1.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer stack.Close()
	conn, err := stack.DialContext(t.Context(), "tcp", "10.1.0.1:81")
	if err == nil {
		conn.Close()
		t.Fatal("somebody answered")
	}
	if got := reason(err); got != "refused" {
		t.Errorf("%v is %q", err, got)
	}
}

// marker is the value of panics, and errPanic makes a listener panic.
const marker = "5ec2e7-marker"

var errPanic = errors.New("panic")

// wrongReader is a connection whose reads panic.
type wrongReader struct{ *halves }

func (wrongReader) Read([]byte) (int, error) { panic(marker) }

// wrongWriter is one whose writes do.
type wrongWriter struct{ *halves }

func (wrongWriter) Write([]byte) (int, error) { panic(marker) }

// A panic costs the connection that it is about, in both directions, and where connections
// are taken the rule. Its value is not shown.
func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		good := r.connect()
		server := <-r.service.conns
		panics := 0
		told := func() {
			t.Helper()
			panics++
			if n := len(r.lines(`"panic-recovered"`)); n != panics || len(r.lines(marker)) != 0 {
				t.Errorf("the log tells of %d panics, want %d:\n%s", n, panics, r.log)
			}
			if c := r.Counts(); c.Open != 1 {
				t.Errorf("%+v", c)
			}
		}

		r.service.wrong = marker
		ended(t, "a client whose dial panics", r.connect())
		told()
		r.service.wrong = nil

		for what, wrap := range map[string]func(net.Conn) net.Conn{
			"reading": func(c net.Conn) net.Conn { return wrongReader{c.(*halves)} },
			"writing": func(c net.Conn) net.Conn { return wrongWriter{c.(*halves)} },
		} {
			r.service.wrap = wrap
			client := r.connect()
			there := <-r.service.conns
			if what == "writing" {
				client.Write([]byte("x"))
			}
			ended(t, "a client whose service's "+what+" panics", client)
			ended(t, "the service whose "+what+" panics", there)
			told()
		}
		r.service.wrap = nil

		r.listener.errs <- errPanic
		synctest.Wait()
		told()
		select {
		case <-r.listener.closed:
		default:
			t.Error("nobody takes connections, and the listener is open")
		}
		go good.Write([]byte("x"))
		if n, err := server.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("another connection has ended: %v", err)
		}
	})
}
