package main

import (
	"fmt"
	"strings"
	"testing"
)

// Events of runs, as go test -json writes them; $ stands for the module.
func stream(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.ReplaceAll(line, "$", module) + "\n")
	}
	return b.String()
}

const (
	hubStarts = `{"Time":"2026-12-01T03:58:12.5Z","Action":"start","Package":"$/hub"}`
	hubOK     = `{"Action":"output","Package":"$/hub","Output":"ok  \t$/hub\t0.1s\n"}`
	hubPasses = `{"Action":"pass","Package":"$/hub","Elapsed":0.1}`
)

func ended(action, function string) string {
	return `{"Action":"` + action + `","Package":"$/hub","Test":"` + function + `","Elapsed":0}`
}

func said(function, output string) string {
	return `{"Action":"output","Package":"$/hub","Test":"` + function + `","Output":"` + output + `"}`
}

func TestReadResults(t *testing.T) {
	for name, test := range map[string]struct {
		runs   []string
		tests  string
		faults []string
	}{
		"all that can happen": {
			[]string{stream(hubStarts, `{"Action":"start","Package":"$/duty"}`,
				`{"Action":"run","Package":"$/hub","Test":"TestA"}`, said("TestA", `=== RUN   TestA\n`), said("TestA", `    a_test.go:7: looks for it\n`), ended("pass", "TestA"),
				`{"Action":"run","Package":"$/hub","Test":"TestB"}`, said("TestB", `    a_test.go:9: sees\n`), said("TestB", `    a_test.go:12: this machine has none: x\n`),
				said("TestB", `--- SKIP: TestB (0.00s)\n`), ended("skip", "TestB"),
				ended("skip", "TestC"), ended("skip", "TestD/R47_x"), ended("pass", "TestD"),
				`{"Action":"skip","Package":"$/duty"}`, hubOK, hubPasses)},
			"TestA passed, TestB this machine has none: x, TestC no reason given, TestD passed, TestD/R47_x no reason given", nil,
		},
		"two runs": {
			[]string{stream(hubStarts, ended("pass", "TestA"), ended("skip", "TestB"), ended("skip", "TestC"), hubPasses),
				stream(hubStarts, ended("skip", "TestA"), ended("pass", "TestB"), said("TestC", `    a_test.go:1: again\n`), ended("skip", "TestC"), hubPasses)},
			"TestA passed, TestB passed, TestC again", nil,
		},
		"a failed test": {[]string{stream(hubStarts, ended("fail", "TestA"), `{"Action":"fail","Package":"$/hub"}`)}, "",
			[]string{"run 1: hub TestA failed", "run 1: hub failed"}},
		"failed in one of two runs": {[]string{stream(hubStarts, ended("pass", "TestA"), hubPasses),
			stream(hubStarts, ended("fail", "TestA"), `{"Action":"fail","Package":"$/hub"}`)}, "",
			[]string{"run 2: hub TestA failed", "run 2: hub failed"}},
		"a package that failed though its tests passed": {[]string{stream(hubStarts, ended("pass", "TestA"), `{"Action":"fail","Package":"$/hub"}`)}, "",
			[]string{"run 1: hub failed"}},
		"a package that does not build": {[]string{stream(`{"ImportPath":"$/hub [$/hub.test]","Action":"build-output","Output":"x"}`,
			`{"ImportPath":"$/hub [$/hub.test]","Action":"build-fail"}`, hubStarts, `{"Action":"fail","Package":"$/hub","FailedBuild":"$/hub [$/hub.test]"}`)}, "",
			[]string{"/hub [", "run 1: hub failed"}},
		"out of the cache": {[]string{stream(hubStarts, ended("pass", "TestA"),
			`{"Action":"output","Package":"$/hub","Output":"ok  \t$/hub\t(cached)\n"}`, hubPasses)}, "", []string{"run 1: hub comes out of the cache"}},
		"cut off": {[]string{stream(hubStarts, ended("pass", "TestA"))}, "", []string{"run 1: hub did not end"}},
		"a test twice": {[]string{stream(hubStarts, ended("pass", "TestA"), ended("pass", "TestA"), hubPasses)}, "",
			[]string{"run 1: hub TestA ran twice"}},
		"a package twice": {[]string{stream(hubStarts, hubPasses, hubStarts, hubPasses)}, "", []string{"run 1: hub ran twice"}},
		"nothing":         {[]string{""}, "", []string{"run 1: holds no run"}},
	} {
		r := newResults()
		for i, run := range test.runs {
			if err := r.read(fmt.Sprintf("run %d", i+1), strings.NewReader(run)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantLines(t, name, r.faults, test.faults)
		var got []string
		for _, function := range []string{"TestA", "TestB", "TestC", "TestD", "TestD/R47_x"} {
			if end, ok := r.tests[testID{"hub", function}]; ok && end.passed {
				got = append(got, function+" passed")
			} else if ok {
				got = append(got, function+" "+end.reason)
			}
		}
		if list := strings.Join(got, ", "); test.tests != "" && list != test.tests {
			t.Errorf("%s: %s, want %s", name, list, test.tests)
		}
	}
}

func TestReadResultsOfSomethingElse(t *testing.T) {
	for _, text := range []string{"ok  \tserve.zone/relay/hub\t0.1s\n", "[]", `{"Action":7}`, `{"Action":"start"`, stream(hubStarts, "FAIL")} {
		err := newResults().read("run", strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), "run is not what go test -json writes") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
