package rig

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"serve.zone/relay/simulate"
)

const (
	// The waits of a node between attempts, in place of a real one's second to a
	// minute, which a test of reconnects sets back.
	firstBackoff = 50 * time.Millisecond
	lastBackoff  = time.Second
)

// Node enrolls a node, if it is not, starts its Pallet, and returns when it has a
// session through the relay. A second Pallet of one node is a second process of
// it. The rig closes them.
func (r *Rig) Node(id string, change ...func(*simulate.PalletConfig)) *simulate.Pallet {
	r.t.Helper()
	p := r.StartNode(id, change...)
	if _, err := p.WaitRegistered(r.Soon(), 0); err != nil {
		r.t.Fatalf("node %s: %v", id, err)
	}
	return p
}

// Nodes is Node for node-1 to node-n, all at once.
func (r *Rig) Nodes(n int, change ...func(*simulate.PalletConfig)) []*simulate.Pallet {
	r.t.Helper()
	pallets := make([]*simulate.Pallet, n)
	for i := range pallets {
		pallets[i] = r.StartNode(fmt.Sprintf("node-%d", i+1), change...)
	}
	ctx := r.Soon()
	for i, p := range pallets {
		if _, err := p.WaitRegistered(ctx, 0); err != nil {
			r.t.Fatalf("node-%d of %d: %v", i+1, n, err)
		}
	}
	return pallets
}

// StartNode is Node without the wait.
func (r *Rig) StartNode(id string, change ...func(*simulate.PalletConfig)) *simulate.Pallet {
	r.t.Helper()
	cfg := simulate.PalletConfig{
		URL: r.NodeURL(), TLS: r.ClientTLS(), Dial: r.dialListener, Wall: time.Now,
		NodeID: id, Credential: r.Enroll(id), Authority: r.Cloudly.Authority(),
		FirstBackoff: firstBackoff, LastBackoff: lastBackoff,
	}
	for _, apply := range change {
		apply(&cfg)
	}
	p, err := simulate.NewPallet(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.nodes = append(r.nodes, p)
	if err := p.Start(); err != nil {
		r.t.Fatal(err)
	}
	return p
}

// Enroll enrolls a node, if it is not, and returns the credential that it
// registers with, whose token bears a marker.
func (r *Rig) Enroll(id string) simulate.NodeCredential {
	r.t.Helper()
	credential, err := r.Cloudly.EnrollNode(id)
	if err != nil {
		r.t.Fatal(err)
	}
	if strings.Contains(credential.Token, r.secrets.root) {
		return credential
	}
	return r.giveCredential(id, credential.Generation)
}

// RotateNode gives a node the next generation of its credential, whose token bears
// a marker, and returns it for Pallet.Rotate.
func (r *Rig) RotateNode(id string) simulate.NodeCredential {
	r.t.Helper()
	credential, err := r.Cloudly.RotateNodeCredential(id)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.giveCredential(id, credential.Generation)
}

func (r *Rig) giveCredential(id string, generation int64) simulate.NodeCredential {
	r.t.Helper()
	credential := simulate.NodeCredential{
		Generation: generation,
		Token:      nodeTokenBegins + r.secrets.mark(fmt.Sprintf("token %d of %s", generation, id)),
	}
	if err := r.Cloudly.SetNodeCredential(id, credential); err != nil {
		r.t.Fatal(err)
	}
	return credential
}

// NodeURL returns the URL that nodes dial.
func (r *Rig) NodeURL() string { return "wss" + strings.TrimPrefix(r.origin, "https") + "/" }

// ClientTLS returns the configuration of a client of the node listener, which
// trusts the rig's authority alone and asks for OriginHost.
func (r *Rig) ClientTLS() *tls.Config {
	return &tls.Config{RootCAs: r.Authority.Pool(), ServerName: OriginHost, MinVersion: tls.VersionTLS12}
}

// dialListener opens a connection to the node listener, whatever name was dialled:
// what is bound may have changed since the URL was made.
func (r *Rig) dialListener(ctx context.Context, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp4", r.ListenAddress())
}

// NodeHTTP returns a client that reaches the node listener under Origin, follows
// no redirect and uses a connection a request.
func (r *Rig) NodeHTTP() *http.Client {
	return &http.Client{
		Timeout:       DefaultWait,
		Transport:     &http.Transport{DialContext: r.dialListener, TLSClientConfig: r.ClientTLS(), DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
