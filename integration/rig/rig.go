package rig

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"serve.zone/relay/simulate"
)

const (
	// OriginHost is the host of the relay's origin, for which its certificate is.
	OriginHost = "relay.cluster.example"
	// RelayNode is the node that the relay runs on. It is enrolled.
	RelayNode = "node-relay"

	// bearerBegins is how the relay's bearers begin; the rest of one is secret
	// (contract §5.1).
	bearerBegins = "clusterRelayToken_relay_credential-1_"
	// nodeTokenBegins is how the simulated Cloudly's node tokens begin.
	nodeTokenBegins = "palletToken_"
)

// Rig is a relay in a process of its own with simulated peers around it, for one
// test. Its methods belong to the test's goroutine; they end the test when they
// cannot do what they say.
type Rig struct {
	// Cloudly is what the relay has a session with.
	Cloudly *simulate.Cloudly
	// Upstream is the proxy between the two.
	Upstream *Upstream
	// Authority signs the certificates of both.
	Authority *Authority

	t        testing.TB
	options  *options
	dir      string
	ledger   *ledger
	secrets  *secrets
	settings map[string]string
	ports    []*port
	origin   string // "" until AnyPort has learned it
	enable   bool   // the origin is to be published when it is known

	stdout, stderr capture
	stacks         []byte   // the end of stderr, of a relay that hung
	process        *process // nil while none runs
	expected       bool     // the test has ended the process, or waits for its end
	operator       string   // where the operator endpoint is bound
	// listen is where the node listener is bound. Dials of nodes read it.
	listen atomic.Pointer[string]

	nodes   []*simulate.Pallet
	sockets []*Socket
}

// New makes a rig and, unless an option says otherwise, starts its relay: the
// operator endpoint answers then. Whether the relay is ready is for the test to
// wait for.
//
// At the end of the test the relay is stopped by SIGTERM and must exit with 0. It
// must have written no file and shown no secret, and peers must have noticed no
// violation. When the test has failed, the end of the log is shown.
func New(t testing.TB, change ...Option) *Rig {
	t.Helper()
	o := &options{settings: map[string]string{}, program: relayBinary, stopWait: stopWait}
	for _, apply := range change {
		apply(o)
	}
	r := &Rig{t: t, options: o, dir: t.TempDir(), secrets: newSecrets(), settings: map[string]string{}}
	t.Cleanup(r.end)
	if err := r.prepare(); err != nil {
		t.Fatal(err)
	}
	for _, prepare := range o.prepare {
		prepare(r)
	}
	if !o.notStarted {
		r.Start()
	}
	return r
}

// prepare makes everything but the relay.
func (r *Rig) prepare() error {
	var err error
	if r.ledger, err = newLedger(r.dir, "etc", "home", "tmp", "work"); err != nil {
		return err
	}
	if r.Authority, err = NewAuthority(); err != nil {
		return err
	}
	listen, operator := hostPort(loopback, 0), hostPort(loopback, 0)
	if !r.options.anyPort {
		if listen, err = r.freeAddress(); err != nil {
			return err
		}
		if operator, err = r.freeAddress(); err != nil {
			return err
		}
		r.operator = operator
		r.bound(listen)
	}
	url, bearer, err := r.prepareCloudly()
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"cloudly-url": url, "node-id": RelayNode, "allow-loopback": "true",
		"listen": listen, "operator-listen": operator,
		"credential-file": r.Path(CredentialFile), "tls-cert-file": r.Path(CertificateFile), "tls-key-file": r.Path(KeyFile),
		// Whatever there is to leak should be searched.
		"log-level": "debug",
	} {
		r.settings[name] = value
	}
	if !r.options.plain {
		r.settings["cloudly-ca-file"] = r.Path(AuthorityFile)
	}
	for _, name := range r.options.without {
		delete(r.settings, name)
	}
	maps.Copy(r.settings, r.options.settings)
	if err := r.write(AuthorityFile, r.Authority.PEM(), 0o644); err != nil {
		return err
	}
	if err := r.write(CredentialFile, []byte(bearer), 0o600); err != nil {
		return err
	}
	pair, err := r.Authority.Issue(Leaf{Names: []string{OriginHost}, Addresses: []net.IP{net.ParseIP(loopback)}})
	if err != nil {
		return err
	}
	return r.install(pair)
}

// prepareCloudly makes Cloudly and the way to it, and returns the relay's URL and
// bearer.
func (r *Rig) prepareCloudly() (url, bearer string, err error) {
	bearer = r.NewBearer()
	placeholder := originOf(hostPort(loopback, 1)) // replaced before the relay hears of it
	cfg := simulate.CloudlyConfig{Wall: time.Now, AllowLoopback: true, Authorization: bearer, Origin: r.origin}
	if r.origin == "" {
		cfg.Origin = placeholder
	}
	url = "http://"
	if !r.options.plain {
		url = "https://"
		pair, err := r.Authority.Issue(Leaf{Addresses: []net.IP{net.ParseIP(loopback)}})
		if err != nil {
			return "", "", err
		}
		certificate, err := pair.TLS()
		if err != nil {
			return "", "", fmt.Errorf("rig: %w", err)
		}
		cfg.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	}
	for _, change := range r.options.cloudly {
		change(&cfg)
	}
	r.enable = cfg.Origin == placeholder
	if r.Cloudly, err = simulate.NewCloudly(cfg); err != nil {
		return "", "", fmt.Errorf("rig: %w", err)
	}
	listener, err := net.Listen("tcp4", hostPort(loopback, 0))
	if err != nil {
		return "", "", fmt.Errorf("rig: %w", err)
	}
	if err := r.Cloudly.Serve(listener); err != nil {
		return "", "", fmt.Errorf("rig: %w", err)
	}
	if _, err := r.Cloudly.EnrollNode(RelayNode); err != nil {
		return "", "", fmt.Errorf("rig: %w", err)
	}
	address, err := r.freeAddress()
	if err != nil {
		return "", "", err
	}
	if r.Upstream, err = NewUpstream(address, listener.Addr().String()); err != nil {
		return "", "", err
	}
	return url + address, cfg.Authorization, nil
}

// originOf returns the origin of a relay that is bound to an address.
func originOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return "https://" + net.JoinHostPort(OriginHost, port)
}

// FreeAddress returns an address of loopback that no other rig uses as long as
// this one lives, for TCP and UDP.
func (r *Rig) FreeAddress() string {
	r.t.Helper()
	address, err := r.freeAddress()
	if err != nil {
		r.t.Fatal(err)
	}
	return address
}

func (r *Rig) freeAddress() (string, error) {
	p, err := claimPort()
	if err != nil {
		return "", err
	}
	r.ports = append(r.ports, p)
	return p.address(), nil
}

// Set gives a setting a value for the next start; Unset removes it.
func (r *Rig) Set(name, value string) { r.settings[name] = value }

// Unset removes a setting for the next start.
func (r *Rig) Unset(name string) { delete(r.settings, name) }

// Origin returns the origin under which nodes reach the relay.
func (r *Rig) Origin() string { return r.origin }

// ListenAddress returns where the node listener is bound.
func (r *Rig) ListenAddress() string {
	if at := r.listen.Load(); at != nil {
		return *at
	}
	return ""
}

// bound takes note of where the node listener is, "" for nowhere.
func (r *Rig) bound(address string) {
	r.origin = ""
	if address != "" {
		r.origin = originOf(address)
	}
	r.listen.Store(&address)
}

// ListenPort returns the port of ListenAddress.
func (r *Rig) ListenPort() int64 {
	r.t.Helper()
	_, port, _ := net.SplitHostPort(r.ListenAddress())
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		r.t.Fatalf("rig: the node listener is not bound: %v", err)
	}
	return number
}

// OperatorAddress returns where the operator endpoint is bound.
func (r *Rig) OperatorAddress() string { return r.operator }

// command returns the relay's command, with everything it may know of this
// process left out.
func (r *Rig) command() (*exec.Cmd, error) {
	program, err := r.options.program()
	if err != nil {
		return nil, err
	}
	call := invoke(r.settings, r.options, r.Path(ConfigurationFile))
	if call.document != "" {
		if err := r.write(ConfigurationFile, []byte(call.document), 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(program, call.arguments...)
	cmd.Dir = r.Path("work")
	cmd.Env = append([]string{
		"PATH=/usr/bin:/bin", "HOME=" + r.Path("home"), "TMPDIR=" + r.Path("tmp"),
		// The race detector would sleep a second before every exit.
		"GORACE=atexit_sleep_ms=50",
	}, call.environment...)
	cmd.Stdout, cmd.Stderr = &r.stdout, &r.stderr
	return cmd, nil
}
