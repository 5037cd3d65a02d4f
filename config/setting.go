package config

import (
	"slices"
	"strings"
)

// Kind says how the value of a setting is written.
type Kind uint8

// The kinds. String names them as help and documentation show them.
const (
	KindOrigin        Kind = iota // canonical web origin
	KindURL                       // origin and path
	KindFile                      // path of a file
	KindFolder                    // path of a folder
	KindNodeID                    // contract §2.1
	KindListenAddress             // IPv4:port that is registered with Cloudly
	KindAddress                   // address:port
	KindServer                    // host:port to dial
	KindCount                     // decimal number
	KindChoice                    // one of Choices
	KindSwitch                    // true or false; alone on the command line it means true
	KindEmail                     // RFC 5322 addr-spec
	KindVersion                   // release version, contract §2.2
	KindMethod                    // method name
	KindMethods                   // list of method names, in the file alone
	KindPath                      // path of a URL
	KindDuration                  // number and unit, as 30s or 10m
	kinds

	// kindUnknown is that of a value which belongs to no setting.
	kindUnknown = kinds
)

var kindNames = [kinds]string{
	KindOrigin: "ORIGIN", KindURL: "URL", KindFile: "FILE", KindFolder: "FOLDER", KindNodeID: "NODE",
	KindListenAddress: "IPV4:PORT", KindAddress: "ADDRESS:PORT", KindServer: "HOST:PORT", KindCount: "N",
	KindChoice: "CHOICE", KindSwitch: "true|false", KindEmail: "EMAIL", KindVersion: "VERSION",
	KindMethod: "METHOD", KindMethods: "METHODS", KindPath: "PATH", KindDuration: "DURATION",
}

// String returns the kind's name.
func (k Kind) String() string { return kindNames[k] }

// Setting is one row of the table.
type Setting struct {
	// Flag is the name on the command line without its dashes; empty for what
	// the file alone can say.
	Flag string
	// Env are the environment variables, the first that is set counts.
	Env []string
	// Key is the path of the key in the file, its parts joined by dots; empty for
	// what cannot stand there.
	Key  string
	Kind Kind
	// Choices are the admitted values of a KindChoice.
	Choices []string
	// Default is the value where no source gives one, as a source would write
	// it; empty when there is none.
	Default string
	// Unset says what an empty value means, for help and documentation.
	Unset string
	// Required marks a setting without which nothing starts.
	Required bool
	// Meaning is one line for the operator, without a full stop.
	Meaning string
	// Section is the heading under which the setting is shown.
	Section string

	// set reads a value that is not empty into its field.
	set func(*Config, value) Rule
}

// Name is what a setting is called in errors and reports: its key in the file,
// or its flag when it has no key.
func (s Setting) Name() string {
	if s.Key == "" {
		return s.Flag
	}
	return s.Key
}

// Form returns how the value is written: the kind, or the choices.
func (s Setting) Form() string {
	if s.Kind == KindChoice {
		return strings.Join(s.Choices, "|")
	}
	return s.Kind.String()
}

// value is what one source gave for a setting: a text, or for KindMethods a
// list.
type value struct {
	text string
	list []string
}

func (v value) isEmpty() bool { return v.text == "" && len(v.list) == 0 }

// into makes a row's set out of the reader of its kind and the field it fills.
func into[T any](read func(string) (T, Rule), field func(*Config) *T) func(*Config, value) Rule {
	return func(c *Config, v value) Rule {
		x, rule := read(v.text)
		if rule == "" {
			*field(c) = x
		}
		return rule
	}
}

// intoList fills a field of KindMethods, which judgeMethods judges.
func intoList(field func(*Config) *[]string) func(*Config, value) Rule {
	return func(c *Config, v value) Rule {
		*field(c) = slices.Clone(v.list)
		return ""
	}
}

// Settings returns the table, in the order in which it is shown. The caller owns
// it.
func Settings() []Setting { return slices.Concat(flagSettings(), protocolSettings()) }
