package operator

import (
	"net/http"
	"time"

	"serve.zone/relay/duty/field"
)

// serveHTTP serves every request of every connection.
func (o *Operator) serveHTTP(rw http.ResponseWriter, r *http.Request) {
	w := &writer{ResponseWriter: rw}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	to, became := routeOf(r.URL.Path), broken
	defer func() { o.metrics.requests.Of(to, became).Inc() }()
	became = o.answer(w, r, to)
}

// writer knows whether an answer has begun.
type writer struct {
	http.ResponseWriter
	begun bool
}

func (w *writer) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(b []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// answer answers a request.
func (o *Operator) answer(w *writer, r *http.Request, to route) (became outcome) {
	defer func() {
		if !o.log.Recovered(recover(), field.Duty(Name), field.Reason(to.String())) {
			return
		}
		if w.begun {
			panic(http.ErrAbortHandler) // so that nobody takes a part for the whole
		}
		w.Header().Set("Connection", "close")
		say(w, http.StatusInternalServerError, "the relay made a mistake; its log has more")
		became = broken
	}()
	if refused, ok := o.admit(w, r, to); !ok {
		return refused
	}
	if !o.begin() {
		return busy(w, leaving, "the relay is leaving")
	}
	defer o.work.End()
	return o.dispatch(w, r, to)
}

// admit refuses what is not answered whatever the duties say.
func (o *Operator) admit(w http.ResponseWriter, r *http.Request, to route) (outcome, bool) {
	if r.ContentLength != 0 {
		// net/http would read it after the answer, to keep the connection.
		w.Header().Set("Connection", "close")
		http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	}
	switch {
	case !isDirect(r.Host):
		say(w, http.StatusMisdirectedRequest, "the Host header must be an IP address or localhost")
		return misused, false
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		say(w, http.StatusMethodNotAllowed, "this endpoint is read only: GET and HEAD")
		return misused, false
	case r.ContentLength != 0:
		say(w, http.StatusBadRequest, "requests have no body here")
		return misused, false
	case isSurplus(r):
		// One answer, so that the place in reserve is free for the next probe.
		w.Header().Set("Connection", "close")
		if !to.isProbe() {
			return busy(w, overloaded, "too many connections are open; probes are answered"), false
		}
	}
	return 0, true
}

func (o *Operator) dispatch(w http.ResponseWriter, r *http.Request, to route) outcome {
	switch to {
	case routeIndex:
		say(w, http.StatusOK, index)
	case routeLive:
		say(w, http.StatusOK, "ok")
	case routeReady:
		return o.serveReady(w, r)
	case routeEvents:
		return o.serveEvents(w, r)
	case routeExplain:
		return o.serveExplain(w, r)
	case routeProfile:
		return o.serveProfile(w, r)
	case routeStatus:
		return o.inPlace(w, func() outcome { return o.serveStatus(w) })
	case routeMetrics:
		return o.inPlace(w, func() outcome { o.scrape.ServeHTTP(w, r); return served })
	default:
		return nothing(w)
	}
	return served
}

// inPlace gives a large answer if there is a place for one.
func (o *Operator) inPlace(w http.ResponseWriter, give func() outcome) outcome {
	if !o.answers.take() {
		return busy(w, overloaded, "too many answers are being given")
	}
	defer o.answers.give()
	return give()
}

const index = `cluster relay, operator endpoint

/livez         the process lives; /healthz is the same
/readyz        every required check is ok; ?verbose lists all checks, ?format=json
/status        what every duty tells, as JSON
/events        what happened, as JSON; ?fromSeq=N&limit=N&wait=SECONDS
/metrics       what every duty counts, for Prometheus
/explain       which rule admits or drops a packet, as JSON, for peers on this machine;
               ?from=ADDRESS&to=ADDRESS
/debug/pprof/  profiles, for peers on this machine`
