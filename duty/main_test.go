package duty

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wall is the wall clock of a test, standing still.
func wall() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// output collects what a logger writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// take returns what was written since the last take.
func (o *output) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.b.Reset()
	return o.b.String()
}

// head is what every JSON line of a test begins with.
func head(level, message string) string {
	return `{"time":"2026-01-02T03:04:05Z","level":"` + level + `","msg":"` + message + `"`
}

// value returns the count of one series; -1 if there is none.
func value(m *Metrics, name string, labels ...string) float64 {
	for _, f := range m.Snapshot() {
		if f.Name != name {
			continue
		}
	next:
		for _, s := range f.Samples {
			if len(s.Labels) != len(labels) {
				continue
			}
			for i, l := range s.Labels {
				if l.Value != labels[i] {
					continue next
				}
			}
			return s.Value
		}
	}
	return -1
}
