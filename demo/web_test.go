package demo

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"serve.zone/relay/simulate"
)

// The digest that is compared with is that of the bytes in the file.
func TestGenerate(t *testing.T) {
	path := filepath.Join(t.TempDir(), dataFile)
	digest, err := generate(t.Context(), path, chunk+100_000)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if sum := sha256.Sum256(content); err != nil || len(content) != chunk+100_000 || hex.EncodeToString(sum[:]) != digest {
		t.Errorf("%d bytes, digest %s, %v", len(content), digest, err)
	}
	if _, err := generate(t.Context(), path, 1); err == nil {
		t.Error("a file that exists was written over")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := generate(gone, path+"2", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits for the file any more: %v", err)
	}
}

// A download is what came, digest and all, and an answer that is no page is an error.
func TestFetch(t *testing.T) {
	path := filepath.Join(t.TempDir(), dataFile)
	digest, err := generate(t.Context(), path, 50_000)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc(filePage, func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) })
	mux.HandleFunc(samplePage, func(w http.ResponseWriter, _ *http.Request) { sample(w, path, 1000) })
	mux.HandleFunc("/short", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		w.Write([]byte("five."))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	dial := new(net.Dialer).DialContext
	if d, err := fetch(t.Context(), dial, s.URL+filePage); err != nil || d.bytes != 50_000 || d.digest != digest || d.duration <= 0 {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := fetch(t.Context(), dial, s.URL+samplePage); err != nil || d.bytes != 1000 {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := fetch(t.Context(), dial, s.URL+"/short"); err == nil || d.bytes != 5 {
		t.Errorf("a page that was cut off: %+v, %v", d, err)
	}
	if _, err := fetch(t.Context(), dial, s.URL+"/none"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("no page: %v", err)
	}
}

// The certificate of a table is found in it, and nothing else passes for one.
func TestCertificateOf(t *testing.T) {
	c := &cluster{}
	if err := c.makeAuthority(); err != nil {
		t.Fatal(err)
	}
	issued, err := c.authority.Issue(appHost)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair([]byte(issued.Chain), []byte(issued.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	route := simulate.IngressRoute{Hostname: appHost, Certificate: issued}
	got, err := certificateOf([]byte(`{"revision":1,"routes":[` + string(route.AppendJSON(nil)) + `]}`))
	if err != nil || got != fingerprint(pair.Certificate[0]) {
		t.Errorf("%q, %v", got, err)
	}
	for name, table := range map[string]string{
		"no route": `{"routes":[]}`, "no certificate": `{"routes":[{"certificate":{"chain":"none"}}]}`, "no table": `[`,
	} {
		if got, err := certificateOf([]byte(table)); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}
