package contract

import "testing"

// R90: a 409 with one of the three codes is its status reason, with the state that goes
// with it; any other status, code or shape is none.
func TestR90_LegacyAdoptionRefusal(t *testing.T) {
	const pending = `{"ok":false,"error":"refused","code":"legacy-adoption-pending"}`
	for _, tc := range []struct {
		status int
		body   string
		want   PlatformBindingStatusReason
		state  string
	}{
		{409, pending, LegacyAdoptionPending, "provisioning"},
		{409, `{"code":"legacy-adoption-conflict","error":"","ok":false}`, LegacyAdoptionConflict, "failed"},
		{409, `{"ok":false,"error":"e","code":"legacy-adoption-mismatch","at":1.5}`, LegacyAdoptionMismatch, "failed"},
		{409, `{"ok":false,"error":"e","code":"legacy-adoption-Pending"}`, "", ""},
		{409, `{"ok":false,"error":"e","code":"bucket-exists"}`, "", ""},
		{409, `{"ok":false,"error":"legacy-adoption-pending","code":""}`, "", ""},
		{409, `{"ok":true,"error":"e","code":"legacy-adoption-pending"}`, "", ""},
		{409, `{"ok":false,"code":"legacy-adoption-pending"}`, "", ""},
		{409, `{"error":"e","code":"legacy-adoption-pending"}`, "", ""},
		{409, `{"ok":false,"error":"e","code":"legacy-adoption-pending","c\u006fde":"legacy-adoption-mismatch"}`, "", ""},
		{409, `{"ok":false,"error":null,"code":"legacy-adoption-pending"}`, "", ""},
		{409, pending + `{}`, "", ""},
		{409, `legacy-adoption-pending`, "", ""},
		{409, ``, "", ""},
		{200, pending, "", ""},
		{400, pending, "", ""},
		{423, pending, "", ""},
		{500, pending, "", ""},
	} {
		got, ok := ReadCorestoreLegacyAdoptionRefusal(tc.status, []byte(tc.body))
		if got != tc.want || ok != (tc.want != "") {
			t.Errorf("%d %s: got %q, %v", tc.status, tc.body, got, ok)
		}
		if state, ok := got.Status(); state != tc.state || ok != (tc.state != "") {
			t.Errorf("%d %s: status %q, %v", tc.status, tc.body, state, ok)
		}
	}
}

func FuzzReadCorestoreLegacyAdoptionRefusal(f *testing.F) {
	f.Add(409, []byte(`{"ok":false,"error":"refused","code":"legacy-adoption-pending"}`))
	f.Add(500, []byte(`{}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		reason, ok := ReadCorestoreLegacyAdoptionRefusal(status, body)
		if _, known := reason.Status(); ok != known || ok && status != 409 {
			t.Errorf("%d: %q, %v", status, reason, ok)
		}
	})
}
