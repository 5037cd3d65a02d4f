package config

import (
	"fmt"
	"strings"

	"serve.zone/relay/contract"
)

// maximumMethods bounds each list of forwarded methods. The catalogue itself
// has fewer than a hundred names.
const maximumMethods = 256

// ownMethods are the settings that name a method of the relay itself.
func ownMethods(p *Protocol) []struct{ setting, name, standard string } {
	return []struct{ setting, name, standard string }{
		{keyExchangeMethod, p.ExchangeMethod, contract.DefaultMethodExchangeIdentity},
		{keyPushMethod, p.ConfigurationPushMethod, contract.DefaultMethodPushConfiguration},
		{keyPullMethod, p.ConfigurationPullMethod, contract.DefaultMethodGetConfiguration},
	}
}

// judgeOwnMethods refuses a name that means something else already: a method has
// one meaning and one direction (contract O14).
func (l *loader) judgeOwnMethods() {
	taken := map[string]bool{}
	for _, m := range ownMethods(&l.config.Protocol) {
		if l.bad[m.setting] {
			continue
		}
		_, known := contract.LookupMethod(m.name)
		switch {
		case known && m.name != m.standard:
			l.refuseSetting(m.setting, MethodTaken)
		case taken[m.name]:
			l.refuseSetting(m.setting, AnotherSettingsOwn)
		default:
			taken[m.name] = true
		}
	}
}

// judgeForwarded holds design §4, O14 for the lists of further methods, and for
// the names of this configuration what contract says for its own.
func (l *loader) judgeForwarded() {
	up, down := l.config.Protocol.NodeToCloudly, l.config.Protocol.CloudlyToNode
	if len(up) > maximumMethods {
		l.refuseSetting(keyNodeToCloudly, TooManyMethods)
		up = nil
	}
	if len(down) > maximumMethods {
		l.refuseSetting(keyCloudlyToNode, TooManyMethods)
		down = nil
	}
	for _, reason := range contract.JudgeExtraMethods(up, down) {
		var more int
		if _, err := fmt.Sscanf(reason, "and %d more", &more); err == nil {
			l.more += more
			continue
		}
		name, rule := splitReason(reason)
		l.refuseElement(keyForward+"."+name, rule)
	}
	own := map[string]bool{}
	for _, m := range ownMethods(&l.config.Protocol) {
		own[m.name] = true
	}
	l.judgeNames(keyNodeToCloudly, up, own)
	l.judgeNames(keyCloudlyToNode, down, own)
}

// judgeNames refuses in one list what contract cannot know of.
func (l *loader) judgeNames(setting string, list []string, own map[string]bool) {
	seen := map[string]bool{}
	for i, name := range list {
		_, known := contract.LookupMethod(name)
		switch {
		case strings.HasPrefix(name, carrierPrefix):
			l.refuseElement(setting+index(i), CarrierMethod)
		case own[name] && !known:
			l.refuseElement(setting+index(i), MethodOfTheRelay)
		case seen[name]:
			l.refuseElement(setting+index(i), RepeatedMethod)
		}
		seen[name] = true
	}
}

// refuseElement refuses one element of a list, which stands where the list does.
func (l *loader) refuseElement(element string, rule Rule) {
	setting, _, _ := strings.Cut(element, "[")
	place := l.places[setting]
	place.Setting = element
	l.refuse(place, rule)
}

// splitReason splits contract's "path: rule".
func splitReason(reason string) (path string, rule Rule) {
	path, text, _ := strings.Cut(reason, ": ")
	return path, Rule(text)
}
