package field

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const marker = "MARKER hunter2 s3cret"

type named struct {
	name string
	err  error
}

func (n named) Error() string   { return marker }
func (n named) LogName() string { return n.name }
func (n named) Unwrap() error   { return n.err }

type broken struct{}

func (broken) Error() string { panic(marker) }
func (broken) Unwrap() error { panic(marker) }

type endless struct{}

func (endless) Error() string   { return marker }
func (e endless) Unwrap() error { return e }

type slow struct{}

func (slow) Error() string { return marker }
func (slow) Timeout() bool { return true }

var refused = &net.OpError{
	Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443},
	Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
}

func TestError(t *testing.T) {
	plain := errors.New(marker)
	for _, row := range []struct {
		name string
		err  error
		want string
	}{
		{"a refused dial", refused, "dial tcp 192.0.2.1:443: connect: connection refused"},
		{"wrapped", fmt.Errorf("%s: %w", marker, refused), "dial tcp 192.0.2.1:443: connect: connection refused"},
		{"a read", &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 5}, Err: syscall.ECONNRESET}, "read tcp 192.0.2.2:5: connection reset by peer"},
		{"an address of free text", &net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: marker}, Err: plain}, "dial unix"},
		{"an operation of free text", &net.OpError{Op: marker, Net: "tcp", Err: plain}, "[withheld] tcp"},
		{"a name not found", &net.DNSError{Err: marker, Name: "cloudly.example", Server: "192.0.2.53:53", IsNotFound: true}, "lookup cloudly.example on 192.0.2.53:53: no such host"},
		{"a name of free text", &net.DNSError{Err: marker, Name: marker, Server: marker, IsTimeout: true}, "lookup [withheld]: timeout"},
		{"a name that is a secret", &net.DNSError{Name: hex64, IsTemporary: true}, "lookup [withheld]: server misbehaving"},
		{"an address error", &net.AddrError{Err: marker, Addr: marker}, "address not valid"},
		{"an unknown network", net.UnknownNetworkError(marker), "network not known"},
		{"a URL", &url.Error{Op: "Get", URL: "https://u:" + marker, Err: refused}, "get: dial tcp 192.0.2.1:443: connect: connection refused"},
		{"a file", &fs.PathError{Op: "open", Path: "/run/secrets/bearer", Err: syscall.EACCES}, "open /run/secrets/bearer: permission denied"},
		{"a file of free text", &fs.PathError{Op: "open", Path: marker, Err: plain}, "open [withheld]"},
		{"a file without a name", &fs.PathError{Op: "open", Err: fs.ErrInvalid}, "open [withheld]: invalid argument"},
		{"a rename", &os.LinkError{Op: "rename", Old: marker, New: "/run/a", Err: syscall.EXDEV}, "rename /run/a: invalid cross-device link"},
		{"a number", &strconv.NumError{Func: "Atoi", Num: marker, Err: strconv.ErrRange}, "number: value out of range"},
		{"a context", fmt.Errorf("%s: %w", marker, context.DeadlineExceeded), "context deadline exceeded"},
		{"a cause of a context", fmt.Errorf("x: %w", context.Canceled), "context canceled"},
		{"a deadline", os.ErrDeadlineExceeded, "i/o timeout"},
		{"an end", io.ErrUnexpectedEOF, "unexpected EOF"},
		{"a closed socket", net.ErrClosed, "use of closed network connection"},
		{"an alert", tls.AlertError(42), "tls: bad certificate"},
		{"an alert of the future", tls.AlertError(250), "tls: alert(250)"},
		{"no TLS", tls.RecordHeaderError{Msg: marker}, "tls: not a TLS record"},
		{"an unknown authority", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "tls: certificate not verified: x509: unknown authority"},
		{"another host", x509.HostnameError{Host: "relay.example", Certificate: &x509.Certificate{DNSNames: []string{marker}}}, "x509: not valid for relay.example"},
		{"an old certificate", x509.CertificateInvalidError{Reason: x509.Expired, Detail: marker}, "x509: expired"},
		{"a wrong usage", x509.CertificateInvalidError{Reason: x509.IncompatibleUsage, Detail: marker}, "x509: incompatible key usage"},
		{"a bad certificate", x509.CertificateInvalidError{Reason: -1, Detail: marker}, "x509: not valid"},
		{"an extension", x509.UnhandledCriticalExtension{}, "x509: unhandled critical extension"},
		{"an old algorithm", x509.InsecureAlgorithmError(x509.MD5WithRSA), "x509: insecure algorithm"},
		{"a constraint", x509.ConstraintViolationError{}, "x509: constraint violation"},
		{"a rejected ECH", &tls.ECHRejectionError{RetryConfigList: []byte(marker)}, "tls: server rejected ECH"},
		{"no roots", x509.SystemRootsError{Err: plain}, "x509: system roots not readable"},
		{"named", named{name: "credential-mode"}, "credential-mode"},
		{"named, with a cause", fmt.Errorf("%s: %w", marker, named{"credential-unreadable", &fs.PathError{Op: "open", Path: "/run/b", Err: syscall.ENOENT}}), "credential-unreadable: open /run/b: no such file or directory"},
		{"named, with a cause nobody knows", named{"credential-shape", plain}, "credential-shape"},
		{"named by free text", named{name: marker}, "field.named"},
		{"named by free text, with a cause", named{marker, io.EOF}, "EOF"},
		{"a timeout nobody knows", slow{}, "timeout: field.slow"},
		{"joined", errors.Join(plain, refused, io.EOF), "*errors.errorString; dial tcp 192.0.2.1:443: connect: connection refused; EOF"},
		{"joined, more than are told", errors.Join(io.EOF, io.EOF, io.EOF, io.EOF, io.EOF), "EOF; EOF; EOF; EOF"},
		{"plain", plain, "*errors.errorString"},
		{"plain, wrapped", fmt.Errorf("%s: %w", marker, plain), "*errors.errorString"},
		{"one that panics", broken{}, "field.broken"},
		{"one without an end", endless{}, "more"},
		{"a nil pointer of a known type", (*net.OpError)(nil), "*net.OpError"},
		{"a long one", &fs.PathError{Op: "open", Path: "/" + strings.Repeat("a/", 127), Err: &fs.PathError{Op: "open", Path: "/b", Err: io.EOF}}, ("open /" + strings.Repeat("a/", 127))[:256]},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := Error(row.err)
			if got.String() != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
			if got.IsZero() || got.IsWithheld() {
				t.Errorf("an error must say something")
			}
		})
	}
}

// The errors of the real network must read as an operator needs them.
func TestErrorOfRealCalls(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()

	_, err = net.Dial("tcp", address)
	if got, want := Error(err).String(), "dial tcp "+address+": connect: connection refused"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = new(net.Dialer).DialContext(ctx, "tcp", address)
	if got, want := Error(err).String(), "dial tcp "+address+": context canceled"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	_, err = os.ReadFile("/nonexistent/bearer")
	if got, want := Error(err).String(), "open /nonexistent/bearer: no such file or directory"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The alert a peer answers with must be readable: it is what tells a wrong
// authority from a wrong name.
func TestErrorOfARealAlert(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	done := make(chan error, 1)
	go func() {
		done <- tls.Server(server, &tls.Config{}).Handshake()
		server.Close()
	}()
	err := tls.Client(client, &tls.Config{ServerName: "relay.example"}).Handshake()
	<-done
	if got := Error(err).String(); got != "remote error: tls: internal error" && got != "remote error: tls: unrecognized name" {
		t.Errorf("%q", got)
	}
}

func TestPanic(t *testing.T) {
	caught := func(f func()) (value any) {
		defer func() { value = recover() }()
		f()
		return nil
	}
	var none map[string]int
	var list []int
	var text any = marker
	for _, row := range []struct {
		name string
		do   func()
		want string
	}{
		{"an index", func() { _ = list[len(marker)] }, "runtime error: index out of range [21] with length 0"},
		{"a nil map", func() { none[marker] = 1 }, "assignment to entry in nil map"},
		{"an assertion", func() { _ = text.(int) }, "interface conversion: interface {} is string, not int"},
		{"a text", func() { panic(marker) }, "string"},
		{"an error", func() { panic(fmt.Errorf("%s: %w", marker, io.EOF)) }, "EOF"},
		{"an error nobody knows", func() { panic(errors.New(marker)) }, "*errors.errorString"},
		{"a struct", func() { panic(struct{ Body string }{marker}) }, "struct"},
		{"bytes", func() { panic([]byte(marker)) }, "[]uint8"},
		{"an error that panics", func() { panic(broken{}) }, "field.broken"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := Panic(caught(row.do)).String(); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

// B059: the error of a certificate that is not valid yet says that, and not that it has
// expired.
func TestB059_NotYetValidIsNotExpired(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: from.AddDate(0, 0, 1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	for at, want := range map[time.Time]string{
		from.Add(-10 * time.Minute): "x509: not yet valid",
		from.AddDate(0, 0, 2):       "x509: expired",
	} {
		_, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at})
		if got := Error(err).String(); got != want {
			t.Errorf("at %v: %q, want %q", at, got, want)
		}
	}
}

// FuzzError holds down that no text of an error is told, wherever it stands.
func FuzzError(f *testing.F) {
	f.Add("hunter2 is the password")
	f.Add("clusterRelayToken_a_" + hex64)
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add("relay refused")
	f.Fuzz(func(t *testing.T, s string) {
		inner := errors.New(s)
		for _, err := range []error{
			inner, fmt.Errorf("%s: %w", s, inner), errors.Join(inner, inner),
			&net.DNSError{Err: s, UnwrapErr: inner},
			&net.OpError{Op: "dial", Net: "tcp", Addr: &net.UnixAddr{Name: s, Net: s}, Err: inner},
			&url.Error{Op: "Get", URL: s, Err: inner},
			&strconv.NumError{Func: s, Num: s, Err: inner},
			&tls.CertificateVerificationError{Err: inner},
			x509.CertificateInvalidError{Detail: s},
		} {
			same := Error(err).String()
			// What is told of an error without a text is all that may be told.
			if len(s) > 0 && same != Error(blank(err)).String() {
				t.Errorf("%T tells %q", err, same)
			}
		}
	})
}

// blank returns an error of the same shape whose texts are empty.
func blank(err error) error {
	inner := errors.New("")
	switch err.(type) {
	case *net.DNSError:
		return &net.DNSError{UnwrapErr: inner}
	case *net.OpError:
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.UnixAddr{}, Err: inner}
	case *url.Error:
		return &url.Error{Op: "Get", Err: inner}
	case *strconv.NumError:
		return &strconv.NumError{Err: inner}
	case *tls.CertificateVerificationError:
		return &tls.CertificateVerificationError{Err: inner}
	case x509.CertificateInvalidError:
		return x509.CertificateInvalidError{}
	case interface{ Unwrap() []error }:
		return errors.Join(inner, inner)
	}
	return inner
}
