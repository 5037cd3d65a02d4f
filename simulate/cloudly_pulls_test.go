package simulate

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
)

func TestPullsComeFromTheModel(t *testing.T) {
	network := contract.VPNNetwork{AuthorityID: "managed", ControlPrefix: "10.1.0.0/24", Revision: 3,
		Nodes: []contract.VPNNode{}, Grants: []contract.VPNGrant{}}
	table, err := contract.NewRouteTable(5, 1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	desired := contract.PlatformDesiredState{Capabilities: contract.Raw(`["database"]`), ProviderConfigs: contract.Raw("[]"),
		Bindings: []contract.PlatformBindingPlacement{{NodeID: "node-a", Binding: contract.Raw("{}")}}}
	recipients := contract.SecretRecipientState{Generation: 1, Recipients: []contract.SecretRecipient{
		{RecipientKeyID: "key-1", PublicKey: contract.NoiseKey{1}.String(), Generation: 1, State: contract.RecipientActive}}}
	text := func(a appender) string { return string(a.AppendJSON(nil)) }
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		want := map[string][2]string{
			contract.MethodGetVPNNetwork:           {`{"network":null}`, text(contract.GetVPNNetworkAnswer{Network: &network})},
			contract.MethodGetRouteTable:           {`{"table":null}`, text(contract.RouteTableAnswer{Table: &table})},
			contract.MethodGetPlatformDesiredState: {`{"capabilities":[],"providerConfigs":[],"bindings":[]}`, text(desired)},
			contract.MethodGetSecretRecipientState: {`{"generation":0,"recipients":[]}`, text(recipients)},
		}
		for i, change := range []func(){
			func() {},
			func() {
				s.SetNetwork(&network)
				s.SetRouteTable(&table)
				s.SetDesiredState(desired)
				s.SetRecipientState(recipients)
			},
		} {
			change()
			for method, answers := range want {
				if got := c.must(method, []byte("{}")); got != answers[i] {
					t.Errorf("%s: got %s, want %s", method, got, answers[i])
				}
			}
		}
		for method := range want {
			c.refuses(method, unread(t, method, func(b []byte) (contract.Empty, error) { return contract.ReadEmpty(method+" request", b) },
				[]byte(`{"identity":{"jwt":"x"}}`)))
		}
		wantViolations(t, s.Violations())
	})
}

func TestMethodsThatDoNotComeToCloudly(t *testing.T) {
	const none = "There is no available method for this call on the server side"
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		for _, method := range []string{"applyRuntimeAssignment", "openRuntimeAssignmentExec", contract.MethodHoldDNSLeaseRenewals, "anything"} {
			c.refuses(method, wrong{method, []byte("{}"), none, ""})
		}
		wantViolations(t, s.Violations(), NotForCloudly, NotForCloudly, NotForCloudly, NotForCloudly)
		if got := s.Violations()[3]; got.Method != "other" || got.String() != "method-does-not-go-to-cloudly: other on socket 1" {
			t.Errorf("a name outside the catalogue is repeated: %v", got)
		}
		// This does, and this Cloudly has no model of it.
		const method = contract.MethodBackupDatabaseClosure
		c.refuses(method, wrong{method, []byte("{}"), none, ""})
		wantViolations(t, s.Violations(), NotForCloudly, NotForCloudly, NotForCloudly, NotForCloudly)
	})
}

func TestHandleReplacesTheModel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		s.Handle(contract.MethodUpdatePlatformBindingStatus, func(nodeID string, request []byte) ([]byte, error) {
			if nodeID != "" || string(request) != `{"a":1}` {
				return nil, &contract.Refusal{Name: "refused-by-name", Reason: "why"}
			}
			return []byte(`{"ok":true}`), nil
		})
		if got := c.must(contract.MethodUpdatePlatformBindingStatus, []byte(`{"a":1}`)); got != `{"ok":true}` {
			t.Errorf("got %s", got)
		}
		c.refuses(contract.MethodUpdatePlatformBindingStatus,
			wrong{"by name", []byte("{}"), "refused-by-name: why", `{"code":"refused-by-name"}`})

		session := c.node("node-a", s.credential("node-a"), nonceA)
		s.Handle("getRuntimeRegistryCredential", func(nodeID string, request []byte) ([]byte, error) {
			return nil, errors.New(nodeID)
		})
		c.refuses("getRuntimeRegistryCredential", wrong{"of a node", under(session, "{}"), "node-a", ""})
	})
}

func configurationOf(t *testing.T, body string) contract.ClusterConfiguration {
	t.Helper()
	configuration, err := contract.ReadClusterConfiguration([]byte(body))
	if err != nil || len(configuration.Faults) > 0 {
		t.Fatalf("configuration: %v %v", err, configuration.Faults)
	}
	return configuration
}

func TestConfigurationFollowsTheModel(t *testing.T) {
	const method = contract.DefaultMethodGetConfiguration
	bubble(t, func(t *testing.T) {
		s := newStage(t, func(cfg *CloudlyConfig) { cfg.Origin = ""; cfg.IdentityLife = time.Hour })
		c := s.dial(nil)
		c.authenticate()
		pull := contract.ClusterConfigurationRequest{Identity: contract.IdentityCredential{JWT: c.jwt}}.AppendJSON(nil)
		nodes := func(corestore *contract.NodeCorestore) []contract.ConfiguredNode {
			return []contract.ConfiguredNode{{ID: "node-a", Corestore: corestore}, {ID: "node-b"}}
		}
		check := func(name string, want contract.ClusterConfiguration) {
			t.Helper()
			if diff := cmp.Diff(want, configurationOf(t, c.must(method, pull))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		check("never enabled", contract.ClusterConfiguration{Relay: contract.RelayAbsent, Nodes: nodes(nil)})
		if err := s.EnableRelay(testOrigin); err != nil {
			t.Fatal(err)
		}
		if err := s.SetCorestore("node-a", "http://10.0.4.7:9000"); err != nil {
			t.Fatal(err)
		}
		check("enabled", contract.ClusterConfiguration{Relay: contract.RelayStated, Block: contract.ClusterRelay{Origin: testOrigin},
			Nodes: nodes(&contract.NodeCorestore{Endpoint: "http://10.0.4.7:9000"})})
		s.DisableRelay()
		if err := s.SetCorestore("node-a", ""); err != nil {
			t.Fatal(err)
		}
		check("disabled", contract.ClusterConfiguration{Relay: contract.RelayNull, Nodes: nodes(nil)})
		s.SetConfigurationBody([]byte(`{"novel":1}`))
		check("replaced", contract.ClusterConfiguration{})
		s.SetConfigurationBody(nil)
		check("brought back", contract.ClusterConfiguration{Relay: contract.RelayNull, Nodes: nodes(nil)})

		c.refuses(method,
			unread(t, "no identity", contract.ReadClusterConfigurationRequest, []byte("{}")),
			wrong{"unknown identity", swap(t, pull, string(c.jwt), "sim.x"), "the identity is not known", ""})
		s.clock.step(time.Hour)
		c.refuses(method, wrong{"identity has ended", pull, "the identity has ended", ""})
	})
}
