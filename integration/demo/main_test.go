package demo_test

import (
	"testing"

	"serve.zone/relay/integration/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
