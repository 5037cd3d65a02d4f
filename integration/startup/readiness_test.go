package startup_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	origincert "serve.zone/relay/tls"
)

// wantRed waits until one required check, as "duty/check", fails or waits for this
// reason, and holds every place that tells of readiness to it.
func wantRed(t *testing.T, r *rig.Rig, check, state, reason string) {
	t.Helper()
	duty, name, _ := strings.Cut(check, "/")
	found := r.WaitCheck(duty, name, state, reason)
	if found.Advice || found.Hint == "" {
		t.Errorf("%s is said as %+v", check, found)
	}
	if against := r.Readiness().Against(); !slices.Contains(against, check+": "+state+" "+reason) {
		t.Errorf("%s %s: against readiness stands %q", check, reason, against)
	}
	if page := r.Get("/readyz"); page.Code != 503 || !strings.Contains(string(page.Body), "\n"+duty+" "+name+": "+reason+": ") {
		t.Errorf("%s %s: /readyz answers %d %s", check, reason, page.Code, page.Body)
	}
	if ready, ok := r.Metrics().Value("relay_ready"); !ok || ready != 0 {
		t.Errorf("%s %s: relay_ready is %v", check, reason, ready)
	}
	if ready := r.Status().At("readiness", "ready"); ready != false {
		t.Errorf("%s %s: /status says ready: %v", check, reason, ready)
	}
	// A relay that waits is alive: nobody may restart it for that.
	for _, path := range []string{"/livez", "/healthz"} {
		if page := r.Get(path); page.Code != 200 {
			t.Errorf("%s %s: %s answers %d", check, reason, path, page.Code)
		}
	}
}

// wantGreen waits until nothing is against readiness, and holds every place to it.
func wantGreen(t *testing.T, r *rig.Rig) {
	t.Helper()
	r.WaitReady()
	if page := r.Get("/readyz"); page.Code != 200 || string(page.Body) != "ok\n" {
		t.Errorf("/readyz answers %d %s", page.Code, page.Body)
	}
	if ready, ok := r.Metrics().Value("relay_ready"); !ok || ready != 1 {
		t.Errorf("relay_ready is %v", ready)
	}
}

// R95: every required check, green, red for each cause that can be had from outside,
// and green again. A required check that no case turns red fails this test.
func TestR95_RequiredChecks(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	waitConfigured(r)
	wantGreen(t, r)
	untouched := required(r)

	for _, c := range []struct {
		check, state, reason string
		red, green           func()
	}{
		{"cloudly/cloudly-session", "failing", "dial-failed", r.Upstream.Outage, func() { resume(r); afresh(r) }},
		{"cloudly/cloudly-refusal", "failing", string(contract.MajorMismatch), func() {
			r.Cloudly.Script(register, simulate.RefuseProtocol(contract.MajorMismatch))
			from := r.NextSeq()
			r.Upstream.Cut()
			r.WaitEvent(string(cloudly.EventSessionLost), from)
			afresh(r)
		}, func() { restart(t, r) }},
		{"cloudly/cloudly-refusal", "failing", string(contract.RelayNodeUnknown), func() {
			if err := r.Cloudly.RemoveNode(rig.RelayNode); err != nil {
				t.Fatal(err)
			}
			r.Configure(documentOf(blockOf(elsewhere)))
		}, func() {
			if _, err := r.Cloudly.EnrollNode(rig.RelayNode); err != nil {
				t.Fatal(err)
			}
			r.Configure(nil)
		}},
		{"tls/certificate", "failing", origincert.CertificateExpired.String(), func() { installShort(t, r) }, func() {
			r.InstallCertificate(r.Issue(rig.Leaf{}))
			r.Signal(syscall.SIGHUP)
		}},
		{"origin/origin", "failing", "origin-mismatch", func() {
			r.InstallCertificate(r.Issue(rig.Leaf{Names: []string{"other.example"}}))
			r.Signal(syscall.SIGHUP)
		}, func() {
			r.InstallCertificate(r.Issue(rig.Leaf{}))
			r.Signal(syscall.SIGHUP)
		}},
	} {
		c.red()
		wantRed(t, r, c.check, c.state, c.reason)
		c.green()
		wantGreen(t, r)
		delete(untouched, c.check)
	}

	// The rest only an end turns red. A push that is in flight holds it up until node-b
	// answers.
	node := newPuppet(t, r, "node-b")
	pushed, ctx := make(chan error, 1), r.Soon()
	go func() { _, err := r.Cloudly.CallNode(ctx, "node-b", assign, member); pushed <- err }()
	request := node.next()
	r.Signal(syscall.SIGTERM)
	for _, check := range []string{"relay/serving", "listener/bound", "operator/staying"} {
		wantRed(t, r, check, "failing", "draining")
		delete(untouched, check)
	}
	if draining := r.Status().At("draining"); draining != true {
		t.Errorf("/status says draining: %v", draining)
	}
	node.answer(request, `{}`)
	if err := <-pushed; err != nil {
		t.Errorf("the push that was in flight: %v", err)
	}
	if code := r.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for check := range untouched {
		t.Errorf("no case turns %s red", check)
	}
}

// required returns the required checks of the moment, as "duty/check".
func required(r *rig.Rig) map[string]bool {
	names := map[string]bool{}
	for _, f := range r.Readiness().Findings {
		if !f.Advice {
			names[f.Duty+"/"+f.Check] = true
		}
	}
	return names
}

func restart(t *testing.T, r *rig.Rig) {
	t.Helper()
	r.Restart()
	waitConfigured(r)
}

// installShort installs a certificate that will soon have expired, and sees the relay
// take it up before that.
func installShort(t *testing.T, r *rig.Rig) {
	t.Helper()
	for life := 2 * time.Second; life < time.Minute; life *= 2 {
		from := r.NextSeq()
		r.InstallCertificate(r.Issue(rig.Leaf{NotAfter: time.Now().Add(life)}))
		r.Signal(syscall.SIGHUP)
		r.WaitCheck(origincert.Name, "certificate-renewal", "failing")
		for _, e := range r.Events(from) {
			if e.Type == string(origincert.EventLoaded) {
				return
			}
		}
	}
	t.Fatal("no certificate was taken up within its life")
}
