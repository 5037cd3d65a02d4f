package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"serve.zone/relay/appliance"
	"serve.zone/relay/demo"
	"serve.zone/relay/duty"
)

const aboutDemo = `usage: relay demo [--once] [--json] [--size=MIB] [--break=WHAT]

Shows the relay at work: the one that relay serve runs, in a cluster of its own that
lives in this process. Cloudly, three nodes and an ingress are simulated; they speak to
the relay over real sockets on loopback. It needs no configuration, no privilege and no
network, and leaves nothing behind: what it writes lies in a temporary folder, which is
removed.

It walks through steps, from the registration to the drain, and shows under each what it
read back from the relay's operator endpoint or from a peer's own record. A step that
does not hold says what was expected and what was found; the rest is skipped by name.
Behind the last step but one, light traffic goes on until SIGINT or SIGTERM, so that the
relay can be looked at: where its pages are is said then.

  --once
      Ends behind the last step, with no live traffic. It takes some 15 seconds.
  --json
      One object a line in place of text, told apart by "kind":
        demo  version, once, break, steps (their names in order)
        step  step (its number), name, title, outcome (held, failed, interrupted or
              skipped), seconds, evidence (a list of: from, says, values), and of a
              failed one expected and found
        live  operator (a URL), seconds, rounds, faults, fault, downloadedBytes,
              toCloudly, toNodes, packets, https; once at the beginning, with commands
              that look at the relay, then every 5 s
        end   held, seconds, steps (how many ended with which outcome)
      Members may be added. Sizes are bytes, times RFC 3339.
  --size=MIB
      How large the file is that nodes download, 1 to 1024. (default 64)
  --break=WHAT
      Has Cloudly misbehave, so that a step must fail, for those who want to see that:
        grant    a grant is missing from the first network: step download
        renewal  a renewal has a wrong digest: step hold

Colour is used on a terminal alone, and not where NO_COLOR is set or TERM is dumb.

Exit codes: 0 every step held; 1 one did not, or a signal came before the last one;
2 the temporary folder could not be made, or the output was not taken; 3 ended by a
second signal; 64 the command line was not understood.
`

// exitNotHeld is the exit code of a demonstration of which a step did not hold. It is
// also that of a configuration which is not valid, of which there is none here.
const exitNotHeld = exitConfiguration

// demoVerb is `relay demo`.
type demoVerb struct {
	Once  bool  `name:"once"`
	JSON  bool  `name:"json"`
	Size  given `name:"size"`
	Break given `name:"break"`

	size int64 // bytes, once it is judged
	show func(context.Context, demo.Config) (held bool, err error)
}

func newDemoVerb() *demoVerb { return &demoVerb{show: demo.Run} }

func (*demoVerb) name() string { return "demo" }
func (*demoVerb) summary() string {
	return "show the relay at work in a cluster of its own; start here"
}
func (*demoVerb) help() string  { return aboutDemo }
func (v *demoVerb) fields() any { return v }

// judge reads the size and knows the breaks.
func (v *demoVerb) judge() error {
	const mebibyte = 1 << 20
	v.size = demo.DefaultSize
	if v.Size.isGiven {
		n, err := strconv.ParseInt(v.Size.text, 10, 64)
		if err != nil || n < 1 || n > demo.MaximumSize/mebibyte {
			return fmt.Errorf("--size is not a number from 1 to %d", demo.MaximumSize/mebibyte)
		}
		v.size = n * mebibyte
	}
	if v.Break.isGiven && !slices.Contains(demo.Breaks(), demo.Break(v.Break.text)) {
		return fmt.Errorf("--break is none of %s", strings.Trim(fmt.Sprint(demo.Breaks()), "[]"))
	}
	return nil
}

func (v *demoVerb) run(p process) int {
	// What is secret in a demonstration is worth nothing behind it, so that dumps may
	// show it; what is wanted is that a closed output ends it in order.
	p.prepare()
	dir, err := os.MkdirTemp("", "relay-demo-")
	if err != nil {
		say(p.stderr, "the temporary folder could not be made: "+plain(err))
		return exitFailed
	}
	defer os.RemoveAll(dir)
	out := duty.NewLineWriter(p.stderr, 0)
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushWait)
		defer cancel()
		out.Close(ctx) // who would read of its error?
	}()
	// Everything that happens is shown from /events; the log has what should not.
	log := duty.NewLogger(duty.LogConfig{Out: out, Format: duty.Text, Level: slog.LevelError})
	defer log.TakeOver()()
	return v.watch(p, log, out, demo.Config{
		Relay: seams(appliance.Config{Build: thisBuild(), Log: log}),
		Dir:   dir, Program: typed(p.program), To: v.printer(p), Once: v.Once, Size: v.size, Break: demo.Break(v.Break.text),
	})
}

// fromGo matches where the go command builds what it runs: in a folder for temporary
// files, or since Go 1.24 in its cache.
var fromGo = regexp.MustCompile(`/go-build[0-9]+/b[0-9]+/exe/[^/]+$|/[0-9a-f]{2}/[0-9a-f]{64}-d/[^/]+$`)

// unquoted matches what a shell takes as it stands.
var unquoted = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]+$`)

// typed is what to type in order to run a program again that was started like this.
func typed(program string) string {
	switch {
	case program == "":
		return "relay"
	case fromGo.MatchString(filepath.ToSlash(program)):
		return "go run ./cmd/relay" // as README.md says it; the folder is gone when this process is
	case unquoted.MatchString(program):
		return program
	}
	return "'" + strings.ReplaceAll(program, "'", `'\''`) + "'"
}

// watch runs the demonstration, interrupts it at the first signal and gives it up at
// the second.
func (v *demoVerb) watch(p process, log *duty.Logger, out io.Writer, cfg demo.Config) int {
	signals, unsubscribe := p.signals()
	defer unsubscribe()
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	held, ended := false, make(chan error, 1)
	go func() {
		ended <- guarded(log, func() (err error) {
			held, err = v.show(ctx, cfg)
			return err
		})
	}()
	for {
		select {
		case err := <-ended:
			switch {
			case err != nil:
				say(out, "the demonstration could not go on: "+plain(err))
				return exitFailed
			case !held:
				return exitNotHeld
			}
			return exitClean
		case sig := <-signals:
			if ctx.Err() != nil && sig != syscall.SIGHUP {
				return exitForced
			}
			interrupt() // a terminal that was closed says SIGHUP
		}
	}
}

// printer chooses how to speak to standard output.
func (v *demoVerb) printer(p process) demo.Printer {
	if v.JSON {
		return demo.NewJSON(p.stdout)
	}
	return demo.NewText(p.stdout, terminalOf(p.stdout, p.environ))
}

// terminalOf says what an output may be sent beside plain lines.
func terminalOf(out io.Writer, environ []string) demo.Terminal {
	rewrites := isTerminal(out) && variable(environ, "TERM") != "dumb"
	return demo.Terminal{Rewrite: rewrites, Colour: rewrites && variable(environ, "NO_COLOR") == ""}
}

// isTerminal reports whether somebody may be watching: a device that is no file, which
// is what every terminal is. What else there is, such as a null device, takes anything.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	about, err := file.Stat()
	return err == nil && about.Mode()&os.ModeCharDevice != 0
}

// variable returns the value of a variable of an environment, "" when it is not set.
func variable(environ []string, name string) string {
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
