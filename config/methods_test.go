package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"serve.zone/relay/config"
	"serve.zone/relay/contract"
)

// Configured methods that the contract keeps, or that pass in both directions,
// are refused by their place in the list (design §4, O14).
func TestForwardedMethods(t *testing.T) {
	type fault struct {
		setting string
		rule    config.Rule
	}
	up := func(i int) string { return fmt.Sprintf("protocol.forward.nodeToCloudly[%d]", i) }
	down := func(i int) string { return fmt.Sprintf("protocol.forward.cloudlyToNode[%d]", i) }
	for _, test := range []struct {
		name               string
		protocol, up, down string
		want               []fault
	}{
		{"new names", "", "reportA, reportB", "applyA", nil},
		{"named by the catalogue in the same direction", "", "reportRuntimeAssignmentLogs", "applyRuntimeAssignment", nil},
		{"own", "", "reportA, registerClusterRelay", "", []fault{{up(1), config.MethodOfTheRelay}}},
		{"own by default", "", "getIdentityByToken", "pushClusterConfig",
			[]fault{{up(0), config.MethodOfTheRelay}, {down(0), config.MethodOfTheRelay}}},
		{"own by this file", "  exchangeMethod: exchange\n", "exchange", "exchange",
			[]fault{{down(0), bothDirections}, {up(0), config.MethodOfTheRelay}, {down(0), config.MethodOfTheRelay}}},
		{"the default stays kept when another is configured", "  exchangeMethod: exchange\n", "getIdentityByToken", "",
			[]fault{{up(0), config.MethodOfTheRelay}}},
		{"never", "", "openRuntimeAssignmentExec", "setClusterNodeCorestoreEndpoint",
			[]fault{{up(0), neverPasses}, {down(0), neverPasses}}},
		{"the other way", "", "applyRuntimeAssignment", "reportRuntimeAssignmentLogs",
			[]fault{{up(0), otherDirection}, {down(0), otherDirection}}},
		{"both ways", "", "a, b", "c, b", []fault{{down(1), bothDirections}}},
		{"no name", "", "'a b', ''", "", []fault{{up(0), config.NotMethod}, {up(1), config.NotMethod}}},
		{"the carrier's", "", "__typedsocket_setTag", "", []fault{{up(0), config.CarrierMethod}}},
		{"twice", "", "a, b, a", "", []fault{{up(2), config.RepeatedMethod}}},
	} {
		lines := 3 + strings.Count(test.protocol, "\n")
		file := "protocol:\n" + test.protocol + "  forward:\n    nodeToCloudly: [" + test.up + "]\n    cloudlyToNode: [" + test.down + "]\n"
		_, _, err := config.Load(withFile(base(), nil, file))
		if test.want == nil {
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		var want []config.Reason
		for _, f := range test.want {
			line := lines
			if strings.Contains(f.setting, "cloudlyToNode") {
				line++
			}
			want = append(want, config.Reason{Place: config.Place{Setting: f.setting, Source: config.FromFile, Line: line}, Rule: f.rule})
		}
		checkReasons(t, test.name, err, want...)
	}
}

// Every method that the contract keeps is refused in both lists.
func TestEveryKeptMethodIsRefused(t *testing.T) {
	kept := 0
	for _, m := range contract.Methods() {
		if m.Class == contract.Forwarded {
			continue
		}
		kept++
		for _, list := range []string{"nodeToCloudly", "cloudlyToNode"} {
			if _, _, err := config.Load(withFile(base(), nil, "protocol: {forward: {"+list+": ["+m.Name+"]}}")); err == nil {
				t.Errorf("%s in %s was admitted", m.Name, list)
			}
		}
	}
	if kept < 50 {
		t.Errorf("only %d methods are kept", kept)
	}
}

func TestManyMethods(t *testing.T) {
	list := func(n int) string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("method%d", i)
		}
		return "protocol:\n  forward:\n    nodeToCloudly: [" + strings.Join(names, ", ") + "]\n"
	}
	c, _, err := config.Load(withFile(base(), nil, list(256)))
	if err != nil || len(c.Protocol.NodeToCloudly) != 256 {
		t.Errorf("256 methods: %d, error %v", len(c.Protocol.NodeToCloudly), err)
	}
	for _, name := range []string{"nodeToCloudly", "cloudlyToNode"} {
		_, _, err = config.Load(withFile(base(), nil, strings.Replace(list(257), "nodeToCloudly", name, 1)))
		checkReasons(t, "257 methods", err, config.Reason{
			Place: config.Place{Setting: "protocol.forward." + name, Source: config.FromFile, Line: 3}, Rule: config.TooManyMethods,
		})
	}
}

// What contract only counts is counted here, too.
func TestManyBadMethods(t *testing.T) {
	_, _, err := config.Load(withFile(base(), nil, "protocol: {forward: {nodeToCloudly: [getIdentityByToken"+
		strings.Repeat(", openRuntimeAssignmentExec", 99)+"]}}"))
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v", err)
	}
	// 100 for what they are and 98 for being given again.
	if len(invalid.Reasons) != contract.MaximumReasons || invalid.More != 198-contract.MaximumReasons {
		t.Errorf("%d reasons and %d more", len(invalid.Reasons), invalid.More)
	}
}

// A name cannot stand for two things.
func TestOwnMethodsAreDistinct(t *testing.T) {
	_, _, err := config.Load(withFile(base(), nil, `
protocol:
  exchangeMethod: same
  configurationPushMethod: same
  configurationPullMethod: same
`))
	checkReasons(t, "three of one name", err,
		config.Reason{Place: config.Place{Setting: "protocol.configurationPushMethod", Source: config.FromFile, Line: 4}, Rule: config.AnotherSettingsOwn},
		config.Reason{Place: config.Place{Setting: "protocol.configurationPullMethod", Source: config.FromFile, Line: 5}, Rule: config.AnotherSettingsOwn})
}
