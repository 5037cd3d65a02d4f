package config

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
)

// Load reads the configuration. The report counts also beside an error, which is
// an *InvalidError with every violation.
func Load(s Sources) (Config, Report, error) {
	l := loader{
		sources: s, table: Settings(), variables: readEnviron(s.Environ),
		places: map[string]Place{}, bad: map[string]bool{}, given: map[string]bool{},
	}
	l.judgeFlags()
	l.judgeEnviron()
	l.readFile()
	for _, row := range l.table {
		l.resolve(row)
	}
	l.judge()
	if err := l.err(); err != nil {
		return Config{}, l.report, err
	}
	return l.config, l.report, nil
}

// loader is one Load on its way.
type loader struct {
	sources   Sources
	table     []Setting
	variables map[string]string // what is set in the environment
	file      map[string]fileValue
	// fileBroken says that the file could not be read, so that what is missing
	// may stand there.
	fileBroken bool

	findings
	places map[string]Place // of every setting
	bad    map[string]bool  // settings with a violation: no rule looks at their value again
	given  map[string]bool  // settings that a source gave a value that is not empty
	config Config
	report Report
}

// refuse records a violation.
func (l *loader) refuse(p Place, rule Rule) {
	l.bad[p.Setting] = true
	l.add(p, rule)
}

// refuseSetting records a violation by a setting's value, wherever it stands.
func (l *loader) refuseSetting(name string, rule Rule) { l.refuse(l.places[name], rule) }

// judgeFlags refuses flags that are no setting's, and secrets in the others.
func (l *loader) judgeFlags() {
	rows := map[string]Setting{}
	for _, s := range l.table {
		if s.Flag != "" {
			rows[s.Flag] = s
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.sources.Flags)) {
		row, known := rows[name]
		switch {
		case !known:
			l.refuse(Place{Setting: shown(name), Source: FromFlag}, UnknownSetting)
		case holdsSecret(row.Kind, l.sources.Flags[name]):
			l.refuse(flagPlace(row), SecretInTheOpen)
		}
	}
}

func flagPlace(s Setting) Place {
	return Place{Setting: s.Name(), Source: FromFlag, Name: "--" + s.Flag}
}

// find returns what the strongest source says about a setting.
func (l *loader) find(s Setting) (value, Place) {
	if text, given := l.sources.Flags[s.Flag]; given && s.Flag != "" {
		return value{text: text}, flagPlace(s)
	}
	for _, name := range s.Env {
		if text, given := l.variables[name]; given {
			return value{text: text}, Place{Setting: s.Name(), Source: FromEnvironment, Name: name}
		}
	}
	if v, given := l.file[s.Key]; given && s.Key != "" {
		return v.value, Place{Setting: s.Name(), Source: FromFile, Line: v.line}
	}
	return value{text: s.Default}, Place{Setting: s.Name()}
}

// resolve reads one setting into its field.
func (l *loader) resolve(s Setting) {
	v, place := l.find(s)
	name := s.Name()
	l.places[name] = place
	l.report.Settings = append(l.report.Settings, place)
	l.given[name] = place.Source != FromDefault && !v.isEmpty()
	switch {
	case l.bad[name]:
	case v.isEmpty() && s.Required:
		if place.Source != FromDefault || !l.fileBroken {
			l.refuse(place, Required)
		}
	case v.isEmpty() && s.Default == "":
	default:
		if rule := s.set(&l.config, v); rule != "" {
			l.refuse(place, rule)
		}
	}
}

// readFile reads the configuration file, if one is named.
func (l *loader) readFile() {
	row := l.table[slices.IndexFunc(l.table, func(s Setting) bool { return s.Flag == configFlag })]
	v, place := l.find(row)
	if v.isEmpty() {
		return
	}
	if !l.bad[row.Name()] {
		content, rule := l.openFile(v.text)
		if rule == "" {
			reader := newFileReader(l.table)
			l.fileBroken = !reader.read(content)
			l.file = reader.found
			for _, r := range reader.reasons {
				l.bad[r.Setting] = true
				l.addReason(r)
			}
			l.more += reader.more
			return
		}
		l.refuse(place, rule)
	}
	l.fileBroken = true
}

// openFile returns the content of the configuration file.
func (l *loader) openFile(name string) ([]byte, Rule) {
	if _, rule := readFileName(name); rule != "" {
		return nil, rule
	}
	if l.sources.Open == nil {
		return nil, FileUnreadable
	}
	file, err := l.sources.Open(name)
	if err != nil {
		return nil, fileRule(err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maximumFile+1))
	switch {
	case err != nil:
		return nil, fileRule(err)
	case len(content) > maximumFile:
		return nil, FileTooLarge
	}
	return content, ""
}

func fileRule(err error) Rule {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return FileMissing
	case errors.Is(err, fs.ErrPermission):
		return FileForbidden
	}
	return FileUnreadable
}
