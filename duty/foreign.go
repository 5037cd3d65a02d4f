package duty

import (
	"context"
	"io"
	"log"
	"log/slog"
	"strings"
	"time"

	"serve.zone/relay/duty/field"
)

// ErrorLog returns a standard logger for a library that wants one, such as
// http.Server.ErrorLog. source names it. The text of its lines is never
// written: a line is recognised by its beginning, and what is written is the
// name of what it was, the source, the length and, where there is one, the
// peer's address.
func (l *Logger) ErrorLog(source constant) *log.Logger {
	if l == nil {
		return log.New(io.Discard, "", 0)
	}
	return log.New(lineSink{core: l.core, source: field.Source(source)}, "", 0)
}

// Handler returns a slog handler for a library that wants one. Messages are
// treated as the lines of ErrorLog. Of the attributes only those stay that
// package field believes of a foreigner; groups and all they hold are left
// out.
func (l *Logger) Handler(source constant) slog.Handler {
	if l == nil {
		return slog.DiscardHandler
	}
	return recordSink{core: l.core, source: field.Source(source)}
}

// lineSink takes the lines of a standard logger, one a Write.
type lineSink struct {
	core   *core
	source field.Field
}

// Write never fails: the standard logger has nobody to tell.
func (s lineSink) Write(p []byte) (int, error) {
	text := strings.TrimSuffix(string(p), "\n")
	v := classify(text)
	s.core.writeForeign(context.Background(), foreignLevels[v.class], v, len(text), []field.Field{s.source})
	return len(p), nil
}

// writeForeign writes what is kept of a foreign line, within the budget of
// its class.
func (c *core) writeForeign(ctx context.Context, level slog.Level, v verdict, length int, fields []field.Field) {
	c.metrics.foreign.Of(v.class).Inc()
	if level < c.level.Level() {
		return
	}
	write, suppressed := c.foreign.take(v.class.String(), time.Now())
	if !write {
		c.metrics.foreignSuppressed.Of(v.class).Inc()
		return
	}
	c.write(ctx, level, v.class.String(), field.Join(
		fields, []field.Field{v.address, v.reason, field.Bytes(length)}, suppressedField(suppressed)))
}

// recordSink takes the records of a foreign slog logger. It is immutable.
type recordSink struct {
	core    *core
	source  field.Field
	kept    []field.Field // of the attributes given to With
	grouped bool          // a group was opened: whatever comes is inside
}

func (s recordSink) Enabled(_ context.Context, level slog.Level) bool {
	return level >= s.core.level.Level()
}

func (s recordSink) Handle(ctx context.Context, record slog.Record) error {
	fields := s.kept
	if record.NumAttrs() > 0 {
		attrs := make([]slog.Attr, 0, record.NumAttrs())
		record.Attrs(func(a slog.Attr) bool {
			attrs = append(attrs, a)
			return true
		})
		fields = field.Join(s.kept, s.keep(attrs))
	}
	s.core.writeForeign(ctx, record.Level, classify(record.Message), len(record.Message),
		field.Join([]field.Field{s.source}, fields))
	return nil
}

func (s recordSink) WithAttrs(attrs []slog.Attr) slog.Handler {
	s.kept = field.Join(s.kept, s.keep(attrs))
	return s
}

func (s recordSink) WithGroup(name string) slog.Handler {
	// slog's rule: a group without a name is no group.
	s.grouped = s.grouped || name != ""
	return s
}

// keep returns what is kept of attributes and counts what is not.
func (s recordSink) keep(attrs []slog.Attr) []field.Field {
	var kept []field.Field
	for _, a := range attrs {
		if f, ok := field.FromAttr(a); ok && !s.grouped {
			kept = append(kept, f)
			continue
		}
		s.core.metrics.attr.Inc()
	}
	return kept
}
