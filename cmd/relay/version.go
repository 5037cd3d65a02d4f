package main

import (
	"encoding/json"
	"runtime"
	"runtime/debug"

	"serve.zone/relay/appliance"
)

// version is the release of this program, a release version (contract O21).
// Cloudly is told it. It is another fact than the interfaces version of the
// protocol, which is a setting.
const version = "0.1.0"

const aboutVersion = `usage: relay version [--json]

Says which release this is, and the commit and the Go toolchain it was built from.
--json answers with one object: version, revision (empty when not known), go.
relay --version does the same.

Exit codes: 0 it was said; 2 the output did not take it; 64 the command line was not
understood.
`

// versionName is the verb's name, and the flag's that many programs have in its place.
const versionName = "version"

// versionVerb is `relay version`.
type versionVerb struct {
	JSON bool `name:"json"`
}

func (*versionVerb) name() string        { return versionName }
func (*versionVerb) summary() string     { return "say which release this is (--json for programs)" }
func (*versionVerb) help() string        { return aboutVersion }
func (v *versionVerb) fields() any       { return v }
func (v *versionVerb) run(p process) int { return p.print(versionText(thisBuild(), v.JSON)) }

// thisBuild says what was built.
func thisBuild() appliance.Build {
	info, _ := debug.ReadBuildInfo()
	return appliance.Build{Version: version, Revision: revisionOf(info)}
}

// revisionOf returns the commit that a program was built from. It is empty where
// the build did not note one, and where the tree had changes that no commit tells.
func revisionOf(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	var revision string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			return ""
		}
	}
	return revision
}

// versionAnswer is the answer of `relay version --json`.
type versionAnswer struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // empty when not known
	Go       string `json:"go"`       // the toolchain that built it
}

// versionText says which program a build is, in one line.
func versionText(b appliance.Build, asJSON bool) string {
	if asJSON {
		text, err := json.Marshal(versionAnswer{Version: b.Version, Revision: b.Revision, Go: runtime.Version()})
		if err != nil {
			panic("relay: three texts cannot fail to encode")
		}
		return string(text) + "\n"
	}
	text := "relay " + b.Version
	if b.Revision != "" {
		text += ", revision " + b.Revision
	}
	return text + ", " + runtime.Version() + "\n"
}
