package config

import "strings"

// Markdown returns docs/configuration.md. A test of this package compares the
// two; `go generate ./config` writes the document again.
//
//go:generate go test -run TestDocumentIsCurrent -update .
func Markdown() string {
	var b strings.Builder
	b.WriteString(documentHead)
	section := ""
	for _, s := range Settings() {
		if s.Section != section {
			section = s.Section
			b.WriteString("\n" + heading(s) + "\n\n")
			b.WriteString(sectionText[section])
			b.WriteString(tableHead(s))
		}
		b.WriteString(row(s))
	}
	return b.String()
}

func heading(s Setting) string {
	if s.Flag == "" {
		return "## In the file alone: " + s.Section
	}
	return "## " + s.Section
}

func tableHead(s Setting) string {
	if s.Flag == "" {
		return "| key | value | default | meaning |\n| --- | --- | --- | --- |\n"
	}
	return "| flag | environment | value | default | meaning |\n| --- | --- | --- | --- | --- |\n"
}

func row(s Setting) string {
	cells := []string{code(s.Key)}
	if s.Flag != "" {
		cells = []string{code("--" + s.Flag), codes(s.Env)}
	}
	form := code(s.Form())
	if s.Kind == KindChoice {
		form = codes(s.Choices)
	}
	return "| " + strings.Join(append(cells, form, documentDefault(s), s.Meaning), " | ") + " |\n"
}

func documentDefault(s Setting) string {
	switch {
	case s.Required:
		return "required"
	case s.Default != "":
		return code(s.Default)
	case s.Unset != "":
		return s.Unset
	}
	return "–"
}

func code(text string) string {
	// A bar would end the table's cell.
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

func codes(texts []string) string {
	marked := make([]string, len(texts))
	for i, text := range texts {
		marked[i] = code(text)
	}
	return strings.Join(marked, ", ")
}
