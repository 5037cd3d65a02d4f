package main

import (
	"strings"
	"unicode"

	"serve.zone/relay/duty/field"
	"serve.zone/relay/duty/secret"
)

// maximumPlain bounds what is said of one error: a few lines of a terminal. Paths
// of the operator's are the longest parts.
const maximumPlain = 1024

// plain returns the text of an error for a person, in one line. It is for errors
// of the operator's own making, before a peer was heard: those of a peer are for
// the logger alone. A text with the shape of a secret is told from the error's
// structured parts instead.
func plain(err error) string {
	text := oneLine(err.Error())
	if secret.Find(text) != secret.None {
		return field.Error(err).String()
	}
	return text
}

// oneLine joins lines, bounds them, and replaces what a terminal would act on.
func oneLine(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
	if len(text) > maximumPlain {
		text = text[:maximumPlain] + "..."
	}
	return printable(text)
}

// printable replaces what a terminal would act on.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
