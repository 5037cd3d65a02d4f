package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checkReasons judges what every refusal of a hostile body must be: an
// InvalidError whose reasons are few, short and plain.
func checkReasons(t testingT, err error) {
	var invalid *InvalidError
	if !errors.As(err, &invalid) || len(invalid.Reasons) == 0 || len(invalid.Reasons) > MaximumReasons+1 {
		t.Errorf("%v is no InvalidError with 1 to %d reasons", err, MaximumReasons+1)
		return
	}
	for _, reason := range append(invalid.Reasons, invalid.Error()) {
		if len(reason) > 300 || strings.IndexFunc(reason, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
			t.Errorf("reason %q is long or not plain", reason)
		}
	}
}

func TestReasonsAreBounded(t *testing.T) {
	var body strings.Builder
	body.WriteString(`{"node":"a","seq":1`)
	for i := range 1000 {
		fmt.Fprintf(&body, `,"x%d":%d`, i, i)
	}
	body.WriteString("}")
	var x sample
	reasons := readShape([]byte(body.String()), 0, x.shape())
	if len(reasons) != MaximumReasons+1 || reasons[MaximumReasons-1] != `body: unknown member "x63"` || reasons[MaximumReasons] != "and 936 more" {
		t.Errorf("got %d reasons, the last two %q", len(reasons), reasons[len(reasons)-2:])
	}
}

func TestInvalidErrorText(t *testing.T) {
	for want, err := range map[string]*InvalidError{
		"invalid x":                        {What: "x"},
		"invalid x: a: is missing":         {What: "x", Reasons: []string{"a: is missing"}},
		"invalid x: a: b (and 2 more)":     {What: "x", Reasons: []string{"a: b", "c: d", "e: f"}},
		"invalid protocol offer: p: is no": {What: "protocol offer", Reasons: []string{"p: is no"}},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// R94: a secret and an opaque value show nothing of themselves in any format verb or in
// JSON, and a secret can be wiped.
func TestR94_SecretsDoNotPrint(t *testing.T) {
	const marker = "marked-secret"
	value := struct {
		Token  Secret
		Opaque Raw
	}{Secret(marker), Raw(`"` + marker + `"`)}
	shown, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		shown = fmt.Appendf(shown, " "+verb, value)
		shown = fmt.Appendf(shown, " "+verb+" "+verb, value.Token, value.Opaque)
	}
	for _, form := range []string{marker, fmt.Sprintf("%x", marker), fmt.Sprintf("%X", marker), "109 97 114", "0x6d", "bWFya2Vk"} {
		if strings.Contains(string(shown), form) {
			t.Errorf("%q shows the secret", shown)
		}
	}
	value.Token.Zero()
	if diff := cmp.Diff(make([]byte, len(marker)), []byte(value.Token)); diff != "" {
		t.Error(diff)
	}
}

func TestReasonsQuoteNoSecret(t *testing.T) {
	const marker = "markedsecret"
	for _, body := range []string{
		`{"` + marker + `":"` + marker + `"}`,
		`{"node":["` + marker + `"],"seq":"` + marker + `","flag":"` + marker + `"}`,
		`{"node":"a","node":"` + marker + `","seq":1}`,
		`{"node":"` + marker,
		`{"hub":{"` + marker + `":1,"id":"` + marker + `"}}`,
		`{"node":"\ud800` + marker + `"} ` + marker,
	} {
		var x sample
		reasons := readShape([]byte(body), secretBearing, x.shape())
		if len(reasons) == 0 || strings.Contains(strings.Join(reasons, "\n"), marker) {
			t.Errorf("%s: %q", body, reasons)
		}
	}
}
