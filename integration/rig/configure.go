package rig

import (
	"errors"

	"serve.zone/relay/typedsocket"
)

// Configure makes Cloudly answer with a configuration of the test's own and pushes
// it; nil is the model's own again. Its answer may be lost when the relay ends custody
// and closes its socket for it: a push can make the relay register again, and it may
// hear a name that ends custody before the answer has left.
func (r *Rig) Configure(document []byte) {
	r.t.Helper()
	r.Cloudly.SetConfigurationBody(document)
	var end *typedsocket.EndError
	if err := r.Cloudly.PushConfiguration(r.Soon()); err != nil &&
		!(errors.As(err, &end) && end.Remote && end.Code == typedsocket.CloseCustodyEnded) {
		r.t.Fatalf("push the configuration: %v", err)
	}
}
