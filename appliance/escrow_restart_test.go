package appliance

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/escrow"
)

// R55: what a relay holds while Cloudly is away goes with its process. The one that is
// started after it gives no node anything, before Cloudly is back; and neither has
// written a file: not where its settings and its credential lie, and not where
// programs keep what they want to find again.
func TestR55_ARestartWithoutCloudly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var cfg Config
		r := newRig(t, change{idle: true, relay: func(c *Config) { cfg = *c }})
		elsewhere := t.TempDir()
		for _, name := range []string{"HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"} {
			t.Setenv(name, elsewhere)
		}
		t.Chdir(elsewhere)
		given, nothing := filesIn(t, r.dir), filesIn(t, elsewhere)

		r.start()
		r.registered(0)
		nodes := r.projected(3)
		time.Sleep(12 * time.Minute)
		r.cloudly.Outage()
		time.Sleep(20 * time.Minute)
		had := len(nodes[0].Judgements())
		if n := r.metric("relay_escrow_pushed_renewals_total"); had != 3 || n != 2*len(nodes) {
			t.Fatalf("before: a node was given %d renewals, the relay pushed %d", had, n)
		}

		if err := r.halt(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		r.rec = &recorder{}
		var err error
		if r.relay, err = build(cfg, recorderKinds, func(a *Appliance) []part { return []part{r.rec.part(a)} }); err != nil {
			t.Fatal(err)
		}
		r.start()
		time.Sleep(time.Hour)
		for i, p := range nodes {
			if n := len(p.Judgements()); n != had || p.Dials() < 3 {
				t.Errorf("node-%d was given %d renewals by a relay that holds none, in %d sockets", i, n-had, p.Dials())
			}
		}
		if s := r.section(escrow.Name); s["runs"] != 0.0 || s["renewals"] != 0.0 || s["heldBytes"] != 0.0 || fmt.Sprint(s["nodes"]) != "[]" {
			t.Errorf("after: %v", s)
		}
		if diff := cmp.Diff(given, filesIn(t, r.dir)); diff != "" {
			t.Errorf("files of the relay (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(nothing, filesIn(t, elsewhere)); diff != "" {
			t.Errorf("files elsewhere (-before +after):\n%s", diff)
		}

		// Cloudly hands over anew what the next outage needs.
		r.cloudly.Return()
		time.Sleep(3 * time.Minute)
		if s := r.section(escrow.Name); s["runs"] != 3.0 {
			t.Errorf("after the return: %v", s)
		}
		r.wantNoViolations(nodes...)
	})
}

// filesIn returns what stands in a folder and below: of each file its mode, when it
// was changed, and its content.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files[path] = fmt.Sprint(info.Mode(), info.ModTime())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			files[path] += " " + string(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
