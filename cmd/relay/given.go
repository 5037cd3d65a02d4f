package main

import (
	"errors"

	"github.com/alecthomas/kong"
)

// given is the value of a flag as it stands on the command line. Whoever asks for it
// judges it.
type given struct {
	text    string
	isGiven bool
}

// Decode implements kong.MapperValue.
func (g *given) Decode(ctx *kong.DecodeContext) error {
	if g.isGiven {
		return errors.New("is given twice")
	}
	if !ctx.Scan.Peek().IsValue() {
		return errors.New("has no value; one that begins with a dash is written behind '='")
	}
	*g = given{text: ctx.Scan.Pop().String(), isGiven: true}
	return nil
}

// or returns the value, or another where none was given.
func (g given) or(fallback string) string {
	if !g.isGiven {
		return fallback
	}
	return g.text
}

// givenList is a flag that may be given again and again.
type givenList []string

// Decode implements kong.MapperValue.
func (g *givenList) Decode(ctx *kong.DecodeContext) error {
	var one given
	if err := one.Decode(ctx); err != nil {
		return err
	}
	*g = append(*g, one.text)
	return nil
}

// givenSwitch is a flag that means true when nothing stands behind it.
type givenSwitch given

// Decode implements kong.MapperValue.
func (g *givenSwitch) Decode(ctx *kong.DecodeContext) error {
	if !g.isGiven && ctx.Scan.Peek().Type != kong.FlagValueToken {
		*g = givenSwitch{text: "true", isGiven: true}
		return nil
	}
	return (*given)(g).Decode(ctx)
}

// IsBool tells kong that a value is not needed.
func (g *givenSwitch) IsBool() bool { return true }
