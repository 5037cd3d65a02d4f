package credential

import "fmt"

// An Error says by name why a file is of no use. It has nothing of what was read.
type Error struct {
	Name  string // one of the names below
	Key   string // of the credential, which it is about; empty for the whole
	Line  int    // 0 when it is about no line
	Cause error  // of the operating system; nil when the content is at fault
}

// The names of an Error.
const (
	Missing    = "file-missing"
	Unreadable = "file-unreadable"
	NotAFile   = "not-a-file"     // but a folder, a pipe, a device
	TooOpen    = "mode-too-open"  // others than the owner may read or write it
	TooLong    = "file-too-long"  //
	NotYAML    = "not-yaml"       // or more than one document
	NotPlain   = "not-plain-yaml" // has an anchor, an alias or a tag, or is no mapping of texts
	UnknownKey = "unknown-key"    //
	Repeated   = "repeated-key"   //
	KeyMissing = "key-missing"    //
	TwoKeys    = "two-private-keys"
	NoAddress  = "not-address-and-port"
	NoKey      = "not-a-key"   // canonical base64 of 32 bytes
	NoID       = "not-an-id"   // of 1 to 128 bytes of UTF-8
	NoTime     = "not-a-time"  // Unix milliseconds or RFC 3339
	Exists     = "file-exists" // where one was to be made
	NotMade    = "file-not-made"
	Timeout    = "file-timeout" // the file system did not answer
	Fault      = "internal-fault"
)

var sentences = map[string]string{
	Missing:    "there is no such file",
	Unreadable: "the file cannot be read",
	NotAFile:   "it is not a regular file",
	TooOpen:    "it can be read or written by others than its owner: it must have mode 0600",
	TooLong:    "it is too long",
	NotYAML:    "it is not one YAML document",
	NotPlain:   "it is not a plain mapping of keys to texts",
	UnknownKey: "has a key that is none of a credential's",
	Repeated:   "is given twice",
	KeyMissing: "is missing",
	TwoKeys:    "private-key and private-key-file are both given",
	NoAddress:  "is not an address and a port",
	NoKey:      "is not the canonical base64 of a 32-byte key",
	NoID:       "is not a text of 1 to 128 bytes",
	NoTime:     "is neither Unix milliseconds nor a time of RFC 3339",
	Exists:     "the file exists already, and is left as it is",
	NotMade:    "the file cannot be made",
	Timeout:    "the file system does not answer",
	Fault:      "a mistake of this program kept it from being read; the log has more",
}

func (e *Error) Error() string {
	text := sentences[e.Name]
	if e.Key != "" {
		text = e.Key + ": " + text
	}
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, text)
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// LogName returns the name for a log line.
func (e *Error) LogName() string { return "credential-" + e.Name }
