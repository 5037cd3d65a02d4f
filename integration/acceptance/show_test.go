package main

import (
	"errors"
	"strings"
	"testing"
)

func TestShowRun(t *testing.T) {
	run := func(function string) string {
		return `{"Action":"run","Package":"$/hub","Test":"` + function + `"}`
	}
	line := func(output string) string {
		return `{"Action":"output","Package":"$/hub","Output":"` + output + `"}`
	}
	fails := `{"Action":"fail","Package":"$/hub"}`
	duty := `{"Action":"output","Package":"$/duty","Output":"ok  \t$/duty\t0.2s\n"}`
	for name, test := range map[string]struct{ in, want string }{
		"all passed": {stream(hubStarts, run("TestA"), said("TestA", `=== RUN   TestA\n`), said("TestA", `    a_test.go:1: note\n`),
			said("TestA", `--- PASS: TestA (0.00s)\n`), ended("pass", "TestA"), line(`PASS\n`), hubOK, hubPasses),
			"ok  \t$/hub\t0.1s\n"},
		"nothing to test": {stream(hubStarts, line(`?   \t$/hub\t[no test files]\n`), `{"Action":"skip","Package":"$/hub"}`),
			"?   \t$/hub\t[no test files]\n"},
		"one failed": {stream(hubStarts, `{"Action":"start","Package":"$/duty"}`,
			said("TestA", `=== RUN   TestA\n`), said("TestA/one", `=== RUN   TestA/one\n`), said("TestA/one", `    a_test.go:1: fine\n`), ended("pass", "TestA/one"),
			said("TestA/two", `=== RUN   TestA/two\n`), said("TestA/two", `    a_test.go:2: wrong\n`), said("TestA/two", `    --- FAIL: TestA/two (0.00s)\n`), ended("fail", "TestA/two"),
			duty, `{"Action":"pass","Package":"$/duty"}`,
			said("TestA", `--- FAIL: TestA (0.00s)\n`), ended("fail", "TestA"), said("TestB", `    a_test.go:9: quiet\n`), ended("skip", "TestB"),
			line(`FAIL\n`), line(`FAIL\t$/hub\t0.1s\n`), fails),
			"ok  \t$/duty\t0.2s\n    a_test.go:2: wrong\n    --- FAIL: TestA/two (0.00s)\n--- FAIL: TestA (0.00s)\nFAIL\nFAIL\t$/hub\t0.1s\n"},
		"a panic": {stream(hubStarts, said("TestA", `=== RUN   TestA\n`), said("TestB", `=== RUN   TestB\n`), said("TestB", `=== CONT  TestB\n`),
			said("TestB", `panic: here\n`), said("TestA", `    a_test.go:1: had not ended\n`), ended("fail", "TestB"), line(`FAIL\t$/hub\t0.1s\n`), fails),
			"panic: here\n    a_test.go:1: had not ended\nFAIL\t$/hub\t0.1s\n"},
		"tests passed and the package did not": {stream(hubStarts, ended("pass", "TestA"), line(`goleak: Errors\n`), line(`FAIL\t$/hub\t0.1s\n`), fails),
			"goleak: Errors\nFAIL\t$/hub\t0.1s\n"},
		"a build that failed": {stream(`{"ImportPath":"$/hub","Action":"build-output","Output":"# $/hub\n"}`, `{"ImportPath":"$/hub","Action":"build-output","Output":"hub/a.go:1: no\n"}`,
			`{"ImportPath":"$/hub","Action":"build-fail"}`, hubStarts, line(`FAIL\t$/hub [build failed]\n`), fails),
			"# $/hub\nhub/a.go:1: no\nFAIL\t$/hub [build failed]\n"},
		"cut off": {stream(hubStarts, said("TestA", `=== RUN   TestA\n`), said("TestA", `    a_test.go:1: on its way\n`), line(`signal: killed\n`)),
			"    a_test.go:1: on its way\nsignal: killed\n"},
		"two packages cut off": {stream(said("TestA", `    a_test.go:1: there\n`), `{"Action":"output","Package":"$/duty","Test":"TestB","Output":"    b_test.go:1: here\n"}`),
			"    b_test.go:1: here\n    a_test.go:1: there\n"},
	} {
		var out strings.Builder
		err := showRun(strings.NewReader(test.in), &out)
		if want := strings.ReplaceAll(test.want, "$", module); err != nil || out.String() != want {
			t.Errorf("%s: %v, got\n%swant\n%s", name, err, out.String(), want)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestShowRunTellsWhatItCannotDo(t *testing.T) {
	if err := showRun(strings.NewReader(stream(hubStarts, hubOK, hubPasses)), fullDisk{}); err == nil || err.Error() != "no space left" {
		t.Errorf("of a write that failed: %v", err)
	}
	if err := showRun(strings.NewReader("ok hub\n"), &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "the run is not what go test -json writes") {
		t.Errorf("of something else: %v", err)
	}
}
