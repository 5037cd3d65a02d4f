package field

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"reflect"
	"strconv"
	"strings"
	"syscall"

	"serve.zone/relay/duty/secret"
)

// Named is met by errors that have a name of their own. LogName returns it in
// the grammar of IsName; another text is not used.
type Named interface{ LogName() string }

// maxErrorDepth ends the walk through wrapped errors. Real chains have four
// or five; a cycle would have no end.
const maxErrorDepth = 12

// Error says what went wrong, told from the error's structured parts: the
// name of a Named error; operation, address and errno of the standard
// library's network and file errors; the kind of a certificate's failure; the
// standard sentinels. An error that has none of these is told by its Go type.
// The text of an error is never used, since it may quote a peer. A nil error
// says nothing.
//
//	dial tcp 192.0.2.1:443: connect: connection refused
//	credential-mode: open /run/secrets/bearer: permission denied
//	*websocket.CloseError
func Error(err error) Field {
	if err == nil {
		return Field{}
	}
	return composed(keyError, told(err), err)
}

// composed returns a field for a text that this package put together from
// the parts of value, each of which has been judged. The whole is not: words
// and slashes make runs that are no secret.
func composed(key Key, s string, value any) Field {
	if !isPrintable(s) {
		s = typeName(value)
	}
	if len(s) > maxError {
		s = s[:maxError]
	}
	return Field{key: key, kind: kindText, text: s}
}

// told renders err. Its methods are foreign code: one that panics costs its
// words, not the line.
func told(err error) (s string) {
	defer func() {
		if recover() != nil {
			s = typeName(err)
		}
	}()
	s, _ = tell(err, 0)
	return s
}

// tell returns what may be said of err, and whether that is more than the
// name of its type.
func tell(err error, depth int) (string, bool) {
	if depth >= maxErrorDepth {
		return "more", false
	}
	inner := func(head string, err error) (string, bool) { return after(head, err, depth+1), true }
	if named, ok := err.(Named); ok {
		if name := named.LogName(); IsName(name) && secret.Find(name) == secret.None {
			return inner(name, errors.Unwrap(err))
		}
	}
	for _, tellKind := range [...]func(error) (string, error, bool){tellSystem, tellNet, tellTLS} {
		if head, next, ok := tellKind(err); ok {
			return inner(head, next)
		}
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		if next := err.Unwrap(); next != nil {
			return tell(next, depth+1)
		}
	case interface{ Unwrap() []error }:
		return tellAll(err.Unwrap(), depth+1)
	}
	if s, ok := tellSentinel(err); ok {
		return s, true
	}
	if t, ok := err.(interface{ Timeout() bool }); ok && t.Timeout() {
		return "timeout: " + typeName(err), true
	}
	return typeName(err), false
}

// maxJoined is how many of joined errors are told.
const maxJoined = 4

func tellAll(errs []error, depth int) (string, bool) {
	told, known := make([]string, 0, maxJoined), false
	for _, err := range errs {
		if err == nil || len(told) == maxJoined {
			continue
		}
		s, ok := tell(err, depth)
		told, known = append(told, s), known || ok
	}
	return strings.Join(told, "; "), known
}

// after returns head and what may be said of the error behind it. Behind a
// known head the type of an unknown error is no news.
func after(head string, err error, depth int) string {
	if err == nil {
		return head
	}
	tail, known := tell(err, depth)
	switch {
	case !known && head != "":
		return head
	case head == "":
		return tail
	}
	return head + ": " + tail
}

// tellSystem knows the errors of files and system calls.
func tellSystem(err error) (head string, next error, ok bool) {
	switch err := err.(type) {
	case *fs.PathError:
		return word(err.Op) + " " + part(keyPath, err.Path), err.Err, true
	case *os.LinkError:
		return word(err.Op) + " " + part(keyPath, err.New), err.Err, true
	case *os.SyscallError:
		return word(err.Syscall), err.Err, true
	case syscall.Errno:
		return err.Error(), nil, true // from the table of the system
	case *strconv.NumError:
		return "number", err.Err, true
	}
	return "", nil, false
}

// tellNet knows the errors of sockets and names.
func tellNet(err error) (head string, next error, ok bool) {
	switch err := err.(type) {
	case *net.OpError:
		head = strings.TrimSpace(word(err.Op) + " " + word(err.Net))
		if a, ok := addrPort(err.Addr); ok {
			head += " " + Address(a).String()
		} else if a, ok := addrPort(err.Source); ok {
			head += " " + Address(a).String()
		}
		return head, err.Err, true
	case *net.DNSError:
		head = "lookup " + part(keyHost, err.Name)
		if isAddress(err.Server) {
			head += " on " + err.Server
		}
		switch {
		case err.IsNotFound:
			head += ": no such host"
		case err.IsTimeout:
			head += ": timeout"
		case err.IsTemporary:
			head += ": server misbehaving"
		}
		return head, err.Unwrap(), true
	case *net.AddrError, *net.ParseError, net.InvalidAddrError:
		return "address not valid", nil, true
	case net.UnknownNetworkError:
		return "network not known", nil, true
	case *url.Error:
		return word(strings.ToLower(err.Op)), err.Err, true // its URL may carry a token
	}
	return "", nil, false
}

// sentinels are the standard library's, with its own words for them.
var sentinels = [...]error{
	context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded, os.ErrProcessDone,
	net.ErrClosed, net.ErrWriteToConnected, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe,
	io.ErrShortWrite, io.ErrShortBuffer, io.ErrNoProgress,
	fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, fs.ErrClosed,
	strconv.ErrRange, strconv.ErrSyntax, errors.ErrUnsupported,
}

func tellSentinel(err error) (string, bool) {
	for _, known := range sentinels {
		if err == known {
			return known.Error(), true
		}
	}
	// The network's own canceled and timed-out errors are not these two but
	// say that they are.
	for _, known := range [...]error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known.Error(), true
		}
	}
	return "", false
}

// word returns s if it is what operations and networks are called.
func word(s string) string {
	if len(s) > 20 || !all(s, func(c byte) bool { return isLower(c) || isDigit(c) || c == ' ' || c == '_' }) {
		return Withheld
	}
	return s
}

// part returns s if it may be the value of a field with this key.
func part(key Key, s string) string {
	if s == "" {
		return Withheld
	}
	return text(key, s).String()
}

// typeName returns the Go type of value, without the parts of a type that
// could carry text (tags of an unnamed struct).
func typeName(value any) string {
	name := fmt.Sprintf("%T", value)
	plain := len(name) <= maxMethod && all(name, func(c byte) bool {
		return isLetter(c) || isDigit(c) || strings.IndexByte("_.*[]/", c) >= 0
	})
	if !plain {
		return reflect.TypeOf(value).Kind().String()
	}
	return name
}
