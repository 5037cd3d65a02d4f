package field

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
)

// Limits of a stack in a line.
const (
	maxFrames = 24  // deeper than any call path of ours; the rest is the server's
	maxFrame  = 160 // longer than our longest function name with its file
)

// Panic says what a recovered panic was. The runtime's own panics (an index
// out of range, a nil map) are told in its words, which have numbers and types
// but no values; an error is told as Error tells it; of any other value only
// the type is told, since the text of a panic may quote a body (contract §18).
func Panic(value any) Field {
	if value == nil {
		return Field{}
	}
	err, ok := value.(error)
	switch {
	case ok && madeByRuntime(err):
		return composed(keyPanic, err.Error(), value)
	case ok:
		return composed(keyPanic, told(err), value)
	}
	return composed(keyPanic, typeName(value), value)
}

// madeByRuntime reports whether err is of a type that only the Go runtime
// makes.
func madeByRuntime(err error) bool {
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == "runtime"
}

// Stack says the functions of a goroutine, innermost first, with file and
// line and without their arguments: pcs is what runtime.Callers filled. In a
// goroutine that panics the frames of the recovery are left out, so that the
// first one is where it happened.
func Stack(pcs []uintptr) Field {
	if len(pcs) == 0 {
		return Field{}
	}
	frames := stackOf(pcs)
	for i, frame := range frames {
		if frame.Function == "runtime.gopanic" {
			frames = frames[i+1:]
			break
		}
	}
	// Behind it stand the runtime's helpers, such as runtime.panicIndex.
	for len(frames) > 1 && strings.HasPrefix(frames[0].Function, "runtime.") {
		frames = frames[1:]
	}
	texts := make([]string, 0, maxFrames)
	for _, frame := range frames[:min(len(frames), maxFrames)] {
		texts = append(texts, frameText(frame))
	}
	return text(keyStack, strings.Join(texts, "; "))
}

func stackOf(pcs []uintptr) []runtime.Frame {
	all := make([]runtime.Frame, 0, len(pcs))
	frames := runtime.CallersFrames(pcs)
	for {
		frame, more := frames.Next()
		if frame.Function != "" {
			all = append(all, frame)
		}
		if !more {
			return all
		}
	}
}

// frameText names the file without its folder: where the program was built
// is nobody's business.
func frameText(frame runtime.Frame) string {
	s := fmt.Sprintf("%s %s:%d", frame.Function, filepath.Base(frame.File), frame.Line)
	if len(s) > maxFrame {
		s = s[:maxFrame]
	}
	return s
}
