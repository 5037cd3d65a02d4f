package carriertest

import (
	"testing"
	"testing/synctest"

	"serve.zone/relay/typedsocket/buffer"
)

// Bubble runs a test in fake time, where synctest sees that no goroutine is
// left, and checks that every message buffer came back.
func Bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	before := buffer.Lent()
	synctest.Test(t, f)
	if after := buffer.Lent(); after != before {
		t.Fatalf("%d buffers were not released", after-before)
	}
}
