package cloudly

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"serve.zone/relay/typedsocket"
)

// TestNothingOfARefusalStays: a refusal may repeat a secret. Nothing of its data stays once it was read.
func TestNothingOfARefusalStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		for name, done := range map[string]func(err error){
			"a step of the handshake": func(err error) {
				if m := failed(fmt.Errorf("cloudly: %w", err), exchangeRefused, exchangeUnanswered); m.trouble != exchangeRefused {
					t.Errorf("judged as %v", m.trouble)
				}
			},
			"a pull": func(err error) {
				w.session.guarded(func(context.Context, *typedsocket.Socket) error { return err })(t.Context(), w.live)
			},
		} {
			refused := &typedsocket.RemoteError{Text: "no", Data: []byte(`{"token":"SECRET"}`)}
			data := refused.Data
			done(refused)
			if !bytes.Equal(data, make([]byte, len(data))) {
				t.Errorf("%s: %q is left", name, data)
			}
		}
		w.refuse("getClusterVpnNetwork", "not-today: x", `{"code":"not-today","token":"SECRET"}`)
		var refused *typedsocket.RemoteError
		if _, err := w.session.Call(context.Background(), w.live, "getClusterVpnNetwork", nil, typedsocket.CallOptions{}); !errors.As(err, &refused) {
			t.Fatalf("answered %v", err)
		}
		if refused.Data != nil {
			t.Errorf("a duty is given %q", refused.Data)
		}
	})
}
