package operator

import (
	"net/http"
	"time"

	"serve.zone/relay/duty"
)

// eventsRequest is what /events is asked for.
type eventsRequest struct {
	from  uint64
	limit int
	wait  time.Duration
}

func readEvents(r *http.Request) (eventsRequest, error) {
	q, err := readQuery(r)
	if err != nil {
		return eventsRequest{}, err
	}
	from, err := q.number("fromSeq", 1, 0, maxSequence)
	if err != nil {
		return eventsRequest{}, err
	}
	limit, err := q.number("limit", defaultPage, 1, maxPage)
	if err != nil {
		return eventsRequest{}, err
	}
	wait, err := q.number("wait", 0, 0, maxPollSeconds)
	if err != nil {
		return eventsRequest{}, err
	}
	return eventsRequest{from: from, limit: int(limit), wait: time.Duration(wait) * time.Second}, nil
}

// serveEvents answers with a page of events. With a wait an empty page is
// answered only after it, or when the endpoint leaves.
func (o *Operator) serveEvents(w http.ResponseWriter, r *http.Request) outcome {
	wanted, err := readEvents(r)
	if err != nil {
		return misuse(w, err)
	}
	if wanted.wait > 0 && !o.poll(r, wanted) {
		return busy(w, overloaded, "too many requests are waiting for events")
	}
	return o.inPlace(w, func() outcome {
		sendJSON(w, http.StatusOK, cut(o.cfg.Events.Since(wanted.from), wanted.limit))
		return served
	})
}

// poll waits until there is something to tell, and reports false when too many
// do so already.
func (o *Operator) poll(r *http.Request, wanted eventsRequest) bool {
	// The channel first, so that no event falls between the look and the wait.
	changed := o.cfg.Events.Changed()
	if tells(o.cfg.Events.Since(wanted.from), wanted.from) {
		return true
	}
	if !o.polls.take() {
		return false
	}
	defer o.polls.give()
	timer := time.NewTimer(wanted.wait)
	defer timer.Stop()
	for {
		select {
		case <-changed:
		case <-timer.C:
			return true
		case <-o.leaving:
			return true
		case <-r.Context().Done():
			return true
		}
		changed = o.cfg.Events.Changed()
		if tells(o.cfg.Events.Since(wanted.from), wanted.from) {
			return true
		}
	}
}

// tells reports whether a page is worth an answer: it has events, or its numbers
// show that the reader knows an earlier life of the relay.
func tells(page duty.Page, from uint64) bool { return len(page.Events) > 0 || page.Next < from }

// cut returns the first events of a page; Next goes on behind them.
func cut(page duty.Page, limit int) duty.Page {
	if len(page.Events) > limit {
		page.Events = page.Events[:limit]
		page.Next = page.Events[limit-1].Seq + 1
	}
	return page
}
