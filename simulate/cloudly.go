package simulate

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"sync"

	"serve.zone/relay/contract"
)

// Cloudly is a simulated control plane of one cluster. All methods are safe for
// concurrent use.
type Cloudly struct {
	Peer
	cfg  CloudlyConfig
	http *http.Server

	mu           sync.Mutex
	reachability Reachability
	handlers     map[string]handler
	sockets      map[int]*relaySocket // those that stand
	opened       int                  // sockets so far
	registered   *relaySocket         // the socket that carries the relay, nil while none does

	credential    relayCredential
	retired       map[string]bool // bearers of earlier generations
	identities    map[string]identity
	registrations []AcceptedRegistration
	accepted      int64 // acceptances so far: the generation of the record

	cluster   cluster
	authority *SigningAuthority
	renewing  *renewing // nil until KeepRenewed
}

// NewCloudly returns a Cloudly that serves nothing yet.
func NewCloudly(cfg CloudlyConfig) (*Cloudly, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Cloudly{
		cfg:        cfg,
		handlers:   map[string]handler{},
		sockets:    map[int]*relaySocket{},
		credential: newRelayCredential(cfg.ClusterID, 1, cfg.Authorization),
		retired:    map[string]bool{},
		identities: map[string]identity{},
		cluster:    newCluster(cfg.Origin),
		authority:  NewSigningAuthority(1),
	}
	c.begin("cloudly", cfg.Wall, cfg.Offer, cfg.RecordLimit)
	c.http = &http.Server{
		Handler:           http.HandlerFunc(c.upgrade),
		ConnContext:       withConn,
		ReadHeaderTimeout: headerWait,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	return c, nil
}

// Close ends every socket, listener and goroutine, and waits for them.
func (c *Cloudly) Close() {
	if !c.finish() {
		c.work.Wait()
		return
	}
	c.http.Close()
	c.mu.Lock()
	for _, s := range c.sockets {
		s.conn.Close()
	}
	c.mu.Unlock()
	c.work.Wait()
}

// Authorization returns the bearer of the current credential, which is what an
// operator hands to the relay.
func (c *Cloudly) Authorization() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.credential.bearer
}

// Credential returns the reference of the current credential.
func (c *Cloudly) Credential() contract.Reference {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.credential.reference
}

// RotateCredential mints the next generation of the relay's credential and
// returns its bearer. The generation before stops at once: sockets that
// authenticated as it hear relay-credential-generation-stale on every call
// (contract §5.1, §6.1).
func (c *Cloudly) RotateCredential() string {
	bearer := mintBearer()
	c.rotateCredential(bearer)
	return bearer
}

// RotateCredentialTo is RotateCredential with a bearer of the caller's.
func (c *Cloudly) RotateCredentialTo(authorization string) error {
	if !contract.IsRelayBearer(authorization) {
		return fmt.Errorf("rotate the credential: not a relay authorization")
	}
	c.rotateCredential(authorization)
	return nil
}

func (c *Cloudly) rotateCredential(bearer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired[c.credential.bearer] = true
	delete(c.retired, bearer)
	c.credential = newRelayCredential(c.cfg.ClusterID, c.credential.generation+1, bearer)
}

// handler is a test's or an operator's own answer to a method.
type handler func(nodeID string, request []byte) (response []byte, err error)

// Handle answers a method with a function instead of the model. It is asked
// after everything that is judged of the socket and the session, with the node
// that the request is of, "" when it is of none. A *contract.Refusal as error is
// carried by name, any other by its text. It must not block and must not use
// this Cloudly, whose lock is held.
func (c *Cloudly) Handle(method string, answer func(nodeID string, request []byte) (response []byte, err error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handlers[method] = answer
}

// notRegistered is the error of a push that finds no relay.
var errNotRegistered = fmt.Errorf("no relay is registered")
