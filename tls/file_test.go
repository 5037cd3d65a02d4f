package origincert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, size int, mode fs.FileMode) {
		if err := os.WriteFile(path(name), bytes.Repeat([]byte("x"), size), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("private", 10, 0o600)
	write("open", 10, 0o644)
	write("empty", 0, 0o600)
	write("largest", maximumFile, 0o600)
	write("larger", maximumFile+1, 0o600)
	if err := os.Symlink("private", path("link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		size int
		mode fs.FileMode
		err  string // part of the error; "" for none
	}{
		{"private", 10, 0o600, ""}, {"open", 10, 0o644, ""}, {"empty", 0, 0o600, ""}, {"largest", maximumFile, 0o600, ""},
		{"link", 10, 0o600, ""}, // the mode is the file's, not the link's
		{"larger", 0, 0, "larger than 262144 bytes"}, {"pipe", 0, 0, "not a regular file"}, {".", 0, 0, "not a regular file"},
		{"missing", 0, 0, "no such file"},
	} {
		f, err := ReadFile(path(test.name))
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) || f.Content != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if err != nil || len(f.Content) != test.size || f.Mode != test.mode {
			t.Errorf("%s: %d bytes, mode %s, %v", test.name, len(f.Content), f.Mode, err)
		}
	}
	if _, err := ReadFile("/dev/null"); err == nil {
		t.Error("a device was read")
	}
	// It says that it is empty, and is not.
	if _, err := ReadFile("/proc/self/status"); !errors.Is(err, errGrown) {
		t.Errorf("a file that grows: %v", err)
	}
}

// R91: with real files and real TLS new connections get the new certificate, a
// connection that stands lives on, and files swapped as a mounted secret is, by one
// link, are taken up without being asked.
func TestR91_HotReloadOnTheWire(t *testing.T) {
	dir := t.TempDir()
	version := func(name string, i *issued) {
		folder := filepath.Join(dir, name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, content := range map[string][]byte{"tls.crt": i.chain, "tls.key": i.pem} {
			if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		// Renamed over the link that stands: one step, as a mounted secret does it.
		next := filepath.Join(dir, "next")
		if err := errors.Join(os.Symlink(name, next), os.Rename(next, filepath.Join(dir, "data"))); err != nil {
			t.Fatal(err)
		}
	}
	root := issue(subject{authority: true, names: []string{"root.test"}})
	old, renewed := issue(subject{issuer: root}), issue(subject{issuer: root})
	expired := issue(subject{issuer: root, to: date(2001)})
	version("one", old)
	f := NewFiles(FilesConfig{CertFile: filepath.Join(dir, "data", "tls.crt"), KeyFile: filepath.Join(dir, "data", "tls.key")})
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	address := echoServer(t, f)
	roots := x509.NewCertPool()
	roots.AddCert(root.cert)
	dial := func() *tls.Conn {
		t.Helper()
		c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: "relay.test"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	wantLeaf := func(c *tls.Conn, want *issued) {
		t.Helper()
		if got := c.ConnectionState().PeerCertificates[0]; !got.Equal(want.cert) {
			t.Errorf("served %s, want %s", got.SerialNumber, want.cert.SerialNumber)
		}
	}
	stands := dial()
	wantLeaf(stands, old)

	version("two", renewed)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.Run(ctx) }()
	deadline := time.Now().Add(10 * lookEvery)
	for f.served() != renewed.cert.SerialNumber.Int64() && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	<-ended
	wantLeaf(dial(), renewed)

	version("three", expired)
	var refused Refusal
	if err := f.Reload(); !errors.As(err, &refused) || refused != CertificateExpired {
		t.Errorf("reload: %v", err)
	}
	wantLeaf(dial(), renewed)

	if _, err := io.WriteString(stands, "still here"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len("still here"))
	if _, err := io.ReadFull(stands, got); err != nil || string(got) != "still here" {
		t.Errorf("the old connection says %q, %v", got, err)
	}
}

// served is the serial number of the certificate that is served.
func (f *Files) served() int64 { return f.current.Load().leaf.SerialNumber.Int64() }

// echoServer answers every TLS connection with what it says.
func echoServer(t *testing.T, f *Files) (address string) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: f.GetCertificate})
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				go func() { <-t.Context().Done(); c.Close() }()
				io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() { l.Close(); conns.Wait() })
	return l.Addr().String()
}
