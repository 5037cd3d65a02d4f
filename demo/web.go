package demo

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// webPort is where the web server listens inside node-b.
const webPort = 80

// The pages of the web server.
const (
	filePage    = "/file"
	endlessPage = "/endless" // goes on until nobody takes it any more
	samplePage  = "/sample"  // the first part of the file
	helloPage   = "/"
	hello       = "hello from node-b\n"
)

// dataFile is the file that is downloaded, in the folder of the demonstration.
const dataFile = "file.bin"

// site is a web server on node-b. It serves a real file to whoever the network lets
// through.
type site struct {
	address  netip.AddrPort
	host     string // of its URLs
	size     int64
	digest   string // SHA-256 of the file, in hex
	requests atomic.Int64
	server   *http.Server
}

// serveSite writes the file, and serves it inside the network stack of a node.
func (c *cluster) serveSite(ctx context.Context, m *member) error {
	path := filepath.Join(c.cfg.Dir, dataFile)
	digest, err := generate(ctx, path, c.cfg.Size)
	if err != nil {
		return err
	}
	s := &site{address: netip.AddrPortFrom(m.address, webPort), host: m.address.String(), size: c.cfg.Size, digest: digest}
	pages := http.NewServeMux()
	pages.HandleFunc(filePage, func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) })
	pages.HandleFunc(endlessPage, func(w http.ResponseWriter, _ *http.Request) { endless(w, path) })
	pages.HandleFunc(samplePage, func(w http.ResponseWriter, _ *http.Request) { sample(w, path, roundBytes) })
	pages.HandleFunc(helloPage, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, hello) })
	l, err := m.stack.Listen("tcp", s.address.String())
	if err != nil {
		return err
	}
	s.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.requests.Add(1)
			pages.ServeHTTP(w, r)
		}),
		ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: settleWait,
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.server.Serve(l)
	}()
	c.onClose(func() { s.server.Close(); <-ended })
	c.site = s
	return nil
}

// generate writes a file of random bytes, and returns its digest.
func generate(ctx context.Context, path string, size int64) (digest string, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	to := io.MultiWriter(f, h)
	for left := size; left > 0 && err == nil; left -= chunk {
		if err = ctx.Err(); err == nil {
			_, err = io.CopyN(to, rand.Reader, min(left, chunk))
		}
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// chunk is how much of a file is written between two looks at the context.
const chunk = 4 << 20

// endless writes a file again and again until it cannot.
func endless(w io.Writer, path string) {
	for {
		f, err := os.Open(path)
		if err != nil {
			return
		}
		_, err = io.Copy(w, f)
		f.Close()
		if err != nil {
			return
		}
	}
}

// sample writes the first bytes of a file.
func sample(w io.Writer, path string, n int64) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	io.CopyN(w, f, n)
}

// url is that of a page of the web server.
func (s *site) url(page string) string { return "http://" + s.host + page }

// download is what a client knows of a download when it is over.
type download struct {
	bytes    int64
	digest   string
	duration time.Duration
}

// megabytes is the rate in 10^6 bytes a second.
func (d download) megabytes() float64 { return float64(d.bytes) / 1e6 / d.duration.Seconds() }

// dialFunc opens a connection, such as one of a node's own network stack.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// get asks a web server for a page, over connections of its own.
func get(ctx context.Context, dial dialFunc, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true}
	return transport.RoundTrip(request)
}

// fetch downloads a page whole.
func fetch(ctx context.Context, dial dialFunc, url string) (download, error) {
	began := time.Now()
	response, err := get(ctx, dial, url)
	if err != nil {
		return download{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return download{}, fmt.Errorf("the web server answered %s", response.Status)
	}
	h := sha256.New()
	n, err := io.Copy(h, response.Body)
	return download{bytes: n, digest: hex.EncodeToString(h.Sum(nil)), duration: time.Since(began)}, err
}
