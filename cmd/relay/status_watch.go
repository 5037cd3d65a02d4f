package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"serve.zone/relay/demo"
	"serve.zone/relay/operator/client"
)

const (
	// watchEvery is the time between two looks: soon for who watches, and long enough for
	// a rate to be more than chance.
	watchEvery = 2 * time.Second
	// watchEnd is how long a signal waits for an output that takes nothing more.
	watchEnd = time.Second
)

// watch shows the relay again and again, until a signal. A closed output ends it too.
func watch(p process, ask func(context.Context) ([]byte, error)) int {
	signals, unsubscribe := p.signals()
	defer unsubscribe()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	w := watcher{p: p, ask: ask, on: terminalOf(p.stdout, p.environ), size: func() (int, int) { return sizeOf(p.stdout) }}
	ended := make(chan int, 1)
	go func() { ended <- w.run(ctx) }()
	select {
	case code := <-ended:
		return code
	case <-signals:
	}
	stop()
	select {
	case <-ended:
	case <-time.After(watchEnd):
	}
	return exitClean
}

// watcher is a watch under way.
type watcher struct {
	p    process
	ask  func(context.Context) ([]byte, error)
	on   demo.Terminal
	size func() (columns, rows int) // 0 for unknown

	drawn  bool             // a terminal shows something already
	before *client.Document // the look before, nil when it failed
	failed time.Time        // since when the relay cannot be asked; zero when it can
}

// run looks until ctx ends or the output takes nothing more.
func (w *watcher) run(ctx context.Context) int {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		lines := w.look(ctx)
		if ctx.Err() != nil {
			return exitClean
		}
		if code := w.show(lines); code != exitClean {
			return code
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return exitClean
		}
	}
}

// look looks once.
func (w *watcher) look(ctx context.Context) []line {
	columns, _ := w.size()
	text, err := w.ask(ctx)
	var d client.Document
	if err == nil {
		d, err = client.ReadDocument(text)
	}
	if err != nil {
		since := ""
		if w.failed.IsZero() {
			w.failed = time.Now()
		} else {
			since = forSoLong(ageText(time.Since(w.failed)))
		}
		w.before = nil
		return lostSight(err, since, columns)
	}
	l := look{Document: d, rates: true, before: w.before}
	w.before, w.failed = &d, time.Time{}
	return statusLines(l, columns)
}

// Control sequences of ECMA-48: cursor to the top left, erase all, erase the rest of a
// line, erase what is below. A screen is written over, not erased first, so that it does
// not flicker.
const (
	toTop      = "\x1b[H"
	eraseAll   = "\x1b[2J"
	eraseRest  = "\x1b[K"
	eraseBelow = "\x1b[J"
)

// show shows what was seen: as the whole of a terminal, otherwise as one more block.
func (w *watcher) show(lines []line) int {
	if !w.on.Rewrite {
		text := written(lines, false)
		if w.drawn {
			text = "\n" + text
		}
		w.drawn = true
		return w.p.print(text)
	}
	_, rows := w.size()
	var b strings.Builder
	b.WriteString(toTop)
	if !w.drawn {
		b.WriteString(eraseAll)
	}
	w.drawn = true
	for _, l := range fitting(lines, rows) {
		b.WriteString(l.text(w.on.Colour) + eraseRest + "\n")
	}
	b.WriteString(eraseBelow)
	return w.p.print(b.String())
}

// fitting are the lines that a terminal of so many rows has room for: the first ones,
// and one that says how many are left out. 0 rows are any number.
func fitting(lines []line, rows int) []line {
	room := rows - 1 // the cursor stands below the last one
	if rows == 0 || len(lines) <= room {
		return lines
	}
	shown := max(0, room-1)
	return append(lines[:shown:shown], line{{faint, fmt.Sprintf("%d more lines have no room here", len(lines)-shown)}})
}
