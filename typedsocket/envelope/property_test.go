package envelope

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// spaces is whitespace that a peer may write anywhere.
var spaces = rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n  "})

// drawString draws a string of text, in one of its many spellings.
func drawString(t *rapid.T, label string) string {
	var b strings.Builder
	for _, r := range rapid.StringN(0, 12, 40).Draw(t, label) {
		switch how := rapid.IntRange(0, 3).Draw(t, "spelling"); {
		case how == 0 && r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		case how == 1 && r < 0x10000:
			fmt.Fprintf(&b, `\u%04X`, r)
		case how == 2 && r == '/':
			b.WriteString(`\/`)
		default:
			token := AppendString(nil, string(r))
			b.Write(token[1 : len(token)-1])
		}
	}
	return `"` + b.String() + `"`
}

// drawValue draws the text of any JSON value. On the outermost level names
// differ; below they may repeat, and strings may hold lone surrogates.
func drawValue(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth > 4 {
		kind %= 4
	}
	gap := func() string { return spaces.Draw(t, "space") }
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "literal")
	case 1:
		return rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?`).Draw(t, "number")
	case 2:
		if depth > 1 && rapid.Bool().Draw(t, "lone") {
			return rapid.SampledFrom([]string{`"\ud800"`, `"a\uDFFFb"`}).Draw(t, "surrogate")
		}
		return drawString(t, "string")
	case 3:
		return rapid.SampledFrom([]string{"{}", "[]", "{ }", "[\n]", `""`}).Draw(t, "empty")
	case 4:
		var elements []string
		for range rapid.IntRange(0, 4).Draw(t, "elements") {
			elements = append(elements, gap()+drawValue(t, depth+1)+gap())
		}
		return "[" + strings.Join(elements, ",") + "]"
	}
	var members []string
	for i := range rapid.IntRange(0, 5).Draw(t, "members") {
		name := rapid.SampledFrom([]string{`"nodeId"`, `"node\u0049d"`, `"_isVirtualStream"`, `"method"`, `"__proto__"`, `"x"`}).Draw(t, "name")
		if depth == 0 {
			name = fmt.Sprintf(`"%d%s`, i, drawString(t, "name")[1:])
		}
		members = append(members, gap()+name+gap()+":"+gap()+drawValue(t, depth+1)+gap())
	}
	return "{" + strings.Join(members, ",") + "}"
}

// TestSplitJoin: whatever the body, the ids and the method, an envelope that
// was joined splits into the same bytes, and an answer carries them back.
func TestSplitJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f Frame
		text := func(label string, most int) string {
			return rapid.StringN(1, most/4, most/2).Draw(t, label) // an escape may double a byte
		}
		method, id, instance := text("method", MaxMethodBytes), text("id", 80), text("instance", 80)
		body := drawValue(t, 0)
		request := joinRequest(method, body, id, instance)
		if err := Scan(request, &f); err != nil {
			t.Fatalf("%s: %v", request, err)
		}
		if f.Phase != PhaseRequest || string(f.Method) != method || string(f.ID) != id || string(f.Instance) != instance {
			t.Fatalf("%s: phase %v, method %q, id %q, instance %q", request, f.Phase, f.Method, f.ID, f.Instance)
		}
		if string(f.Request) != body || string(f.Response) != "null" || f.Error != nil || f.Retry != nil || f.HasLocalData {
			t.Fatalf("%s: split into %s, %s, %s, %s", request, f.Request, f.Response, f.Error, f.Retry)
		}

		idToken, instanceToken := bytes.Clone(f.IDToken), bytes.Clone(f.InstanceToken)
		errorText := rapid.String().Draw(t, "error")
		errorValue := AppendError(nil, errorText, []byte(drawValue(t, 1)))
		retryValue := AppendRetry(nil, rapid.IntRange(1, MaxRetryWaitMs).Draw(t, "wait"), "busy")
		answer := append(AppendResponseHead(nil, method), body...)
		answer = AppendResponseTail(answer, idToken, instanceToken, errorValue, retryValue)
		if err := Scan(answer, &f); err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		if f.Kind() != KindResponse || string(f.Method) != method || string(f.ID) != id || string(f.Instance) != instance {
			t.Fatalf("%s: kind %v, method %q, id %q, instance %q", answer, f.Kind(), f.Method, f.ID, f.Instance)
		}
		if string(f.Response) != body || !bytes.Equal(f.Error, errorValue) || !bytes.Equal(f.Retry, retryValue) {
			t.Fatalf("%s: split into %s, %s, %s", answer, f.Response, f.Error, f.Retry)
		}
		if got, _, state := ReadError(f.Error); got != errorText || state != ErrorNamed {
			t.Fatalf("error %q became %q, %v", errorText, got, state)
		}
	})
}

// TestScanAnyOrder: the order of members is free.
func TestScanAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.Permutation([]string{
			`"method":"m"`, `"request":{"nodeId":"a"}`, `"response":{"nodeId":"b"}`, `"requestInstanceId":"r"`,
			rapid.SampledFrom([]string{
				`"correlation":{"id":"i","phase":"request"}`, `"correlation":{"phase":"request","id":"i"}`,
			}).Draw(t, "correlation"),
			`"authInfo":{"jwt":"j"}`,
		}).Draw(t, "members")
		var f Frame
		text := []byte("{" + strings.Join(members, ",") + "}")
		if err := Scan(text, &f); err != nil || f.Kind() != KindRequest || string(f.Body.NodeID) != "a" {
			t.Fatalf("%s: %v, kind %v, node %q", text, err, f.Kind(), f.Body.NodeID)
		}
	})
}
