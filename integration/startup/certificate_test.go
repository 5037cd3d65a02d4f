package startup_test

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/appliance"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	origincert "serve.zone/relay/tls"
)

// served returns the certificate that a new connection gets.
func served(t *testing.T, r *rig.Rig) []byte {
	t.Helper()
	conn := r.DialTLS()
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Raw
}

// leafOf returns the certificate of a pair.
func leafOf(t *testing.T, p rig.Pair) []byte {
	t.Helper()
	block, _ := pem.Decode(p.Certificate)
	if block == nil {
		t.Fatal("no certificate")
	}
	return block.Bytes
}

// wantStands holds a node to the socket it had, and to a message in each direction.
func wantStands(t *testing.T, r *rig.Rig, node *simulate.Pallet, socket int) {
	t.Helper()
	if now, ok := node.Registered(); !ok || now != socket {
		t.Errorf("the node came over socket %d and is now on %d", socket, now)
	}
	if _, err := node.Send(r.Soon(), report, member); err != nil {
		t.Errorf("a report: %v", err)
	}
	if _, err := r.Cloudly.CallNode(r.Soon(), "node-a", assign, member); err != nil {
		t.Errorf("a push: %v", err)
	}
}

// R91: files that are replaced are seen without a signal and without a restart. New
// connections get the new certificate; a socket that stands goes on under the old one.
func TestR91_ReplacedFiles(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	node := r.Node("node-a")
	socket, _ := node.Registered()
	before, from := served(t, r), r.NextSeq()
	next := r.Issue(rig.Leaf{})
	if bytes.Equal(before, leafOf(t, next)) {
		t.Fatal("the two certificates are the same")
	}
	r.InstallCertificate(next)
	r.WaitEvent(string(origincert.EventLoaded), from)
	if !bytes.Equal(served(t, r), leafOf(t, next)) {
		t.Error("a new connection gets another certificate")
	}
	wantStands(t, r, node, socket)
	r.WaitReady()
}

// R91: SIGHUP has the files read at once. What is not good is refused by name and named
// as advice, the last good pair is served on, and sockets stand through all of it.
func TestR91_RefusedPairs(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	node := r.Node("node-a")
	socket, _ := node.Registered()
	good := r.Issue(rig.Leaf{Names: []string{rig.OriginHost, "*.unused.example"}})
	r.InstallCertificate(good)
	from := r.NextSeq()
	r.Signal(syscall.SIGHUP)
	r.WaitEvent(string(origincert.EventLoaded), from)
	if !bytes.Equal(served(t, r), leafOf(t, good)) {
		t.Error("a new connection gets another certificate after SIGHUP")
	}

	now, other := time.Now(), r.Issue(rig.Leaf{})
	for _, c := range []struct {
		name    string
		install func()
		want    origincert.Refusal
	}{
		{"expired", func() {
			r.InstallCertificate(r.Issue(rig.Leaf{NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(-time.Hour)}))
		}, origincert.CertificateExpired},
		{"not yet valid", func() {
			r.InstallCertificate(r.Issue(rig.Leaf{NotBefore: now.Add(time.Hour), NotAfter: now.Add(2 * time.Hour)}))
		}, origincert.CertificateNotYetValid},
		{"another key", func() { r.WriteFile(rig.CertificateFile, other.Certificate, 0o644) }, origincert.KeyMismatch},
		{"half a certificate", func() {
			r.WriteFile(rig.CertificateFile, other.Certificate[:len(other.Certificate)/2], 0o644)
		}, origincert.CertificateMalformed},
		{"a key that others may read", func() { r.InstallCertificate(other); r.WriteFile(rig.KeyFile, other.Key, 0o644) }, origincert.KeyMode},
		{"no key", func() { r.RemoveFile(rig.KeyFile) }, origincert.KeyUnreadable},
	} {
		from := r.NextSeq()
		c.install()
		r.Signal(syscall.SIGHUP)
		if told := r.WaitEvent(string(origincert.EventRefused), from); told.Text("reason") != c.want.String() {
			t.Errorf("%s: the event says %v", c.name, told.Fields)
		}
		r.WaitCheck(origincert.Name, "certificate-files", "failing", c.want.String())
		if !bytes.Equal(served(t, r), leafOf(t, good)) {
			t.Errorf("%s: a new connection gets another certificate", c.name)
		}
		if !r.Ready() {
			t.Errorf("%s: not ready, although the last good pair is served: %q", c.name, r.Readiness().Against())
		}
	}
	if got, _ := r.Metrics().Value("relay_tls_loaded_pairs_total"); got != 2 {
		t.Errorf("%v pairs were taken up, want the first and the good one", got)
	}

	from = r.NextSeq()
	r.InstallCertificate(other)
	r.Signal(syscall.SIGHUP)
	r.WaitEvent(string(origincert.EventLoaded), from)
	r.WaitCheck(origincert.Name, "certificate-files", "ok")
	if !bytes.Equal(served(t, r), leafOf(t, other)) {
		t.Error("a new connection gets the old certificate")
	}
	wantStands(t, r, node, socket)
}

// R91, R18: a certificate for another host is a good pair and is served; that nodes are
// told another name is what readiness says.
func TestR91_R18_AnotherHost(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	for _, c := range []struct{ name, state string }{{"other.example", "failing"}, {rig.OriginHost, "ok"}} {
		from := r.NextSeq()
		r.InstallCertificate(r.Issue(rig.Leaf{Names: []string{c.name}}))
		r.Signal(syscall.SIGHUP)
		r.WaitEvent(string(origincert.EventLoaded), from)
		r.WaitCheck("origin", "origin", c.state)
	}
	if status := rig.SectionOf[appliance.OriginStatus](r, "origin"); !status.Matches {
		t.Errorf("/status says %+v", status)
	}
	r.WaitReady()
}

// R91: a relay that has no certificate yet runs, fails handshakes, and names what is
// missing; it is there as soon as the files are.
func TestR91_NoCertificateYet(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.NotStarted())
	pair := r.Issue(rig.Leaf{})
	r.RemoveFile(rig.CertificateFile)
	r.Start()
	r.WaitCheck(origincert.Name, "certificate", "failing", origincert.CertificateUnreadable.String())
	r.WaitCheck("origin", "origin", "pending", "certificate-pending")
	r.WaitCheck("cloudly", "cloudly-session", "ok")
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: rig.DefaultWait}, "tcp4", r.ListenAddress(), r.ClientTLS())
	if err == nil {
		conn.Close()
	}
	if alert := (*net.OpError)(nil); !errors.As(err, &alert) || alert.Op != "remote error" {
		t.Errorf("a handshake without a certificate ends with %v, want an alert", err)
	}
	r.InstallCertificate(pair)
	r.Signal(syscall.SIGHUP)
	r.WaitReady()
	r.Node("node-a")
}
