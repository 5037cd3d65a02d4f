package config

import (
	"log/slog"
	"net/mail"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
)

const (
	// maximumFileName is PATH_MAX of Linux.
	maximumFileName = 4096
	// maximumWorkers bounds the hub's sockets: each is a reading goroutine with
	// buffers of its own, and more of them than processors only adds switching.
	maximumWorkers = 64
	// maximumEmail is the longest path of RFC 5321 §4.5.3.1.3 without its
	// brackets.
	maximumEmail = 254
	// Bounds of a timeout: below a second no call across a network ends, and a
	// day is longer than any operation lasts.
	minimumDuration = time.Second
	maximumDuration = 24 * time.Hour
	// carrierPrefix begins the names of the carrier's own methods, which it
	// answers before anybody else sees them (typedsocket).
	carrierPrefix = "__typedsocket_"
)

func readFileName(s string) (string, Rule) {
	if s == "" || len(s) > maximumFileName || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return "", NotFileName
	}
	return s, ""
}

func readNodeID(s string) (string, Rule) {
	if !contract.IsNodeID(s) {
		return "", NotNodeID
	}
	return s, ""
}

func readWorkers(s string) (int, Rule) {
	n, err := strconv.Atoi(s)
	if err != nil || strconv.Itoa(n) != s || n < 1 || n > maximumWorkers {
		return 0, NotWorkerCount
	}
	return n, ""
}

// oneOf reads one of the named choices.
func oneOf[T ~string](choices ...T) func(string) (T, Rule) {
	return func(s string) (T, Rule) {
		for _, c := range choices {
			if s == string(c) {
				return c, ""
			}
		}
		return "", NotChoice
	}
}

func readLevel(s string) (slog.Level, Rule) {
	level, err := duty.ParseLevel(s)
	if err != nil {
		return 0, NotChoice
	}
	return level, ""
}

func readFormat(s string) (duty.Format, Rule) {
	format, err := duty.ParseFormat(s)
	if err != nil {
		return 0, NotChoice
	}
	return format, ""
}

// readSwitch takes 1 and 0 too, which variables are often set to.
func readSwitch(s string) (bool, Rule) {
	switch s {
	case "true", "1":
		return true, ""
	case "false", "0":
		return false, ""
	}
	return false, NotSwitch
}

func readEmail(s string) (string, Rule) {
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || len(s) > maximumEmail {
		return "", NotEmail
	}
	return s, ""
}

func readVersion(s string) (string, Rule) {
	if !contract.IsReleaseVersion(s) {
		return "", NotVersion
	}
	return s, ""
}

// readMethod reads a method name. Whether it is free is judged with the others,
// see judgeOwnMethods.
func readMethod(s string) (string, Rule) {
	if strings.HasPrefix(s, carrierPrefix) {
		return "", CarrierMethod
	}
	// Of a name outside the catalogue contract's judge has one thing to say.
	if _, known := contract.LookupMethod(s); !known && contract.JudgeExtraMethods([]string{s}, nil) != nil {
		return "", NotMethod
	}
	return s, ""
}

func readDuration(s string) (time.Duration, Rule) {
	d, err := time.ParseDuration(s)
	if err != nil || d < minimumDuration || d > maximumDuration {
		return 0, NotDuration
	}
	return d, ""
}

// writeDuration writes a whole number of seconds, minutes or hours as an
// operator would: 10m, where String says 10m0s.
func writeDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len(zero)+1]
		}
	}
	return text
}
