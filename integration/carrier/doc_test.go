// Package carrier holds the carrier (room typedsocket) against real peers that
// nobody here wrote: TypedRequest 8.0.3 and 3.3.0 on Node, over loopback.
package carrier

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"serve.zone/relay/typedsocket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen serves sockets with the handler and returns the URL to dial.
func listen(t *testing.T, cfg typedsocket.Config) (url string, accepted <-chan *typedsocket.Socket) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sockets := make(chan *typedsocket.Socket, 16)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s, err := typedsocket.Accept(w, r, cfg); err == nil {
			t.Cleanup(func() { s.Close(typedsocket.CloseNormal, "test over"); <-s.Done() })
			sockets <- s
		}
	})}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(listener) }()
	t.Cleanup(func() { server.Close(); <-done })
	return "ws://" + listener.Addr().String() + "/any/path?x=1", sockets
}

// dial connects to a real peer.
func dial(t *testing.T, url string, cfg typedsocket.Config) *typedsocket.Socket {
	t.Helper()
	s, err := typedsocket.Connect(t.Context(), typedsocket.Dial{URL: url, Config: cfg})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(typedsocket.CloseNormal, "test over"); <-s.Done() })
	return s
}

// methods are those of the peers' own servers (integration/peers), served by
// our carrier. It keeps what a method needs between requests.
type methods struct {
	mu    sync.Mutex
	held  map[string]*typedsocket.Request
	tries map[string]int
}

func newMethods() *methods {
	return &methods{held: make(map[string]*typedsocket.Request), tries: make(map[string]int)}
}

func (m *methods) ServeRequest(r *typedsocket.Request) {
	switch r.Method() {
	case "echo":
		r.Answer([]byte(`{"got":` + string(r.Body()) + `}`))
	case "throwTyped":
		r.Refuse("denied", []byte(`{"code":"E1"}`))
	case "throwPlain":
		r.Fail()
	case "nothing":
		r.Answer([]byte("null"))
	case "silence":
		r.Drop()
	case "hold":
		m.mu.Lock()
		m.held[member(r, "tag")] = r
		m.mu.Unlock()
	case "release":
		m.release(r)
	case "retryTwice", "retryForever":
		m.retry(r)
	case "asksBack":
		go asksBack(r, append([]byte(nil), r.Body()...))
	default:
		r.RefuseMethod()
	}
}

func member(r *typedsocket.Request, name string) string {
	var body map[string]any
	json.Unmarshal(r.Body(), &body)
	text, _ := body[name].(string)
	return text
}

// release answers held calls in the order the request names. All of them came
// before it on the same socket.
func (m *methods) release(r *typedsocket.Request) {
	var body struct {
		Tags []string `json:"tags"`
	}
	json.Unmarshal(r.Body(), &body)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, tag := range body.Tags {
		m.held[tag].Answer([]byte(`{"tag":"` + tag + `"}`))
	}
	r.Answer([]byte(`{"released":true}`))
}

func (m *methods) retry(r *typedsocket.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tries[r.Method()]++
	if r.Method() == "retryTwice" && m.tries["retryTwice"] == 3 {
		r.Answer([]byte(`{"attempts":3}`))
		return
	}
	r.Retry(20*time.Millisecond, "not yet")
}

// asksBack calls the caller on its own socket, all at once.
func asksBack(r *typedsocket.Request, body []byte) {
	var wanted struct {
		Calls []struct {
			Method  string `json:"method"`
			Request any    `json:"request"`
		} `json:"calls"`
	}
	json.Unmarshal(body, &wanted)
	answers := make([]string, len(wanted.Calls))
	var wg sync.WaitGroup
	for i, c := range wanted.Calls {
		wg.Go(func() {
			request, _ := json.Marshal(c.Request)
			answers[i] = outcome(r.Socket(), c.Method, string(request), 10*time.Second)
		})
	}
	wg.Wait()
	list, _ := json.Marshal(raw(answers))
	r.Answer([]byte(`{"answers":` + string(list) + `}`))
}

// outcome calls and writes what came of it in the form of the peers' results.
func outcome(s *typedsocket.Socket, method, request string, timeout time.Duration) string {
	a, err := s.Call(context.Background(), method, []byte(request), typedsocket.CallOptions{Timeout: timeout})
	if err == nil {
		defer a.Release()
		return `{"response":` + string(a.Response()) + `}`
	}
	switch err := err.(type) {
	case *typedsocket.RemoteError:
		text, _ := json.Marshal(err.Text)
		return fmt.Sprintf(`{"error":{"name":"TypedResponseError","text":%s,"data":%s}}`, text, err.Data)
	case *typedsocket.AnswerError:
		return "AnswerError: " + err.Rule
	case *typedsocket.TimeoutError:
		return "waits"
	case *typedsocket.RetryLimitError:
		return fmt.Sprintf("RetryLimitError after %d sends", err.Sends)
	}
	return err.Error()
}
