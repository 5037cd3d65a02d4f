package ingress

import (
	"bytes"
	"testing"
	"testing/synctest"

	"serve.zone/relay/typedsocket"
)

// TestNothingOfARefusalStays: a refusal of Cloudly's may repeat the secret of a
// registration. It goes on to the ingress, and nothing of it stays.
func TestNothingOfARefusalStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told []byte
		r := newRig(t, func(c *Config) {
			c.OnStaleCredential = func(_ *typedsocket.Socket, data []byte) { told = data }
		})
		cloud, p := r.cloudly(), r.node()
		const data = `{"code":"relay-credential-generation-stale","token":"SECRET"}`
		answer := p.start(registerMethod, registrationOf("node-a", "b"))
		cloud.next(registerMethod).Refuse("x", []byte(data))
		declinedWith(t, <-answer, data)
		synctest.Wait()
		if len(told) != len(data) || !bytes.Equal(told, make([]byte, len(data))) {
			t.Errorf("%q is left", told)
		}
	})
}

// repeated is a refusal whose data is memory that the test can look at.
type repeated struct{ data []byte }

func (repeated) Error() string                  { return "no" }
func (r repeated) AppendData(dst []byte) []byte { return r.data }

// TestNothingStaysOfWhatIsRefusedWith, which may be the words of an ingress.
func TestNothingStaysOfWhatIsRefusedWith(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		p := r.node()
		const data = `{"token":"SECRET"}`
		answer := p.start("held", `{}`)
		with := repeated{[]byte(data)}
		refuse(<-r.held, with)
		declinedWith(t, <-answer, data)
		if !bytes.Equal(with.data, make([]byte, len(data))) {
			t.Errorf("%q is left", with.data)
		}
	})
}
