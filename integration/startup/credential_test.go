package startup_test

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/integration/rig"
)

// R11: only a well-formed bearer in a private file is used. With anything else the
// relay runs, dials nobody and names what is wrong; it is there as soon as the file is
// put right, without a restart and without a signal.
func TestR11_CredentialFile(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.NotStarted())
	// An id with underlines: the bearer is read from its end.
	const begins = "clusterRelayToken_a_b__0.c:d_"
	digits := r.Marker("relay bearer")
	short, upper := r.Marker("bearer of 63 digits"), r.Marker("bearer in upper case")
	for _, c := range []struct {
		content string
		mode    fs.FileMode
		fault   string
	}{
		{begins + digits + "\n", 0o600, cloudly.CredentialLineEnd},
		{begins + short[:63], 0o600, cloudly.CredentialShape},
		{begins + digits, 0o644, cloudly.CredentialMode},
		// Its last digits are letters, whatever those before them are.
		{begins + upper[:62] + "AF", 0o600, cloudly.CredentialShape},
		{begins + digits + "\r\n", 0o600, cloudly.CredentialLineEnd},
		{" " + begins + digits, 0o600, cloudly.CredentialShape},
		{begins + digits, 0o640, cloudly.CredentialMode},
		{"", 0o600, cloudly.CredentialShape},
	} {
		r.WriteFile(rig.CredentialFile, []byte(c.content), c.mode)
		if r.Running() {
			r.Signal(syscall.SIGHUP)
		} else {
			r.Start()
		}
		r.WaitCheck(cloudly.Name, cloudly.CheckCredential, "failing", c.fault)
		r.WaitCheck(cloudly.Name, cloudly.CheckSession, "failing", "credential-unusable")
		if got := rig.SectionOf[cloudly.Status](r, cloudly.Name).CredentialFault; got != c.fault {
			t.Errorf("/status says %q, want %s", got, c.fault)
		}
		if page := r.Get("/readyz"); page.Code != 503 || !strings.Contains(string(page.Body), "credential-unusable") {
			t.Errorf("/readyz answers %d %s", page.Code, page.Body)
		}
	}
	r.RemoveFile(rig.CredentialFile)
	r.Signal(syscall.SIGHUP)
	r.WaitCheck(cloudly.Name, cloudly.CheckCredential, "failing", cloudly.CredentialMissing)
	if n := r.Upstream.Accepted(); n != 0 {
		t.Errorf("cloudly was dialled %d times without a usable credential", n)
	}

	if err := r.Cloudly.RotateCredentialTo(begins + digits); err != nil {
		t.Fatal(err)
	}
	r.InstallCredential(begins + digits)
	r.WaitReady()
	r.WaitCheck(cloudly.Name, cloudly.CheckCredential, "ok")
	if asked := r.Cloudly.Frames().Received(exchange); len(asked) != 1 || !strings.Contains(string(asked[0].Body), begins+digits) {
		t.Errorf("the bearer was presented %d times, or another one", len(asked))
	}
}
