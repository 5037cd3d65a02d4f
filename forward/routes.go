package forward

import (
	"fmt"
	"strings"

	"serve.zone/relay/contract"
)

// route is what is known of a method that passes in one direction.
type route struct {
	// method is the relay's own text of the name, which goes into envelopes and
	// lines in place of the peer's.
	method string
	// registers marks registerPalletRuntimeSession.
	registers bool
	// needsSession marks a configured name: nothing is known of its body, so a
	// top-level session must say whose it is (contract O14).
	needsSession bool
	// secretRequest and secretAnswer ask for the memory to be zeroed (contract
	// §18). Of configured names nothing is known, so both are.
	secretRequest, secretAnswer bool
}

// routes is the closed allow-list, by direction (contract §8.1, §8.2, O14). It
// is immutable.
type routes [directions]map[string]route

// newRoutes joins the catalogue with the configured names. It refuses names that
// the contract keeps for the relay, never lets pass, or lets pass the other way.
func newRoutes(nodeToCloudly, cloudlyToNode []string) (routes, error) {
	if reasons := contract.JudgeExtraMethods(nodeToCloudly, cloudlyToNode); len(reasons) > 0 {
		return routes{}, fmt.Errorf("forward: configured methods: %s", strings.Join(reasons, "; "))
	}
	t := routes{{}, {}}
	for d, names := range [directions][]string{up: nodeToCloudly, down: cloudlyToNode} {
		for _, name := range names {
			t[d][name] = route{method: name, needsSession: true, secretRequest: true, secretAnswer: true}
		}
	}
	// The catalogue comes last: naming one of its methods again changes nothing.
	for _, m := range contract.Methods() {
		if m.Class != contract.Forwarded {
			continue
		}
		rt := route{method: m.Name, registers: m.Name == contract.MethodRegisterPalletRuntimeSession}
		switch m.Name {
		case contract.MethodRegisterPalletRuntimeSession:
			rt.secretRequest = true
		case "getRuntimeRegistryCredential", "getRuntimeManagedVpnCredential":
			rt.secretAnswer = true
		case "getRuntimeAssignmentSecretMaterial",
			"beginRuntimeSecretRecipientEnrollment", "completeRuntimeSecretRecipientEnrollment":
			rt.secretRequest, rt.secretAnswer = true, true
		}
		if m.Takes(contract.NodeToRelay) {
			t[up][m.Name] = rt
		}
		if m.Takes(contract.RelayToNode) {
			t[down][m.Name] = rt
		}
	}
	return t, nil
}

// find returns the route of a method, or the refusal of one that does not pass.
func (t routes) find(d direction, method string) (route, *contract.Refusal) {
	if rt, ok := t[d][method]; ok {
		return rt, nil
	}
	name := contract.CloudlyRefusal(method)
	if d == up {
		name = contract.ListenerRefusal(method)
	}
	if name == "" { // a method that another duty serves
		name = contract.RelayMethodNotForwarded
	}
	return route{}, &contract.Refusal{Name: name, Reason: notRouted[name]}
}

// notRouted says why, for the names that find gives.
var notRouted = map[contract.RefusalName]string{
	contract.RelayMethodNotForwarded: "this method does not pass in this direction",
	contract.RelayCloudlyOnly:        "only Cloudly sends this method",
	contract.EscrowCloudlyOnly:       "only Cloudly hands over renewals",
}
