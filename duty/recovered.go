package duty

import (
	"runtime"

	"serve.zone/relay/duty/field"
)

// maxDepth is how much of a stack is looked at for the place of a panic: the
// frames of the recovery and those that package field shows.
const maxDepth = 64

// Recovered writes that a panic was recovered, with the functions it went
// through and without any value: the text of a panic may quote a body
// (contract §18). It reports whether there was one. fields say what was being
// done.
//
//	defer func() {
//		if log.Recovered(recover(), field.Method(method)) {
//			answer(...)
//		}
//	}()
func (l *Logger) Recovered(value any, fields ...field.Field) bool {
	if value == nil {
		return false
	}
	if l == nil {
		return true
	}
	l.core.metrics.panics.Inc()
	pcs := make([]uintptr, maxDepth)
	pcs = pcs[:runtime.Callers(2, pcs)] // 2: neither Callers nor Recovered
	l.Error("panic-recovered", field.Join(fields, []field.Field{field.Panic(value), field.Stack(pcs)})...)
	return true
}
