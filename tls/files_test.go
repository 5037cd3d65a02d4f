package origincert

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/duty"
)

// running runs a test with Files that look by themselves, in fake time.
func running(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); r.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		f(t, r)
	})
}

// R91: replaced files are taken up by themselves within a few seconds, on demand at
// once. A pair that is bad is refused by name, and the last good one is kept.
func TestR91_ReplacedFilesAreTakenUp(t *testing.T) {
	running(t, func(t *testing.T, r *rig) {
		first, second, third := issue(subject{}), issue(subject{}), issue(subject{})
		expired := issue(subject{to: date(2000).Add(-time.Hour)})
		r.write(first)
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		r.wantServed(first)
		r.wantEvents("tls-certificate-loaded")
		r.wantChecks("ok", "ok", "ok")

		time.Sleep(time.Minute)
		r.wantEvents()
		r.write(second)
		time.Sleep(lookEvery)
		synctest.Wait()
		r.wantServed(second)
		r.wantEvents("tls-certificate-loaded")

		r.write(expired)
		r.wantRefused(CertificateExpired)
		r.wantServed(second)
		r.wantEvents("tls-certificate-refused certificate-expired")
		r.wantChecks("ok", "failing certificate-expired", "ok")
		time.Sleep(time.Hour)
		r.wantEvents() // said once
		r.wantServed(second)

		r.put(certName, third.chain, 0o644) // the key is still that of another
		r.wantRefused(KeyMismatch)
		r.wantServed(second)
		r.wantEvents("tls-certificate-refused key-mismatch")

		r.write(third)
		time.Sleep(lookEvery)
		synctest.Wait()
		r.wantServed(third)
		r.wantEvents("tls-certificate-loaded")
		r.wantChecks("ok", "ok", "ok")
	})
}

// TestFilesReplacedOneByOneAreNoRefusal, whichever comes first and however the
// looks fall; only what still stands at the next look is refused.
func TestFilesReplacedOneByOneAreNoRefusal(t *testing.T) {
	for _, certFirst := range []bool{true, false} {
		for between := time.Duration(0); between < lookEvery; between += lookEvery / 7 {
			for phase := time.Duration(0); phase < lookEvery; phase += lookEvery / 7 {
				running(t, func(t *testing.T, r *rig) {
					old, next := issue(subject{}), issue(subject{})
					r.write(old)
					r.Reload()
					r.wantEvents("tls-certificate-loaded")
					time.Sleep(phase + time.Millisecond)
					parts := []func(){func() { r.put(certName, next.chain, 0o644) }, func() { r.put(keyName, next.pem, 0o600) }}
					if !certFirst {
						slices.Reverse(parts)
					}
					parts[0]()
					time.Sleep(between)
					parts[1]()
					time.Sleep(2 * lookEvery)
					synctest.Wait()
					r.wantServed(next)
					r.wantEvents("tls-certificate-loaded")
				})
			}
		}
	}
}

func TestWhatStandsBadIsRefusedAtTheSecondLook(t *testing.T) {
	running(t, func(t *testing.T, r *rig) {
		good := issue(subject{})
		r.write(good)
		r.Reload()
		r.wantEvents("tls-certificate-loaded")
		time.Sleep(time.Millisecond) // apart from the looks
		r.put(keyName, good.pem, 0o644)
		time.Sleep(lookEvery)
		synctest.Wait()
		r.wantEvents()
		r.wantChecks("ok", "ok", "ok")
		time.Sleep(lookEvery)
		synctest.Wait()
		r.wantEvents("tls-certificate-refused key-mode")
		r.wantChecks("ok", "failing key-mode", "ok")
		// The same bytes under the right mode are what is served already.
		r.put(keyName, good.pem, 0o600)
		time.Sleep(lookEvery)
		synctest.Wait()
		r.wantEvents("tls-certificate-refusal-lifted")
		r.wantChecks("ok", "ok", "ok")
		// Bad in another way at each look: each is looked at anew.
		r.put(keyName, good.pem, 0o640)
		time.Sleep(lookEvery)
		r.put(keyName, good.pem, 0o604)
		time.Sleep(lookEvery)
		r.remove(keyName)
		time.Sleep(lookEvery)
		synctest.Wait()
		r.wantEvents()
		time.Sleep(lookEvery)
		synctest.Wait()
		r.wantEvents("tls-certificate-refused key-unreadable")
		r.wantServed(good)
	})
}

// TestWithoutFilesThereIsNoCertificate, and the relay waits for them.
func TestWithoutFilesThereIsNoCertificate(t *testing.T) {
	running(t, func(t *testing.T, r *rig) {
		r.wantServed(nil)
		r.wantChecks("pending certificate-pending", "pending certificate-pending", "pending certificate-pending")
		if r.Names() != nil || !r.NotAfter().IsZero() || r.Matches("relay.test") {
			t.Errorf("names %v, end %s", r.Names(), r.NotAfter())
		}
		r.wantRefused(CertificateUnreadable)
		if err := r.Reload(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("reload: %v", err)
		}
		r.wantEvents("tls-certificate-refused certificate-unreadable")
		r.wantChecks("failing certificate-unreadable", "failing certificate-unreadable", "pending certificate-pending")
		good := issue(subject{})
		r.put(certName, good.chain, 0o644)
		r.wantRefused(KeyUnreadable)
		r.wantEvents("tls-certificate-refused key-unreadable")
		r.put(keyName, good.pem, 0o600)
		time.Sleep(lookEvery)
		synctest.Wait()
		r.wantServed(good)
		r.wantChecks("ok", "ok", "ok")
	})
}

// B059, B061: a certificate that is not valid yet is said to be that, with how long it
// will take, and ends nothing; a machine without a clock is ready by itself once it has
// one.
func TestB059_B061_AClockThatIsWrong(t *testing.T) {
	running(t, func(t *testing.T, r *rig) {
		good := issue(subject{from: date(2000).Add(-time.Hour), to: date(2001)})
		r.write(good)
		r.offset.Store(int64(-30 * 365 * 24 * time.Hour)) // the epoch, about
		r.wantRefused(CertificateNotYetValid)
		r.wantChecks("failing certificate-not-yet-valid", "failing certificate-not-yet-valid", "pending certificate-pending")
		time.Sleep(time.Minute)
		r.offset.Store(int64(0))
		time.Sleep(lookEvery)
		synctest.Wait()
		r.wantServed(good)
		r.wantChecks("ok", "ok", "ok")
		r.wantEvents("tls-certificate-refused certificate-not-yet-valid", "tls-certificate-loaded")
		// Stepping back again does not take it away, but is said.
		r.offset.Store(int64(-2 * time.Hour))
		time.Sleep(lookEvery)
		synctest.Wait()
		r.wantServed(good)
		r.wantChecks("failing certificate-not-yet-valid", "ok", "ok")
		check := r.Checks(r.wall())[0]
		want := fmt.Sprint((good.cert.NotBefore.Sub(r.wall())).Seconds())
		if len(check.Facts) != 2 || check.Facts[0].Key().String() != "durationSeconds" || check.Facts[0].String() != want {
			t.Errorf("facts %v, want %s s", check.Facts, want)
		}
	})
}

// TestTheEndOfACertificateIsSaid: first that it is near, then that it came, each
// once; it is served on, since a node may still take it.
func TestTheEndOfACertificateIsSaid(t *testing.T) {
	running(t, func(t *testing.T, r *rig) {
		begin := time.Now()
		day := 24 * time.Hour
		good := issue(subject{from: begin, to: begin.Add(90 * day)})
		r.write(good)
		r.Reload()
		r.wantEvents("tls-certificate-loaded")
		// The wall clock goes ahead of the looks, or there were millions of them.
		ahead := func(d time.Duration) {
			r.offset.Add(int64(d))
			time.Sleep(2 * lookEvery)
			synctest.Wait()
		}
		ahead(75*day - time.Minute)
		r.wantEvents()
		r.wantChecks("ok", "ok", "ok")
		ahead(2 * time.Minute)
		r.wantEvents("tls-certificate-expires-soon")
		r.wantChecks("ok", "ok", "failing certificate-expires-soon")
		ahead(15 * day)
		r.wantEvents("tls-certificate-expired")
		r.wantServed(good)
		r.wantChecks("failing certificate-expired", "ok", "failing certificate-expires-soon")
		if since := r.Checks(r.wall())[0].Since; !since.Equal(good.cert.NotAfter) {
			t.Errorf("expired since %s", since)
		}
		if left := remaining(r); left > 0 || left < -120 {
			t.Errorf("%v s remain", left)
		}
		next := issue(subject{from: r.wall(), to: r.wall().Add(day)})
		r.write(next)
		ahead(0)
		r.wantServed(next)
		r.wantEvents("tls-certificate-loaded")
		r.wantChecks("ok", "ok", "ok")
		ahead(day) // a machine that slept over the end
		r.wantEvents("tls-certificate-expired")
	})
}

// TestAgesOfChecks are those of what happened, not of when somebody asked.
func TestAgesOfChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		const served, files, renewal = 0, 1, 2
		want := func(check int, reason string, since time.Time) {
			t.Helper()
			if c := r.Checks(r.wall())[check]; c.Reason != reason || !c.Since.Equal(since) {
				t.Errorf("%s: %q since %s, want %q since %s", c.Name, c.Reason, c.Since, reason, since)
			}
		}
		happens := func(do func()) time.Time {
			at := r.wall()
			do()
			time.Sleep(time.Hour)
			return at
		}
		begin := happens(func() {})
		for check := served; check <= renewal; check++ {
			want(check, "certificate-pending", begin)
		}
		good := issue(subject{from: r.wall(), to: r.wall().Add(60 * time.Hour)})
		taken := happens(func() { r.write(good); r.Reload() })
		want(served, "", taken)
		want(files, "", taken)
		want(renewal, "", taken)
		want(files, "key-mode", happens(func() { r.put(keyName, good.pem, 0o644); r.Reload() }))
		lifted := happens(func() { r.put(keyName, good.pem, 0o600); r.Reload() })
		want(files, "", lifted)
		happens(func() { r.Reload() })
		want(files, "", lifted)
		time.Sleep(48 * time.Hour)
		want(renewal, "certificate-expires-soon", good.cert.NotAfter.Add(-10*time.Hour))
		want(served, "", taken)
		late := issue(subject{from: r.wall().Add(-99 * time.Hour), to: r.wall().Add(9 * time.Hour)})
		taken = happens(func() { r.write(late); r.Reload() })
		want(renewal, "certificate-expires-soon", taken)
		want(files, "", taken)
	})
}

func remaining(r *rig) float64 {
	for _, f := range r.Files.Metrics().Snapshot() {
		if f.Name == "relay_tls_certificate_remaining_seconds" {
			return f.Samples[0].Value
		}
	}
	return 1e9
}

// TestAFileSystemThatHangs holds up nobody: a reload has an end, handshakes go on,
// there is never more than one read, and what it brings at last is used.
func TestAFileSystemThatHangs(t *testing.T) {
	running(t, func(t *testing.T, r *rig) {
		good, next := issue(subject{}), issue(subject{})
		r.write(good)
		r.Reload()
		r.wantEvents("tls-certificate-loaded")
		r.write(next)
		r.disk.mu.Lock()
		r.disk.hang = make(chan struct{})
		before := r.disk.reads
		r.disk.mu.Unlock()
		begin := time.Now()
		err := r.Reload()
		if took := time.Since(begin); !errors.Is(err, errHung) || took > 2*readWait {
			t.Errorf("reload: %v after %s", err, took)
		}
		r.wantServed(good)
		r.wantEvents("tls-certificate-refused certificate-unreadable")
		time.Sleep(10 * time.Minute)
		r.disk.mu.Lock()
		if r.disk.reads != before+1 {
			t.Errorf("%d reads were begun", r.disk.reads-before)
		}
		close(r.disk.hang)
		r.disk.hang = nil
		r.disk.mu.Unlock()
		time.Sleep(2 * lookEvery)
		synctest.Wait()
		r.wantServed(next)
		r.wantEvents("tls-certificate-loaded")
	})
}

// R18: the origin is compared with the certificate's names by the rules that clients
// have.
func TestR18_TheOriginIsCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.write(issue(subject{names: []string{"relay.a.zone.test", "*.b.zone.test"}, addresses: []net.IP{{10, 0, 4, 7}}}))
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		for host, want := range map[string]bool{
			"relay.a.zone.test": true, "RELAY.a.zone.test": true, "x.b.zone.test": true, "10.0.4.7": true,
			"relay.c.zone.test": false, "a.zone.test": false, "x.y.b.zone.test": false, "common.test": false, "10.0.4.8": false, "": false,
		} {
			if got := r.Matches(host); got != want {
				t.Errorf("%s: %v", host, got)
			}
		}
		if want := []string{"relay.a.zone.test", "*.b.zone.test", "10.0.4.7"}; !slices.Equal(r.Names(), want) {
			t.Errorf("names %q", r.Names())
		}
		r.write(issue(subject{names: []string{"*.b.zone.test"}}))
		r.Reload()
		loaded := r.events.Since(0).Events
		if got := loaded[len(loaded)-1].Fields[0].String(); got != "b.zone.test" {
			t.Errorf("the event names %q", got)
		}
		r.Names()[0] = "changed.test"
		if r.Names()[0] != "*.b.zone.test" || !r.NotAfter().Equal(date(2100)) {
			t.Error("what is shown can be changed")
		}
	})
}

// TestTheKeyIsKeptNowhere: its text is zeroed after every look, good or bad, and
// no part of it is in what anybody is shown.
func TestTheKeyIsKeptNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		good, other := issue(subject{}), issue(subject{})
		var shown strings.Builder
		show := func(err error) {
			fmt.Fprintln(&shown, err)
			text, _ := json.Marshal(r.Files.Status(r.wall()))
			shown.Write(text)
			fmt.Fprintf(&shown, "%+v %v", r.Checks(r.wall()), r.events.Since(0))
		}
		for _, change := range []func(){
			func() { r.write(good) },
			func() { r.put(keyName, other.pem, 0o600) },
			func() { r.put(keyName, good.pem, 0o644) },
			func() { r.put(keyName, good.pem[:100], 0o600) },
			func() { r.put(keyName, append(bytes.Clone(good.pem), good.pem...), 0o600) },
			func() { r.put(certName, append(bytes.Clone(good.chain), good.pem...), 0o644) },
			func() { r.write(good) },
		} {
			change()
			show(r.Reload())
		}
		shown.WriteString(r.log.String())
		if len(r.keys) != 7 {
			t.Fatalf("the key was read %d times", len(r.keys))
		}
		for i, text := range r.keys {
			if !bytes.Equal(text, make([]byte, len(text))) {
				t.Errorf("look %d left the key's text", i)
			}
		}
		for _, i := range []*issued{good, other} {
			block, _ := pem.Decode(i.pem)
			text := base64.StdEncoding.EncodeToString(block.Bytes)
			for at := 0; at+16 <= len(text); at += 8 {
				if strings.Contains(shown.String(), text[at:at+16]) {
					t.Errorf("a part of the key is shown")
				}
			}
		}
	})
}

// R95: the certificate that is served, the one that was refused and why, are shown as
// one document with their checks.
func TestR95_StatusAndDuty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		d := Duty{Source: r.Files, Wall: r.wall}
		if got, want := d.Status(), any(Status{State: StatePending, Names: []string{}, Since: r.wall()}); !cmp.Equal(got, want) {
			t.Errorf("status %+v", got)
		}
		good := issue(subject{})
		r.write(good)
		r.Reload()
		taken := r.wall()
		time.Sleep(time.Hour)
		r.put(keyName, good.pem, 0o666)
		r.Reload()
		sections, err := duty.Assemble(d)
		if err != nil || len(sections) != 1 || sections[0].Name != "tls" {
			t.Fatal(sections, err)
		}
		want := Status{State: "valid", Names: []string{"relay.test"}, NotBefore: date(1999), NotAfter: date(2100), Since: taken,
			Refused: "key-mode", RefusedSince: r.wall()}
		if diff := cmp.Diff(want, sections[0].Value); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		readiness := duty.Ask(r.wall(), d)
		var names []string
		for _, f := range readiness.Findings {
			names = append(names, fmt.Sprint(f.Check, " ", f.Advice, " ", f.State))
		}
		if diff := cmp.Diff([]string{"certificate false ok", "certificate-files true failing", "certificate-renewal true ok"}, names); diff != "" || !readiness.Ready {
			t.Errorf("ready %v, checks (-want +got):\n%s", readiness.Ready, diff)
		}
		d.DropCustody("relay-node-unknown")
		if err := d.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		r.wantServed(good)
		counts := map[string]float64{}
		for _, f := range r.Files.Metrics().Snapshot() {
			for _, s := range f.Samples {
				name := f.Name
				for _, l := range s.Labels {
					name += " " + l.Value
				}
				counts[name] = s.Value
			}
		}
		if counts["relay_tls_loaded_pairs_total"] != 1 || counts["relay_tls_refused_pairs_total key-mode"] != 1 || counts["relay_tls_refused_pairs_total key-mismatch"] != 0 {
			t.Errorf("counts %v", counts)
		}
	})
}
