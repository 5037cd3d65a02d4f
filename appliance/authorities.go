package appliance

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// authorities are those that Cloudly's certificate may come from: the system's,
// and those of a PEM file. They are read again on a reload, since an authority is
// replaced while a cluster runs, and a restart would lose what is held in memory.
type authorities struct {
	file string
	wall func() time.Time
	pool atomic.Pointer[x509.CertPool] // nil without a file: the system's
}

// load reads the file. On an error what was loaded before stays.
func (a *authorities) load() error {
	if a.file == "" {
		return nil
	}
	pem, err := os.ReadFile(a.file)
	if err != nil {
		return fmt.Errorf("cloudly-ca-file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a container may have none
	}
	if !pool.AppendCertsFromPEM(pem) {
		return errors.New("cloudly-ca-file: holds no certificate")
	}
	a.pool.Store(pool)
	return nil
}

// config is what the next connection to Cloudly uses.
func (a *authorities) config() *tls.Config {
	return &tls.Config{RootCAs: a.pool.Load(), MinVersion: tls.VersionTLS12, Time: a.wall}
}
