package contract

import "slices"

// Hop is one step that a request takes to or from the relay. The hops of a
// method are a set.
type Hop uint8

// The hops of the catalogue. The node listener serves NodeToRelay and
// IngressToRelay, the Cloudly socket CloudlyToRelay.
const (
	NodeToRelay Hop = 1 << iota
	IngressToRelay
	CloudlyToRelay
	RelayToNode
	RelayToIngress
	RelayToCloudly
)

// MethodClass says what the relay does with a method (contract §8).
type MethodClass uint8

// The classes of methods.
const (
	// Forwarded methods pass untouched (§8.1, §8.2).
	Forwarded MethodClass = iota + 1
	// Own methods have the relay as an endpoint, or as the judge of a first hop
	// (§8.4).
	Own
	// NeverForwarded methods are refused in both directions (§8.3).
	NeverForwarded
)

// Method is one entry of the catalogue.
type Method struct {
	Name  string
	Class MethodClass
	Hops  Hop // none for NeverForwarded
}

// Takes reports whether a request of this method travels on the hop.
func (m Method) Takes(h Hop) bool { return m.Hops&h != 0 }

// LookupMethod returns the catalogue's entry for a method name.
func LookupMethod(name string) (Method, bool) {
	m, ok := catalogue[name]
	return m, ok
}

// Methods returns the whole catalogue in contract order.
func Methods() []Method { return slices.Clone(catalogueInOrder) }

// ListenerRefusal returns the name with which a request that arrives on the node
// listener is refused, or "" when the method is one that a node or an ingress
// may send. Methods that only Cloudly sends have names of their own (contract
// §8.4); everything else is not forwarded (O14).
//
// Methods that an operator configured in addition are not in the catalogue; the
// caller looks for them first.
func ListenerRefusal(method string) RefusalName {
	m, known := LookupMethod(method)
	switch {
	case known && m.Takes(NodeToRelay|IngressToRelay):
		return ""
	case method == MethodHoldDNSLeaseRenewals:
		return EscrowCloudlyOnly
	case known && m.Class == Own && m.Takes(CloudlyToRelay):
		return RelayCloudlyOnly
	}
	return RelayMethodNotForwarded
}

// CloudlyRefusal returns the name with which a request that arrives on the
// Cloudly socket is refused, or "" when the method is one that Cloudly sends.
// What is said of configured methods at ListenerRefusal holds here too.
func CloudlyRefusal(method string) RefusalName {
	if m, known := LookupMethod(method); known && m.Takes(CloudlyToRelay) {
		return ""
	}
	return RelayMethodNotForwarded
}

// maximumMethodName bounds a configured method name, generously: it is to catch
// text that is no name at all.
const maximumMethodName = 128

// JudgeExtraMethods returns one reason for each method name that an operator
// must not add to the forwarded ones: a name that the contract keeps for the
// relay itself or never lets pass, one that stands in both directions, and one
// that the catalogue forwards the other way (design §4, O14). Reasons name the
// entry's position.
func JudgeExtraMethods(nodeToCloudly, cloudlyToNode []string) []string {
	var v verdict
	judgeExtra(&v, "nodeToCloudly", nodeToCloudly, CloudlyToRelay)
	judgeExtra(&v, "cloudlyToNode", cloudlyToNode, NodeToRelay)
	v.enter("cloudlyToNode")
	for i, name := range cloudlyToNode {
		if slices.Contains(nodeToCloudly, name) {
			v.enterIndex(i)
			v.add("stands in both directions")
			v.leave()
		}
	}
	v.leave()
	return v.list()
}

func judgeExtra(v *verdict, direction string, names []string, otherWay Hop) {
	v.enter(direction)
	for i, name := range names {
		v.enterIndex(i)
		m, known := LookupMethod(name)
		switch {
		case !isMethodName(name):
			v.add("is not a method name")
		case known && m.Class == NeverForwarded:
			v.add("is a method that never passes the relay")
		case known && m.Class == Own:
			v.add("is a method of the relay itself")
		case known && m.Takes(otherWay):
			v.add("is forwarded in the other direction")
		}
		v.leave()
	}
	v.leave()
}

func isMethodName(s string) bool {
	if len(s) == 0 || len(s) > maximumMethodName {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !isAlphanumeric(s[i]) && s[i] != '_' {
			return false
		}
	}
	return true
}
