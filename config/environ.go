package config

import (
	"maps"
	"slices"
	"strings"
)

const (
	// relayPrefix begins the variables of this product (contract O31).
	relayPrefix = "RELAY_"
	// corestoreToken is the variable in which an earlier release took the control
	// token (contract §12.1).
	corestoreToken = "CORESTORE_API_TOKEN"
)

// readEnviron returns the variables that are set, by name. Of a name that stands
// there twice the first counts, as for os.Getenv.
func readEnviron(environ []string) map[string]string {
	variables := make(map[string]string, len(environ))
	for _, entry := range environ {
		name, text, found := strings.Cut(entry, "=")
		if _, given := variables[name]; found && !given {
			variables[name] = text
		}
	}
	maps.DeleteFunc(variables, func(_, text string) bool { return text == "" })
	return variables
}

// judgeEnviron refuses every secret in a variable that is read or begins with
// RELAY_, and reports what is ignored and what is unknown.
func (l *loader) judgeEnviron() {
	owners := map[string]Setting{}
	for _, s := range l.table {
		for _, name := range s.Env {
			owners[name] = s
		}
	}
	known := slices.Sorted(maps.Keys(owners))
	for _, name := range slices.Sorted(maps.Keys(l.variables)) {
		owner, isSetting := owners[name]
		place := Place{Setting: owner.Name(), Source: FromEnvironment, Name: name}
		if !isSetting {
			owner.Kind = kindUnknown
			place.Setting, place.Name = shown(name), ""
		}
		switch {
		case name == corestoreToken:
			l.report.Ignored = append(l.report.Ignored, name)
		case !isSetting && !strings.HasPrefix(name, relayPrefix):
		case holdsSecret(owner.Kind, l.variables[name]):
			l.refuse(place, SecretInTheOpen)
		case !isSetting && isName(name):
			l.report.Unknown = append(l.report.Unknown, Unknown{Name: name, Suggest: suggest(name, known)})
		}
	}
}
