package policy

import (
	"os"
	"slices"
	"strings"
	"testing"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// sections returns the titles of the document in order, and the text below each.
func sections(t *testing.T) (intro string, titles []string, texts map[string]string) {
	t.Helper()
	document, err := os.ReadFile("drops.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(document), "\n## ")
	texts = map[string]string{}
	for _, part := range parts[1:] {
		title, text, _ := strings.Cut(part, "\n")
		titles = append(titles, title)
		texts[title] = strings.TrimSpace(text)
	}
	return parts[0], titles, texts
}

// Every reason is at once a label, the field of an event and a section of the
// document, by one name.
func TestEveryReasonHasItsPlaces(t *testing.T) {
	intro, titles, texts := sections(t)
	m := duty.NewMetrics("hub")
	counters := NewDropCounters(m)
	labels := map[string]float64{}
	for r := range Reasons {
		counters.Of(r).Add(uint64(r) + 1)
	}
	for _, metric := range m.Snapshot() {
		if !strings.Contains(intro, "`"+metric.Name+"`") {
			t.Errorf("the document does not name %s", metric.Name)
		}
		for _, s := range metric.Samples {
			labels[s.Labels[0].Value] = s.Value
		}
	}
	var names []string
	for r := range Reasons {
		name := r.String()
		names = append(names, name)
		if !field.IsName(name) {
			t.Errorf("%q cannot be a field of an event", name)
		}
		if labels[name] != float64(r)+1 {
			t.Errorf("%s has no counter of its own: %v", name, labels[name])
		}
		if r.Says() == "" || strings.HasSuffix(r.Says(), ".") {
			t.Errorf("%s says %q", name, r.Says())
		}
		if len(texts[name]) < 40 {
			t.Errorf("the document says of %s: %q", name, texts[name])
		}
	}
	if !slices.Equal(titles, names) {
		t.Errorf("sections %q, reasons %q", titles, names)
	}
	if len(labels) != int(Reasons) {
		t.Errorf("%d labels for %d reasons", len(labels), Reasons)
	}
}

func TestActionsHaveNames(t *testing.T) {
	names := map[string]bool{"": true}
	for a := range Actions {
		if names[a.String()] {
			t.Errorf("action %d is called %q", a, a.String())
		}
		names[a.String()] = true
	}
	if zero := (Verdict{}); zero.Action != Drop {
		t.Errorf("the zero verdict is %v", zero.Action)
	}
}
