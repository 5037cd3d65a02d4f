package rig

import (
	"fmt"
	"syscall"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// CustodyEnd is one of the five refusals that end custody (contract §6.1): how Cloudly
// comes to give it, and how it takes the relay back.
type CustodyEnd struct {
	Name contract.RefusalName
	// Fenced is a refusal that every call over the relay's socket meets, those of its
	// nodes as well. The others are met by a registration of the relay, such as
	// RegisterAgain brings about.
	Fenced bool
	// Brief is one behind which the relay is back within moments by itself, over
	// another socket.
	Brief bool

	give, restore func(*Rig) error
	back          func(*Rig)
}

// CustodyEnds returns the five of them.
func CustodyEnds() []CustodyEnd {
	enroll := func(r *Rig) error { _, err := r.Cloudly.EnrollNode(RelayNode); return err }
	pushed := func(r *Rig) { r.Configure(nil) }
	return []CustodyEnd{
		{
			Name:    "relay-cluster-not-enabled",
			give:    func(r *Rig) error { r.Cloudly.DisableRelay(); return nil },
			restore: func(r *Rig) error { return r.Cloudly.EnableRelay(r.Origin()) }, back: pushed,
		},
		{
			Name:    "relay-node-foreign",
			give:    func(r *Rig) error { return r.Cloudly.EnrollForeignNode(RelayNode) },
			restore: enroll, back: pushed,
		},
		{
			Name:    "relay-node-unknown",
			give:    func(r *Rig) error { return r.Cloudly.RemoveNode(RelayNode) },
			restore: enroll, back: pushed,
		},
		{
			Name: "relay-sequence-not-advancing", Brief: true,
			give: func(r *Rig) error {
				r.Cloudly.Script(contract.MethodRegisterClusterRelay, simulate.RefuseNamed(contract.RelaySequenceNotAdvancing, "1 is not above 1"))
				return nil
			},
			back: func(r *Rig) { r.Cloudly.SetConfigurationBody(nil) },
		},
		{
			Name: "relay-credential-generation-stale", Fenced: true,
			give:    func(r *Rig) error { return r.Cloudly.RotateCredentialTo(r.NewBearer()) },
			restore: func(r *Rig) error { r.InstallCredential(r.Cloudly.Authorization()); return nil },
			back:    func(r *Rig) { r.Signal(syscall.SIGHUP) },
		},
	}
}

// Give has Cloudly refuse by the name from now on.
func (e CustodyEnd) Give(r *Rig) {
	r.t.Helper()
	if err := e.give(r); err != nil {
		r.t.Fatalf("rig: have Cloudly refuse %s: %v", e.Name, err)
	}
}

// Restore has Cloudly take the relay back, and tells the relay.
func (e CustodyEnd) Restore(r *Rig) {
	r.t.Helper()
	if e.restore != nil {
		if err := e.restore(r); err != nil {
			r.t.Fatalf("rig: have Cloudly take the relay back from %s: %v", e.Name, err)
		}
	}
	e.back(r)
}

// RegisterAgain makes the relay register once more, on its socket, because the
// configuration states another origin. What the relay pulls it pulls again then.
func (r *Rig) RegisterAgain() {
	r.t.Helper()
	r.WaitCheck(cloudly.Name, cloudly.CheckConfiguration, "ok")
	r.Configure(fmt.Appendf(nil, `{"configData":{"id":"cluster-a","data":{"relay":{"origin":"https://relay.elsewhere-%d.example"},"nodes":[]}},"services":[]}`,
		len(r.Cloudly.Frames().Received(contract.MethodRegisterClusterRelay))))
}
