package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"serve.zone/relay/operator/client"
)

const aboutStatus = `usage: relay status [--watch] [--operator=ADDRESS:PORT]
       relay status --json [--operator=ADDRESS:PORT]
       relay status --check=live|ready [--operator=ADDRESS:PORT]

Shows a running relay: first what is wrong and what to do about it, then its session to
Cloudly, the nodes, the renewals that are held, the ingress, the hub with its members,
and how long the certificate lasts. Times and ages are by the relay's own clock. Of many
nodes or members those are shown that matter most: which are not connected, and which
have the most traffic. In the tables

  NAMES LAST  is how long the names of a node last while Cloudly is away, by what is held
  WAITING     is how many of a node's requests wait for an answer, and their size
  PATH        is the largest datagram that the way to a member takes, as far as is known
  DROPPED     counts packets of a member and for it, with the reason of most

`

const aboutStatusFlags = `  --watch
      Looks again every 2 seconds, until SIGINT, SIGTERM or SIGHUP, and shows rates (the
      difference between two looks) in place of sums. A terminal is drawn anew, and what
      it has no room for is left out; otherwise each look is one more block of text. A
      relay that cannot be asked is said to be so, and asked again.
  --json
      The answer of the relay's /status, as it is.
  --check=live|ready
      For the health check of a container. live: the relay answers. ready: every
      required check holds; those that do not are said, each with what to do. A relay
      waits without being ready as long as Cloudly is away, so that live is what a
      restart may depend on.
`

const aboutStatusEnd = `
Colour is used on a terminal alone, and not where NO_COLOR is set or TERM is dumb.

Exit codes: 0 the relay was shown, however it is, or what --check asks for is so; 1 it
says itself that it is not ready, or --operator is no address and port; 2 it could not be
asked, or what answers there is no relay; 64 the command line was not understood.
`

// What --check can ask for.
const (
	checkLive  = "live"
	checkReady = "ready"
)

// statusVerb is `relay status`.
type statusVerb struct {
	Endpoint operatorFlag `embed:""`
	Watch    bool         `name:"watch"`
	JSON     bool         `name:"json"`
	Check    given        `name:"check"`
}

func (*statusVerb) name() string    { return "status" }
func (*statusVerb) summary() string { return "show a running relay, and first of all what is wrong" }
func (*statusVerb) help() string {
	return aboutStatus + aboutStatusFlags + aboutOperator() + aboutStatusEnd
}
func (v *statusVerb) fields() any { return v }

// judge knows the checks, and wants one way of showing.
func (v *statusVerb) judge() error {
	ways := 0
	for _, asked := range []bool{v.Watch, v.JSON, v.Check.isGiven} {
		if asked {
			ways++
		}
	}
	switch {
	case ways > 1:
		return errors.New("--watch, --json and --check do not go together")
	case v.Check.isGiven && v.Check.text != checkLive && v.Check.text != checkReady:
		return errors.New("--check is neither live nor ready")
	}
	return nil
}

func (v *statusVerb) run(p process) int {
	var f faults
	relay := v.Endpoint.client(&f)
	if err := f.err(); err != nil {
		sayInvalid(p.stderr, err)
		return exitConfiguration
	}
	ctx := context.Background() // each question has a limit of its own
	switch {
	case v.Check.text == checkLive:
		return p.live(relay.Live(ctx))
	case v.Check.text == checkReady:
		return p.ready(relay.Ready(ctx))
	case v.Watch:
		return watch(p, relay.Status)
	}
	text, err := relay.Status(ctx)
	if err != nil {
		return p.unasked(err)
	}
	if v.JSON {
		return p.print(string(text))
	}
	d, err := client.ReadDocument(text)
	if err != nil {
		return p.unasked(err)
	}
	columns, _ := sizeOf(p.stdout)
	return p.print(written(statusLines(look{Document: d}, columns), terminalOf(p.stdout, p.environ).Colour))
}

// written are lines as one text.
func written(lines []line, colour bool) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text(colour) + "\n")
	}
	return b.String()
}

// live says what came of asking whether the relay lives.
func (p process) live(err error) int {
	if err != nil {
		return p.unasked(err)
	}
	return p.print("live\n")
}

// exitNotReady is the exit code of a relay that says that it is not ready. It is also
// that of a configuration which is not valid; a relay that could not be asked has
// another one.
const exitNotReady = exitConfiguration

// ready says what came of asking whether the relay is ready.
func (p process) ready(r client.Readiness, err error) int {
	var against *client.NotReadyError
	switch {
	case err == nil:
		return p.print("ready\n")
	case !errors.As(err, &against):
		return p.unasked(err)
	}
	s := newSheet(0)
	s.add(piece{text: "not ready"})
	sayFindings(s, r.Against())
	if code := p.print(written(s.lines, false)); code != exitClean {
		return code
	}
	return exitNotReady
}

// lostSight says that the relay could not be asked, and since when.
func lostSight(err error, since string, columns int) []line {
	s := newSheet(columns)
	s.say(piece{bad, "WRONG"}, bad, "The relay cannot be asked%s: %s", since, plain(err))
	s.under(normal, whereItIs+" It is asked again.")
	return s.lines
}

// forSoLong is how long something lasts, for the middle of a sentence.
func forSoLong(age string) string { return fmt.Sprintf(" for %s now", age) }
