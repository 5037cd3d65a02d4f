package rig

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Metrics are the samples of a page in the Prometheus text format. A key is the
// name of the metric and, where it has labels, `{a="x",b="y"}` behind it, ordered
// by label and escaped as on the page.
type Metrics map[string]float64

// Value returns one sample. Labels are pairs of a name and a value.
func (m Metrics) Value(name string, labels ...string) (float64, bool) {
	value, ok := m[seriesKey(name, pairsOf(labels))]
	return value, ok
}

// Sum returns the sum of all samples of a name that bear the labels, and how many
// there are.
func (m Metrics) Sum(name string, labels ...string) (sum float64, samples int) {
	want := pairsOf(labels)
	for key, value := range m {
		found, has, err := readSeries(key)
		if err != nil || found != name {
			continue
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(l string) bool {
			text, ok := has[l]
			return !ok || text != want[l]
		}) {
			sum += value
			samples++
		}
	}
	return sum, samples
}

func pairsOf(labels []string) map[string]string {
	if len(labels)%2 != 0 {
		panic("rig: a label without a value")
	}
	pairs := map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		pairs[labels[i]] = labels[i+1]
	}
	return pairs
}

// ParseMetrics reads a page in the Prometheus text format 0.0.4. It is strict: a
// sample that stands there twice, or before the TYPE of its family, is an error.
func ParseMetrics(page string) (Metrics, error) {
	m, typed := Metrics{}, map[string]bool{}
	number := 0
	for line := range strings.Lines(page) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ := strings.Cut(rest, " ")
			typed[name] = true
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, key, value, err := readSample(line)
		if err != nil {
			return nil, fmt.Errorf("metrics, line %d: %w", number, err)
		}
		if _, twice := m[key]; twice {
			return nil, fmt.Errorf("metrics, line %d: %s stands there twice", number, key)
		}
		if !typed[name] && !typed[familyOf(name)] {
			return nil, fmt.Errorf("metrics, line %d: %s has no TYPE before it", number, name)
		}
		m[key] = value
	}
	return m, nil
}

// familyOf cuts off what the series of histograms and summaries add to the name.
func familyOf(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if family, ok := strings.CutSuffix(name, suffix); ok {
			return family
		}
	}
	return name
}

// readSample reads `name{labels} value [timestamp]`.
func readSample(line string) (name, key string, value float64, err error) {
	end := endOfSeries(line)
	name, labels, err := readSeries(line[:end])
	if err != nil {
		return "", "", 0, err
	}
	parts := strings.Fields(line[end:])
	if len(parts) < 1 || len(parts) > 2 {
		return "", "", 0, fmt.Errorf("want a value and at most a time behind %s", name)
	}
	if value, err = strconv.ParseFloat(parts[0], 64); err != nil {
		return "", "", 0, fmt.Errorf("the value of %s is no number", name)
	}
	return name, seriesKey(name, labels), value, nil
}

// endOfSeries returns where name and labels end, heeding quotes.
func endOfSeries(line string) int {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c == '}':
			return i + 1
		case !quoted && c == ' ' && !strings.Contains(line[:i], "{"):
			return i
		}
	}
	return len(line)
}

// readSeries reads `name{label="value",…}`.
func readSeries(text string) (name string, labels map[string]string, err error) {
	name, rest, braced := strings.Cut(text, "{")
	labels = map[string]string{}
	if !isMetricName(name) {
		return "", nil, fmt.Errorf("%q is no name of a metric", name)
	}
	if !braced {
		return name, labels, nil
	}
	for rest != "}" {
		label, after, ok := strings.Cut(rest, `="`)
		if !ok || !isMetricName(label) || strings.Contains(label, ":") {
			return "", nil, fmt.Errorf("%s: malformed label", name)
		}
		value, after, ok := readQuoted(after)
		if !ok {
			return "", nil, fmt.Errorf("%s: the value of label %s does not end or holds a wrong escape", name, label)
		}
		if _, twice := labels[label]; twice {
			return "", nil, fmt.Errorf("%s: label %s stands there twice", name, label)
		}
		labels[label] = value
		rest = strings.TrimPrefix(after, ",")
		if rest == after && rest != "}" {
			return "", nil, fmt.Errorf("%s: labels are not separated", name)
		}
	}
	return name, labels, nil
}

// readQuoted reads up to the closing quote.
func readQuoted(text string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			return b.String(), text[i+1:], true
		case '\\':
			i++
			if i >= len(text) {
				return "", "", false
			}
			switch text[i] {
			case 'n':
				b.WriteByte('\n')
			case '\\', '"':
				b.WriteByte(text[i])
			default:
				return "", "", false
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

func isMetricName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == ':':
		case i > 0 && c >= '0' && c <= '9':
		default:
			return false
		}
	}
	return s != ""
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// seriesKey is the one spelling of a series.
func seriesKey(name string, labels map[string]string) string {
	if len(labels) == 0 {
		return name
	}
	parts := make([]string, 0, len(labels))
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, label+`="`+labelEscapes.Replace(labels[label])+`"`)
	}
	return name + "{" + strings.Join(parts, ",") + "}"
}
