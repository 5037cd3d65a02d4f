package cloudly

import (
	"errors"
	"io/fs"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/secretfile"
)

// CredentialSource is where the bearer comes from. Read returns a copy that the
// caller zeroes, or a *CredentialError. It may block as long as a file system
// does; one goroutine calls it.
type CredentialSource interface {
	Read() (contract.Secret, error)
}

// CredentialError says by name why there is no usable bearer. It never quotes what
// was read.
type CredentialError struct {
	Name  string // one of the names below
	Cause error  // of the operating system; nil when the content is at fault
}

// The names of a CredentialError. They are API.
const (
	CredentialMissing    = "credential-missing"
	CredentialUnreadable = "credential-unreadable"
	CredentialNotAFile   = "credential-not-a-file"
	CredentialMode       = "credential-mode"     // others than the owner may read or write it
	CredentialLineEnd    = "credential-line-end" // it ends with a line terminator
	CredentialShape      = "credential-shape"    // it is no relay authorization
	CredentialTimeout    = "credential-timeout"  // the file system did not answer
)

func (e *CredentialError) Error() string {
	if e.Cause == nil {
		return e.Name
	}
	return e.Name + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *CredentialError) Unwrap() error { return e.Cause }

// LogName returns the name for a log line.
func (e *CredentialError) LogName() string { return e.Name }

// CredentialFile is a bearer in a file: exactly a relay authorization, without a
// line terminator, which is refused and not trimmed, in a regular file that only
// its owner may read or write (contract §5.1).
type CredentialFile string

// Read implements CredentialSource.
func (path CredentialFile) Read() (contract.Secret, error) {
	content, err := secretfile.Read(string(path), maximumCredentialBytes)
	switch {
	case err == nil:
		return judgeCredential(content)
	case errors.Is(err, fs.ErrNotExist):
		return nil, &CredentialError{CredentialMissing, err}
	case errors.Is(err, secretfile.ErrNotAFile):
		return nil, &CredentialError{CredentialNotAFile, nil}
	case errors.Is(err, secretfile.ErrTooOpen):
		return nil, &CredentialError{CredentialMode, nil}
	case errors.Is(err, secretfile.ErrTooLong):
		return nil, &CredentialError{CredentialShape, nil}
	}
	return nil, &CredentialError{CredentialUnreadable, err}
}

// judgeCredential returns the bearer, or zeroes what it was given.
func judgeCredential(content []byte) (contract.Secret, error) {
	if contract.IsRelayBearer(string(content)) {
		return content, nil
	}
	name := CredentialShape
	if n := len(content); n > 0 && (content[n-1] == '\n' || content[n-1] == '\r') {
		name = CredentialLineEnd
	}
	clear(content)
	return nil, &CredentialError{name, nil}
}
