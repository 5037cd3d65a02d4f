package ingress_test

import (
	"flag"
	"testing"

	"serve.zone/relay/integration/rig"
)

// atOnce is how many tests run at a time when -parallel does not say: they wait for
// most of their time, so that more of them fit than there are cores.
const atOnce = "8"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	rig.Main(m)
}
