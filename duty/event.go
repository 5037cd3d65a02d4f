package duty

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"serve.zone/relay/duty/field"
)

// EventType is the stable name of one kind of event, in the grammar of
// field.IsName. Duties declare theirs as constants. It is API: a type is
// never renamed and never given another meaning.
type EventType string

// EventKind is what is known about one type.
type EventKind struct {
	Type EventType
	// Duty is the name of the duty that publishes it.
	Duty string
	// Level is the level of the line that the logger writes for it.
	Level slog.Level
	// Says is one sentence for the operator's manual: when it is published
	// and, where there is something to do, what.
	Says constant
}

// Event is something that happened, as /events shows it.
type Event struct {
	Seq    uint64     `json:"seq"` // from 1, without gaps
	Time   time.Time  `json:"time"`
	Type   EventType  `json:"type"`
	Duty   string     `json:"duty,omitempty"`
	Level  slog.Level `json:"level"`
	Fields field.List `json:"fields,omitempty"`
}

// Catalogue is the closed, immutable set of the types that a relay publishes.
type Catalogue struct {
	kinds map[EventType]EventKind
}

// NewCatalogue joins the tables of the duties. It refuses a type that stands
// in them twice, and one whose row is not complete.
func NewCatalogue(tables ...[]EventKind) (*Catalogue, error) {
	c := &Catalogue{kinds: map[EventType]EventKind{}}
	var wrong []error
	for _, table := range tables {
		for _, kind := range table {
			if err := kind.check(); err != nil {
				wrong = append(wrong, err)
				continue
			}
			if earlier, ok := c.kinds[kind.Type]; ok {
				wrong = append(wrong, fmt.Errorf("events: %s is declared by %s and by %s", kind.Type, earlier.Duty, kind.Duty))
				continue
			}
			c.kinds[kind.Type] = kind
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return c, nil
}

func (k EventKind) check() error {
	switch {
	case !field.IsName(string(k.Type)):
		return fmt.Errorf("events: a type of %s is not a name", field.Duty(k.Duty))
	case !field.IsName(k.Duty):
		return fmt.Errorf("events: the duty of %s is not a name", k.Type)
	case !slices.Contains(levels[:], k.Level):
		return fmt.Errorf("events: the level of %s is none of the four", k.Type)
	case k.Says == "":
		return fmt.Errorf("events: %s has no sentence", k.Type)
	}
	return nil
}

// Kinds returns every kind, ordered by duty and type.
func (c *Catalogue) Kinds() []EventKind {
	kinds := make([]EventKind, 0, len(c.kinds))
	for _, kind := range c.kinds {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b EventKind) int {
		if by := strings.Compare(a.Duty, b.Duty); by != 0 {
			return by
		}
		return strings.Compare(string(a.Type), string(b.Type))
	})
	return kinds
}

// undeclaredEvent stands for a type that no duty declared. The type itself is
// not shown: a constant was expected and something else came.
const undeclaredEvent EventType = "undeclared-event"

// kind returns what is known about t. A type that nobody declared is a
// mistake of the program, which is shown rather than hidden.
func (c *Catalogue) kind(t EventType) (EventKind, bool) {
	if c != nil {
		if kind, ok := c.kinds[t]; ok {
			return kind, true
		}
	}
	return EventKind{Type: undeclaredEvent, Level: slog.LevelWarn}, false
}
