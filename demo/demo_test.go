package demo

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/appliance"
)

// configured is a demonstration with the real network.
func configured(t testing.TB, to Printer) Config {
	t.Helper()
	var sockets net.ListenConfig
	return Config{
		Relay: appliance.Config{
			Build: appliance.Build{Version: "1.2.3"}, Listen: sockets.Listen, ListenPacket: sockets.ListenPacket,
			Dial: new(net.Dialer).DialContext, Wall: time.Now,
		},
		Dir: t.TempDir(), Program: "./relay", To: to, Size: 4 << 20,
	}
}

// watcher prints text and objects to two texts, keeps results, and calls a function when
// a step begins or live traffic does.
type watcher struct {
	kept
	text, lines strings.Builder
	printers    []Printer
	on          func(name string)
}

func watch(on func(name string)) *watcher {
	w := &watcher{on: on}
	w.printers = []Printer{NewText(&w.text, Terminal{}), NewJSON(&w.lines)}
	return w
}

func (w *watcher) each(f func(Printer)) {
	for _, p := range append(w.printers, &w.kept) {
		f(p)
	}
}

func (w *watcher) Open(o Opening)  { w.each(func(p Printer) { p.Open(o) }) }
func (w *watcher) Begin(r Result)  { w.each(func(p Printer) { p.Begin(r) }); w.on(r.Name) }
func (w *watcher) Step(r Result)   { w.each(func(p Printer) { p.Step(r) }) }
func (w *watcher) Live(l Live)     { w.each(func(p Printer) { p.Live(l) }); w.on(kindLive) }
func (w *watcher) Close(s Summary) { w.each(func(p Printer) { p.Close(s) }) }

// sources are where facts may come from.
var sources = append([]string{fromStatus, fromEvents, fromMetrics, fromReady, fromExplain, fromRelay, fromNodes, cloudlyName, browserName, stranger}, nodeNames...)

// The whole of it, up to live traffic and the end that is asked for then: every step
// holds and shows something, and no secret of it is shown.
func TestEverythingHoldsAndNothingSecretIsShown(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	w := watch(func(name string) {
		if name == kindLive {
			interrupt()
		}
	})
	c, err := newCluster(configured(t, w))
	defer c.close()
	if err != nil {
		t.Fatal(err)
	}
	held, err := c.show(ctx)
	if !held || err != nil {
		t.Fatalf("held %t, %v:\n%s", held, err, w.text.String())
	}
	for i, r := range w.ended {
		if r.Outcome != Held || len(r.Facts) == 0 || r.Name != w.opened.Steps[i] || r.Name != w.begun[i] {
			t.Errorf("step %+v", r)
		}
		for _, f := range r.Facts {
			if !slices.Contains(sources, f.From) || f.Says == "" {
				t.Errorf("step %s: %+v", r.Name, f)
			}
		}
	}
	if len(w.live) != 1 || w.live[0].Operator != c.relay.console.Base || len(w.live[0].Commands) != 2 ||
		w.live[0].Commands[0] != "./relay status --operator="+c.relay.address() || !strings.HasPrefix(w.live[0].Commands[1], "./relay explain --operator=") {
		t.Errorf("live %+v", w.live)
	}
	if files := filesOf(t, c.cfg.Dir); !slices.Equal(files, []string{authorityFile, credentialFile, dataFile, hubKeyFile, certificateFile, keyFile}) {
		t.Errorf("files %q", files)
	}
	known := secretsOf(t, c)
	for name, secret := range known {
		if found := shown(w.text.String()+w.lines.String(), secret); found {
			t.Errorf("%s is shown", name)
		}
		if len(secret) < 2*piece {
			t.Errorf("%s has %d bytes only: it is none", name, len(secret))
		}
	}
	if len(known) != 10 {
		t.Errorf("%d secrets are known", len(known))
	}
}

func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// piece is how much of a secret is enough to know it by.
const piece = 12

// shown reports whether a piece of a secret stands in a text.
func shown(text, secret string) bool {
	for at := 0; at+piece <= len(secret); at += piece {
		if strings.Contains(text, secret[at:at+piece]) {
			return true
		}
	}
	return false
}

// secretsOf are the secrets of a cluster, without what is public of each.
func secretsOf(t *testing.T, c *cluster) map[string]string {
	t.Helper()
	behind := func(text, separator string) string { return text[strings.LastIndex(text, separator)+1:] }
	secrets := map[string]string{"the relay's bearer": behind(c.cloudly.Authorization(), "_")}
	bearer, err := c.cloudly.DesignateIngress(nodeNames[nodeA])
	if err != nil {
		t.Fatal(err)
	}
	secrets["the ingress's bearer"] = behind(bearer, "_")
	key, err := os.ReadFile(filepath.Join(c.cfg.Dir, keyFile))
	if err != nil {
		t.Fatal(err)
	}
	hub, err := os.ReadFile(filepath.Join(c.cfg.Dir, hubKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	secrets["the hub's key"] = strings.TrimSpace(string(hub))
	lines := strings.Split(strings.TrimSpace(string(key)), "\n")
	secrets["the relay's TLS key"] = strings.Join(lines[2:len(lines)-1], "") // the first line has what every key has
	for _, m := range c.nodes {
		secrets["the token of "+m.name] = behind(m.credential.Token, "_")
		const method = "getRuntimeManagedVpnCredential"
		answer, ok := m.pallet.Frames().Answer(m.pallet.Frames().Sent(method)[0])
		x, err := readCredential(answer.Body)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		secrets["the VPN key of "+m.name] = x.Key.Secret()
	}
	return secrets
}

// Whoever interrupts a step gets the relay ended all the same, and is told what ran.
func TestAnInterruptedStepIsNamed(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	w := watch(func(name string) {
		if name == "network" {
			interrupt()
		}
	})
	cfg := configured(t, w)
	cfg.Once = true
	held, err := Run(ctx, cfg)
	if held || err != nil {
		t.Fatal(held, err)
	}
	for _, r := range w.ended {
		want := Held
		switch {
		case r.Number == 4:
			want = Interrupted
		case r.Number > 4:
			want = Skipped
		}
		if r.Outcome != want {
			t.Errorf("%s: %s, want %s; %s %s", r.Name, r.Outcome, want, r.Expected, r.Found)
		}
	}
	if w.closed.Held || w.closed.Steps[Interrupted] != 1 {
		t.Errorf("summary %+v", w.closed)
	}
}

// What the machine or the caller cannot give is an error and no finding.
func TestWhatCannotBeShownIsAnError(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, MaximumSize + 1} {
		cfg := configured(t, NewText(io.Discard, Terminal{}))
		cfg.Size = size
		if held, err := Run(t.Context(), cfg); held || err == nil {
			t.Errorf("a file of %d bytes: %t, %v", size, held, err)
		}
	}
	cfg := configured(t, NewText(&full{left: 12}, Terminal{}))
	cfg.Once = true
	if held, err := Run(t.Context(), cfg); err == nil || err.Error() != "no space left" {
		t.Errorf("an output that is full: %t, %v", held, err)
	}
	cfg = configured(t, &kept{})
	cfg.Dir = filepath.Join(cfg.Dir, "none")
	cfg.Once = true
	to := cfg.To.(*kept)
	if held, err := Run(t.Context(), cfg); held || err != nil || to.ended[0].Outcome != Failed || to.ended[1].Outcome != Skipped {
		t.Errorf("no folder: %t, %v, %+v", held, err, to.ended)
	}
}

// isMismatch reports whether a step said what it expected and what it found.
func isMismatch(err error) bool { return errors.As(err, new(*Mismatch)) }
