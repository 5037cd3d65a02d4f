package duty

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"serve.zone/relay/duty/field"
)

// Format is how lines are written.
type Format uint8

// The formats of the log.
const (
	JSON Format = iota // one object a line, as log/slog writes it
	Text               // key=value, as log/slog writes it
)

// ParseFormat reads the name of a format: json or text.
func ParseFormat(s string) (Format, error) {
	switch s {
	case "json":
		return JSON, nil
	case "text":
		return Text, nil
	}
	return 0, errors.New("log format: want json or text")
}

// levels are the four that a line can have.
var levels = [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

// ParseLevel reads the name of a level: debug, info, warn or error.
func ParseLevel(s string) (slog.Level, error) {
	for i, name := range levelNames {
		if s == name {
			return levels[i], nil
		}
	}
	return 0, errors.New("log level: want debug, info, warn or error")
}

// LogConfig is what a Logger is made from. The zero value says nothing.
type LogConfig struct {
	Out    io.Writer        // io.Discard if nil; one Write a line
	Format Format           // JSON if not given
	Level  slog.Level       // info if not given
	Wall   func() time.Time // time.Now if nil
}

// Logger is the one function that writes to the log (contract §18). A line is
// a constant of the program as its message and fields of package field, and
// nothing else: there is no way to give it a text of run time.
//
// It is safe for concurrent use. A nil Logger says nothing.
type Logger struct {
	core  *core
	bound []field.Field
}

// NewLogger returns a logger.
func NewLogger(c LogConfig) *Logger {
	if c.Out == nil {
		c.Out = io.Discard
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
	return &Logger{core: newCore(c)}
}

// With returns a logger whose lines have these fields too. A field given with
// a line wins over a bound one of the same key.
func (l *Logger) With(fields ...field.Field) *Logger {
	if l == nil {
		return nil
	}
	return &Logger{core: l.core, bound: field.Join(l.bound, fields)}
}

// Debug writes what only somebody who looks for a fault wants to read.
func (l *Logger) Debug(message constant, fields ...field.Field) {
	l.line(slog.LevelDebug, string(message), fields)
}

// Info writes what happened in the normal course of things.
func (l *Logger) Info(message constant, fields ...field.Field) {
	l.line(slog.LevelInfo, string(message), fields)
}

// Warn writes what an operator should look at in working hours.
func (l *Logger) Warn(message constant, fields ...field.Field) {
	l.line(slog.LevelWarn, string(message), fields)
}

// Error writes what an operator should look at now.
func (l *Logger) Error(message constant, fields ...field.Field) {
	l.line(slog.LevelError, string(message), fields)
}

// Enabled reports whether a line of this level would be written.
func (l *Logger) Enabled(level slog.Level) bool {
	return l != nil && level >= l.core.level.Level()
}

// SetLevel changes the level of every logger that came from the same
// NewLogger, at once.
func (l *Logger) SetLevel(level slog.Level) {
	if l != nil {
		l.core.level.Set(level)
	}
}

// Metrics returns what the logger counts about itself.
func (l *Logger) Metrics() *Metrics {
	if l == nil {
		return NewMetrics("log")
	}
	return l.core.metrics.set
}

// line writes one line of our own, within the budget of its message.
func (l *Logger) line(level slog.Level, message string, fields []field.Field) {
	if !l.Enabled(level) {
		return
	}
	if !field.IsName(message) {
		message = field.Withheld
	}
	write, suppressed := l.core.budgets.take(message, time.Now())
	if !write {
		l.core.metrics.suppressed.Inc()
		return
	}
	l.core.write(context.Background(), level, message, field.Join(l.bound, fields, suppressedField(suppressed)))
}

// suppressedField says how many lines were left out before this one.
func suppressedField(n uint64) []field.Field {
	if n == 0 {
		return nil
	}
	return []field.Field{field.Suppressed(n)}
}
