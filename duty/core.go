package duty

import (
	"context"
	"log/slog"
	"time"

	"serve.zone/relay/duty/field"
)

// core is what all loggers of one NewLogger share, and the only place that
// writes a line.
type core struct {
	handler slog.Handler
	level   *slog.LevelVar
	wall    func() time.Time
	budgets *budgets // of our own messages
	foreign *budgets // of the classes of foreign lines
	metrics logMetrics
}

type logMetrics struct {
	set                              *Metrics
	written                          *By[levelEnum, Counter]
	lost, suppressed, withheld, attr *Counter
	panics                           *Counter
	foreign, foreignSuppressed       *By[foreignClass, Counter]
}

// levelEnum is a level as a label.
type levelEnum uint8

const levelCount = levelEnum(len(levelNames))

var levelNames = [...]string{"debug", "info", "warn", "error"}

// String returns the level's name.
func (l levelEnum) String() string { return levelNames[l] }

// enumOf returns the label of the highest of the four levels that is not
// above level: foreign records may have levels between them.
func enumOf(level slog.Level) levelEnum {
	e := levelEnum(0)
	for i, l := range levels {
		if level >= l {
			e = levelEnum(i)
		}
	}
	return e
}

// everyLevel is for slog's handlers: the level is judged before they are
// asked, by Logger.line and core.writeForeign.
var everyLevel = &slog.HandlerOptions{Level: slog.LevelDebug}

func newCore(c LogConfig) *core {
	level := new(slog.LevelVar)
	level.Set(c.Level)
	m := NewMetrics("log")
	k := &core{
		level: level, wall: c.Wall, handler: slog.NewJSONHandler(c.Out, everyLevel),
		budgets: newBudgets(ownBudget), foreign: newBudgets(foreignBudget),
		metrics: logMetrics{
			set:               m,
			written:           CounterBy(m, "relay_log_written_lines_total", "Lines written, by level.", "level", levelCount),
			lost:              m.Counter("relay_log_lost_lines_total", "Lines that the output did not take."),
			suppressed:        m.Counter("relay_log_suppressed_lines_total", "Own lines left out because too many had the same message."),
			withheld:          m.Counter("relay_log_withheld_values_total", "Values of lines that were not fit to be shown."),
			attr:              m.Counter("relay_log_dropped_attributes_total", "Attributes of foreign records that are not on the allow-list."),
			panics:            m.Counter("relay_log_recovered_panics_total", "Panics that were recovered: mistakes in the relay."),
			foreign:           CounterBy(m, "relay_log_foreign_lines_total", "Lines of foreign loggers, written or not, by what they were recognised as.", "class", foreignClasses),
			foreignSuppressed: CounterBy(m, "relay_log_foreign_suppressed_lines_total", "Lines of foreign loggers left out because too many were alike.", "class", foreignClasses),
		},
	}
	if c.Format == Text {
		k.handler = slog.NewTextHandler(c.Out, everyLevel)
	}
	return k
}

// write hands one line to the handler, which makes one Write of it.
func (c *core) write(ctx context.Context, level slog.Level, message string, fields []field.Field) {
	record := slog.NewRecord(c.wall().UTC(), level, message, 0)
	for _, f := range fields {
		if f.IsWithheld() {
			c.metrics.withheld.Inc()
		}
		record.AddAttrs(f.Attr())
	}
	if err := c.handler.Handle(ctx, record); err != nil {
		c.metrics.lost.Inc()
		return
	}
	c.metrics.written.Of(enumOf(level)).Inc()
}
