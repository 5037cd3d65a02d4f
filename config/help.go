package config

import "strings"

// helpWidth is the width that help is wrapped to, that of a terminal.
const helpWidth = 80

// Help returns the text of --help for every flag, by sections. What stands in
// the file alone is left to the documentation.
func Help() string {
	var b strings.Builder
	section := ""
	for _, s := range Settings() {
		if s.Flag == "" {
			continue
		}
		if s.Section != section {
			if section != "" {
				b.WriteByte('\n')
			}
			section = s.Section
			b.WriteString(section + ":\n")
		}
		b.WriteString("  --" + s.Flag)
		if s.Kind != KindSwitch {
			b.WriteString("=" + s.Form())
		}
		b.WriteByte('\n')
		wrap(&b, "      ", strings.ReplaceAll(s.Meaning, "`", "")+" "+s.standing())
		wrap(&b, "      ", "environment: "+strings.Join(s.Env, ", "))
	}
	return b.String()
}

// standing says in a few words what stands where nothing is given.
func (s Setting) standing() string {
	switch {
	case s.Required:
		return "(required)"
	case s.Default != "":
		return "(default " + s.Default + ")"
	case s.Unset != "":
		return "(default: " + s.Unset + ")"
	}
	return ""
}

// wrap writes words in lines of helpWidth, each behind the indent.
func wrap(b *strings.Builder, indent, text string) {
	line := indent
	for word := range strings.FieldsSeq(text) {
		if line != indent && len(line)+1+len(word) > helpWidth {
			b.WriteString(line + "\n")
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
}
