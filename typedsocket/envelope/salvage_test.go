package envelope

import (
	"errors"
	"testing"
)

// What breaks a rule inside a body alone has an envelope that can be answered.
func TestSalvage(t *testing.T) {
	const tail = `,"requestInstanceId":"i\u0031","correlation":{"id":"c1","phase":"request"}}`
	for name, c := range map[string]struct {
		text   string
		inBody bool
		found  bool
	}{
		"a lone surrogate":                    {`{"method":"m","request":{"a":"\ud83d"}` + tail, true, true},
		"a lone surrogate as a name":          {`{"method":"m","request":{"\ud83d":1}` + tail, true, true},
		"a name twice":                        {`{"method":"m","request":{"a":1,"a":2}` + tail, true, true},
		"a name twice in session":             {`{"method":"m","request":{"session":{"a":1,"a":2}}` + tail, true, true},
		"__proto__ in session":                {`{"method":"m","request":{"session":{"__proto__":1}}` + tail, true, true},
		"in the other body":                   {`{"method":"m","request":{},"response":{"a":1,"a":2}` + tail, true, true},
		"behind it a name of the envelope":    {`{"method":"m","request":{"a":1,"a":2},"method":"n"` + tail, true, false},
		"behind it no JSON":                   {`{"method":"m","request":{"a":1,"a":2},}`, true, false},
		"a name of the envelope twice":        {`{"method":"m","method":"m","request":{}` + tail, false, true /* nobody asks */},
		"a lone surrogate in the method":      {`{"method":"\ud83d","request":{}` + tail, false, false},
		"an error with a lone surrogate":      {`{"method":"m","request":{},"error":{"text":"\ud83d"}` + tail, false, false},
		"too deep":                            {`{"method":"m","request":` + nested(`[`, 80) + tail, false, false},
		"no JSON":                             {`{"method":"m","request":{"a":tru}` + tail, false, false},
		"a string for a body":                 {`{"method":"m","request":"\ud83d"` + tail, true, true},
		"an array whose element is no text":   {`{"method":"m","request":["\ud83d"]` + tail, true, true},
		"deeper down it is none of our rules": {`{"method":"m","request":{"x":{"a":"\ud83d"}}` + tail, false, true},
	} {
		var f Frame
		err := Scan([]byte(c.text), &f)
		fault, _ := errors.AsType[*ScanError](err)
		if inBody := fault != nil && fault.InBody; inBody != c.inBody {
			t.Errorf("%s: in a body: %v, want %v (%v)", name, inBody, c.inBody, err)
			continue
		}
		if !c.inBody {
			continue
		}
		found := Salvage([]byte(c.text), &f)
		if found != c.found {
			t.Errorf("%s: salvaged %v, want %v", name, found, c.found)
		}
		if found && (string(f.Method) != "m" || string(f.ID) != "c1" || string(f.Instance) != "i1" || f.Body.Object || f.Kind() != KindRequest && f.Request[0] == '{') {
			t.Errorf("%s: %+v", name, f)
		}
		if !found && (f.Method != nil || f.ID != nil) {
			t.Errorf("%s: something is left: %+v", name, f)
		}
	}
}
