package config

import (
	"strconv"
	"strings"

	"serve.zone/relay/contract"
)

// Rule is what a value or a file broke. Rules are a closed set of constants,
// those below, contract's AddressFault, the rules of its judges and those of
// Sources.Judge, so that none can quote a value.
type Rule string

// Rules of values.
const (
	NotOrigin        Rule = "is not a canonical http or https origin: scheme, lower-case host, port unless it is the scheme's own, and nothing behind"
	NotSecure        Rule = "is http to a host that is no loopback address: want https"
	NotURL           Rule = "is not an http or https url of an origin and a plain path"
	NotFileName      Rule = "is not the name of a file: want 1 to 4096 bytes of utf-8 without control characters"
	NotNodeID        Rule = "is not a node id: want 1 to 128 letters, digits, '-' and '_'"
	NotAddressPort   Rule = "is not an address and a port"
	NotListenPort    Rule = "has no port from 1 to 65535"
	ManyHosts        Rule = "is not the address of one host or a wildcard"
	NotServer        Rule = "is not a host and a port"
	NotWorkerCount   Rule = "is not a number from 1 to 64"
	NotChoice        Rule = "is none of the choices"
	NotSwitch        Rule = "is neither true nor false"
	NotEmail         Rule = "is not an email address"
	NotVersion       Rule = "is not a release version: want three numbers with dots between"
	NotMethod        Rule = "is not a method name"
	CarrierMethod    Rule = "is a method of the carrier"
	NotPath          Rule = "is not a plain absolute path"
	NotDuration      Rule = "is not a duration from 1s to 24h, such as 30s or 10m"
	SecretInTheOpen  Rule = "holds a secret: want the name of a file that holds it"
	TooManyMethods   Rule = "has more than 256 entries"
	RepeatedMethod   Rule = "is given twice"
	MethodTaken      Rule = "is another method of the catalogue"
	MethodOfTheRelay Rule = "is a method of the relay itself"
)

// Rules between settings.
const (
	Required           Rule = "is required"
	RequiredByFiles    Rule = "is required by tls-source files"
	RequiredByACME     Rule = "is required by tls-source acme"
	RequiredByDNS      Rule = "is required by acme-challenge dns-01"
	ListenPortTaken    Rule = "takes the port of listen"
	AnotherSettingsOwn Rule = "is the method of another setting"
)

// Rules of the sources.
const (
	UnknownSetting  Rule = "is not a setting"
	NotInFile       Rule = "cannot stand in the file"
	Repeated        Rule = "is given twice"
	NoValue         Rule = `has no value: leave it out or write ""`
	NotOneValue     Rule = "is not one value"
	NotList         Rule = "is not a list of names"
	NotMapping      Rule = "is not a mapping of keys to values"
	NotPlainYAML    Rule = "uses an anchor, an alias or a tag"
	NotOneDocument  Rule = "holds more than one yaml document"
	NotYAML         Rule = "is not well-formed yaml"
	FileTooLarge    Rule = "is larger than 256 KiB"
	FileMissing     Rule = "names a file that does not exist"
	FileForbidden   Rule = "names a file that may not be read"
	FileUnreadable  Rule = "names a file that cannot be read"
	SecretArguments Rule = "holds a secret, which everybody on the host can read: want the name of a file that holds it"
)

// Reason is one violation: where it stands and what it breaks.
type Reason struct {
	Place
	Rule Rule
	// Suggest is the setting that was probably meant, empty when there is none.
	Suggest string
}

// String returns the reason as an operator reads it. It quotes no value.
func (r Reason) String() string {
	text := r.Place.String() + ": " + string(r.Rule)
	if r.Suggest != "" {
		text += " (did you mean " + r.Suggest + "?)"
	}
	return text
}

// InvalidError says why there is no configuration. The command line maps it to
// its exit code.
type InvalidError struct {
	// Reasons are the violations, at most contract.MaximumReasons.
	Reasons []Reason
	// More counts those that are not listed.
	More int
}

// Error returns all reasons in one line.
func (e *InvalidError) Error() string {
	texts := make([]string, len(e.Reasons))
	for i, r := range e.Reasons {
		texts[i] = r.String()
	}
	if e.More > 0 {
		texts = append(texts, "and "+strconv.Itoa(e.More)+" more")
	}
	return "invalid configuration: " + strings.Join(texts, "; ")
}

// findings collects reasons.
type findings struct {
	reasons []Reason
	more    int
}

// full reports whether further reasons are only counted.
func (f *findings) full() bool { return len(f.reasons) >= contract.MaximumReasons }

func (f *findings) add(p Place, rule Rule) { f.addReason(Reason{Place: p, Rule: rule}) }

func (f *findings) addReason(r Reason) {
	if f.full() {
		f.more++
		return
	}
	f.reasons = append(f.reasons, r)
}

// err returns the reasons as an error, nil when there are none.
func (f *findings) err() error {
	if len(f.reasons) == 0 {
		return nil
	}
	return &InvalidError{Reasons: f.reasons, More: f.more}
}
