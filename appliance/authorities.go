package appliance

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"serve.zone/relay/duty"
)

// authorities are those that Cloudly's certificate may come from: the system's,
// and those of a PEM file. They are read again on a reload, since an authority is
// replaced while a cluster runs, and a restart would lose what is held in memory.
type authorities struct {
	file string
	wall func() time.Time
	pool atomic.Pointer[x509.CertPool] // nil without a file: the system's
	last atomic.Pointer[duty.Check]    // of the last load
}

// load reads the file. On an error what was loaded before stays.
func (a *authorities) load() error {
	err := a.read()
	c := duty.Check{Name: "cloudly-authorities", Advice: true, State: duty.OK, Since: a.wall()}
	if err != nil {
		c.State, c.Reason = duty.Failing, "not-loaded"
		c.Hint = "The file of Cloudly's authorities could not be read; those that were loaded before are trusted still. Put cloudly-ca-file right and reload."
	}
	if before := a.last.Load(); before != nil {
		c = c.After(*before)
	}
	a.last.Store(&c)
	return err
}

// check tells how the last load went.
func (a *authorities) check() duty.Check { return *a.last.Load() }

func (a *authorities) read() error {
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
