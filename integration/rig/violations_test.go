package rig

import (
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// intrude calls Cloudly through the proxy without any authentication, which no
// relay may do.
func intrude(tb testing.TB, r *Rig) {
	tb.Helper()
	socket, err := typedsocket.Connect(tb.Context(), typedsocket.Dial{
		URL: "ws://" + r.Upstream.Address(), Config: typedsocket.Config{Peer: "cloudly"}})
	if err != nil {
		tb.Fatal(err)
	}
	_, err = socket.Call(tb.Context(), contract.MethodGetVPNNetwork, []byte(`{}`), typedsocket.CallOptions{})
	if err == nil {
		tb.Error("cloudly answers a stranger")
	}
	socket.Close(typedsocket.CloseNormal, "test over")
	<-socket.Done()
	want := simulate.BeforeSession
	if got := r.Cloudly.Violations(); len(got) == 0 || got[0].Rule != want {
		tb.Errorf("violations %v, want %s", got, want)
	}
}

func TestViolationsFailTheTest(t *testing.T) {
	const noticed = "cloudly noticed " + string(simulate.BeforeSession)
	for _, tolerant := range []bool{false, true} {
		r := tell(t, func(tb testing.TB) {
			options := []Option{pretending("plain"), PlainCloudly()}
			if tolerant {
				options = append(options, TolerateViolations())
			}
			intrude(t, New(tb, options...))
		})
		if r.failed == tolerant || r.has(noticed) == tolerant {
			t.Errorf("tolerant %t, failed %t:\n%s", tolerant, r.failed, r)
		}
	}
}
