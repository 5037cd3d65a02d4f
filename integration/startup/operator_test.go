package startup_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/integration/rig"
)

// ask sends one request to the operator endpoint, as it is spelled.
func ask(t *testing.T, r *rig.Rig, request string) (*http.Response, string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp4", r.OperatorAddress(), rig.DefaultWait)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(rig.DefaultWait))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// R95: the operator endpoint is read only, and answers under no name, so that no page of
// another site reaches it by a name that it made point here.
func TestR95_OperatorRefuses(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	for _, host := range []string{"127.0.0.1", r.OperatorAddress(), "localhost", "LocalHost:9465", "[::1]:9465", "192.0.2.1:80"} {
		if answer, body := ask(t, r, "GET /readyz HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); answer.StatusCode != 200 || body != "ok\n" {
			t.Errorf("host %s: %d %q", host, answer.StatusCode, body)
		}
	}
	for _, host := range []string{"relay.example", "localhost.rebind.example", "127.0.0.1.rebind.example:9465", "rebind.example:9465", "localhost.", ""} {
		for _, path := range []string{"/status", "/readyz", "/debug/pprof/", "/"} {
			answer, body := ask(t, r, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
			if answer.StatusCode != http.StatusMisdirectedRequest || strings.Contains(body, "cloudly") || host != "" && strings.Contains(body, host) {
				t.Errorf("host %q, %s: %d %q", host, path, answer.StatusCode, body)
			}
		}
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE"} {
		answer, _ := ask(t, r, method+" /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
		if answer.StatusCode != http.StatusMethodNotAllowed || answer.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d, allowed %q", method, answer.StatusCode, answer.Header.Get("Allow"))
		}
	}
	if answer, _ := ask(t, r, "GET /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a GET with a body: %d", answer.StatusCode)
	}
	if answer, body := ask(t, r, "HEAD /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"); answer.StatusCode != 200 || body != "" {
		t.Errorf("HEAD: %d %q", answer.StatusCode, body)
	}
	for path, want := range map[string]int{
		"/": 200, "/livez": 200, "/healthz": 200, "/status": 200, "/events": 200, "/metrics": 200, "/debug/pprof/": 200,
		"/nothing": 404, "/status/": 404, "/events?limit=0": 400, "/events?fromSeq=x": 400, "/readyz?format=xml": 400,
		"/debug/pprof/goroutine?debug=2": 400, "/debug/pprof/cmdline": 404, "/v2/": 404,
	} {
		if got := r.Get(path).Code; got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}

// R95: without a word about it the operator endpoint is on loopback and nowhere else.
func TestR95_LoopbackByDefault(t *testing.T) {
	t.Parallel()
	const byDefault = "127.0.0.1:9465"
	// No process is started meanwhile, which would have a copy of what is open.
	syscall.ForkLock.RLock()
	free, err := net.Listen("tcp4", byDefault)
	if err == nil {
		free.Close()
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Skipf("the default address of the operator endpoint is in use on this machine: %v", err)
	}
	r := rig.New(t, rig.AnyPort(), rig.Without("operator-listen"))
	r.WaitReady()
	if r.OperatorAddress() != byDefault {
		t.Errorf("the operator endpoint is on %s", r.OperatorAddress())
	}
	if tcp, _ := listening(t, r.PID()); !equalSets(tcp, []string{r.ListenAddress(), byDefault}) {
		t.Errorf("the process listens on %q", tcp)
	}
}

// R95: events are numbered from 1 without a gap, whatever happened; pages join to the
// same list; who waits for the next one is told when it happens; another process begins
// anew.
func TestR95_Events(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	waitConfigured(r)
	r.Nodes(5)
	newPuppet(t, r, "node-x").Cut()
	r.Signal(syscall.SIGHUP)
	r.WaitEvent("listener-socket-closed", 0)
	reloaded := r.WaitEvent("relay-reloaded", 0)
	all := r.Events(0)
	for i, e := range all {
		if e.Seq != uint64(i+1) || e.Type == "" || e.Duty == "" || e.Level == "" || e.Time.IsZero() {
			t.Errorf("event %d of %d is %+v", i+1, len(all), e)
		}
		if i > 0 && e.Time.Before(all[i-1].Time) {
			t.Errorf("event %d is before its predecessor", e.Seq)
		}
	}
	if len(all) < 12 {
		t.Errorf("%d events of a start, six nodes, an end and a reload", len(all))
	}
	var paged []rig.Event
	for from := uint64(1); from <= uint64(len(all)); {
		page := eventsPage(t, r.Get(fmt.Sprintf("/events?fromSeq=%d&limit=3", from)).Body)
		if len(page.Events) == 0 || len(page.Events) > 3 || page.Next != page.Events[len(page.Events)-1].Seq+1 || page.Lost != 0 {
			t.Fatalf("a page from %d: %+v", from, page)
		}
		paged, from = append(paged, page.Events...), page.Next
	}
	if got := numbersOf(paged[:len(all)]); !slices.Equal(got, numbersOf(all)) {
		t.Errorf("pages join to %v", got)
	}
	// What the log says of an event is the same event.
	if lines := r.Log("relay-reloaded"); len(lines) != 1 || lines[0].Fields["seq"] != float64(reloaded.Seq) {
		t.Errorf("the log says %v of event %d", lines, reloaded.Seq)
	}

	next := r.NextSeq()
	told := make(chan string, 1)
	go func() {
		client := http.Client{Timeout: rig.DefaultWait, Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Get(fmt.Sprintf("http://%s/events?fromSeq=%d&wait=30", r.OperatorAddress(), next))
		if err != nil {
			told <- err.Error()
			return
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		told <- string(body)
	}()
	r.Eventually("a request that waits", func() error {
		if polls := r.Status().At("duties", "operator", "polls", "open"); polls != 1.0 {
			return fmt.Errorf("%v do", polls)
		}
		return nil
	})
	r.Signal(syscall.SIGHUP)
	if page := eventsPage(t, []byte(<-told)); len(page.Events) != 1 || page.Events[0].Type != "relay-reloaded" || page.Events[0].Seq != next {
		t.Errorf("who waited was told %+v", page)
	}
	r.Restart()
	if again := r.Events(0); again[0].Seq != 1 {
		t.Errorf("another process begins with %d", again[0].Seq)
	}
}

type page struct {
	Events []rig.Event `json:"events"`
	Lost   uint64      `json:"lost"`
	Next   uint64      `json:"next"`
}

func eventsPage(t *testing.T, body []byte) page {
	t.Helper()
	var p page
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return p
}

func numbersOf(events []rig.Event) []uint64 {
	var numbers []uint64
	for _, e := range events {
		numbers = append(numbers, e.Seq)
	}
	return numbers
}

// R95: the metrics are a page that Prometheus reads. Every family has a type and help,
// ours are named after the duty that counts, and no counter of a mistake has moved.
func TestR95_Metrics(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	node := r.Node("node-a")
	if _, err := node.Send(r.Soon(), report, member); err != nil {
		t.Fatal(err)
	}
	page := r.Get("/metrics")
	if kind := page.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Errorf("content type %q", kind)
	}
	parsed, err := rig.ParseMetrics(string(page.Body))
	if err != nil {
		t.Fatal(err)
	}
	help, families := map[string]string{}, []string{}
	for line := range strings.Lines(string(page.Body)) {
		switch columns := strings.SplitN(strings.TrimSpace(line), " ", 4); {
		case len(columns) == 4 && columns[1] == "HELP":
			help[columns[2]] = columns[3]
		case len(columns) == 4 && columns[1] == "TYPE":
			families = append(families, columns[2])
		}
	}
	// Besides the duties of the status: what is counted of all of them.
	duties := []string{"build", "ready", "events", "log"}
	for name := range r.Status().At("duties").(map[string]any) {
		duties = append(duties, name)
	}
	for _, family := range families {
		if len(help[family]) < len("Of what?") {
			t.Errorf("%s has the help %q", family, help[family])
		}
		prefix, rest, _ := strings.Cut(family, "_")
		switch prefix {
		case "relay":
			if duty, _, _ := strings.Cut(rest, "_"); !slices.Contains(duties, duty) {
				t.Errorf("%s is named after no duty", family)
			}
		case "go", "process":
		default:
			t.Errorf("%s is nobody's", family)
		}
	}
	for _, mistake := range []string{
		"relay_events_undeclared_records_total", "relay_events_cut_fields_total", "relay_events_withheld_values_total",
		"relay_log_recovered_panics_total", "relay_log_withheld_values_total", "relay_log_lost_lines_total",
		"relay_operator_lost_metrics_total", "relay_cloudly_pulls_stuck_total",
	} {
		if value, samples := parsed.Sum(mistake); samples == 0 || value != 0 {
			t.Errorf("%s is %v, of %d series", mistake, value, samples)
		}
	}
	for name, want := range map[string]float64{
		"relay_cloudly_registered_sessions": 1, "relay_forward_bound_nodes": 1, "relay_cloudly_registrations_accepted_total": 1,
	} {
		if got, ok := parsed.Value(name); !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if build, samples := parsed.Sum("relay_build_info"); build != 1 || samples != 1 {
		t.Errorf("build info: %v of %d series", build, samples)
	}
}
