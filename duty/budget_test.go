package duty

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"serve.zone/relay/duty/field"
)

// bucketOracle is a bucket by its definition: a line may be written unless
// the burst is spent, one spent token coming back at each end of an interval
// that began when the first of them was spent.
type bucketOracle struct {
	limit budget
	spent int
	began time.Time // of the interval at whose end a token comes back
}

func (o *bucketOracle) take(now time.Time) bool {
	for o.spent > 0 && !o.began.Add(o.limit.interval).After(now) {
		o.began = o.began.Add(o.limit.interval)
		o.spent--
	}
	if o.spent == 0 {
		o.began = now
	}
	if o.spent >= o.limit.burst {
		return false
	}
	o.spent++
	return true
}

func TestBucketAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := budget{burst: rapid.IntRange(1, 8).Draw(t, "burst"), interval: time.Duration(rapid.IntRange(1, 50).Draw(t, "interval"))}
		var b bucket
		o := bucketOracle{limit: limit}
		start := wall()
		now := start
		written, refused := 0, uint64(0)
		for n := rapid.IntRange(1, 100).Draw(t, "lines"); n > 0; n-- {
			now = now.Add(time.Duration(rapid.IntRange(0, 120).Draw(t, "pause")))
			ok, suppressed := b.take(now, limit)
			if want := o.take(now); ok != want {
				t.Fatalf("at %v: %v, want %v", now.Sub(start), ok, want)
			}
			switch {
			case !ok:
				refused++
			case suppressed != refused:
				t.Fatalf("%d suppressed, want %d", suppressed, refused)
			default:
				written, refused = written+1, 0
			}
		}
		if most := limit.burst + int(now.Sub(start)/limit.interval); written > most {
			t.Fatalf("%d lines in %v, at most %d", written, now.Sub(start), most)
		}
	})
}

// B076: a line that repeats is written as often as its budget allows; the rest is
// counted, shown with the next one and in the metrics, and other lines go on.
func TestB076_OneLineCannotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		l := NewLogger(LogConfig{Out: &out, Wall: wall})
		for range ownBudget.burst + 500 {
			l.Warn("node-refused", field.Node("worker-1"))
		}
		if got := strings.Count(out.take(), "\n"); got != ownBudget.burst {
			t.Errorf("%d lines at once, want %d", got, ownBudget.burst)
		}
		l.Info("started")
		if got := out.take(); got != head("INFO", "started")+"}\n" {
			t.Errorf("another message: %s", got)
		}
		time.Sleep(ownBudget.interval)
		l.Warn("node-refused", field.Node("worker-1"))
		l.Warn("node-refused", field.Node("worker-1"))
		if got := out.take(); got != head("WARN", "node-refused")+`,"node":"worker-1","suppressed":500}`+"\n" {
			t.Errorf("an interval later: %s", got)
		}
		if got := value(l.Metrics(), "relay_log_suppressed_lines_total"); got != 501 {
			t.Errorf("suppressed %v, want 501", got)
		}
		time.Sleep(24 * time.Hour)
		for range ownBudget.burst + 1 {
			l.Warn("node-refused")
		}
		if got := strings.Count(out.take(), "\n"); got != ownBudget.burst {
			t.Errorf("%d lines a day later, want %d", got, ownBudget.burst)
		}
	})
}

func TestForeignLinesCannotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		l := NewLogger(LogConfig{Out: &out, Wall: wall})
		std := l.ErrorLog("node-listener")
		for i := range 1000 {
			std.Printf("http: TLS handshake error from 192.0.2.1:%d: EOF", 1000+i)
		}
		if got := strings.Count(out.take(), "\n"); got != foreignBudget.burst {
			t.Errorf("%d lines at once, want %d", got, foreignBudget.burst)
		}
		std.Print("something else")
		if got := out.take(); got != head("INFO", "foreign-line")+`,"source":"node-listener","bytes":14}`+"\n" {
			t.Errorf("another class: %s", got)
		}
		time.Sleep(foreignBudget.interval)
		std.Print("http: TLS handshake error from 192.0.2.1:7: EOF")
		want := head("INFO", "tls-handshake-error") + `,"source":"node-listener","address":"192.0.2.1:7","reason":"eof","bytes":47,"suppressed":990}` + "\n"
		if got := out.take(); got != want {
			t.Errorf("an interval later: %s\nwant %s", got, want)
		}
		if got := value(l.Metrics(), "relay_log_foreign_lines_total", "tls-handshake-error"); got != 1001 {
			t.Errorf("counted %v, want 1001", got)
		}
		if got := value(l.Metrics(), "relay_log_foreign_suppressed_lines_total", "tls-handshake-error"); got != 990 {
			t.Errorf("suppressed %v, want 990", got)
		}
	})
}

func TestBudgetsAreBounded(t *testing.T) {
	s := newBudgets(budget{burst: 1, interval: time.Hour})
	for i := range maxBudgets {
		if ok, _ := s.take(fmt.Sprintf("message-%d", i), wall()); !ok {
			t.Fatalf("message %d has no budget", i)
		}
	}
	first, _ := s.take("one-more", wall())
	second, _ := s.take("another", wall())
	if !first || second || len(s.buckets) != maxBudgets+1 {
		t.Errorf("%v, %v, %d buckets", first, second, len(s.buckets))
	}
}
