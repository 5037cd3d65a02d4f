package rig

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if behaviour := os.Getenv(behaviourVariable); behaviour != "" {
		os.Exit(pretend(behaviour))
	}
	Main(m)
}
