package typedsocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"serve.zone/relay/typedsocket/buffer"
)

func newNull() *buffer.Buffer { return buffer.Of([]byte("null")) }

// chain is a bare node, a relay between, and a bare control plane.
type chain struct {
	node, cloud *websocket.Conn
	down, up    *Socket // the relay's sockets to the node and to the control plane
}

// newChain forwards every request of the node as f says.
func newChain(t *testing.T, f Forward) *chain {
	c := &chain{}
	c.cloud, c.up = newRig(t, Config{Peer: "cloudly"}).raw()
	c.node, c.down = newRig(t, Config{Peer: "node", Handler: HandlerFunc(func(r *Request) {
		if err := r.Forward(c.up, f); err != nil {
			r.Refuse("relay-not-ready: no session", []byte(`{"code":"relay-not-ready"}`))
		}
	})}).raw()
	return c
}

func (c *chain) end() {
	c.node.CloseNow()
	c.cloud.CloseNow()
	<-c.down.Done()
	<-c.up.Done()
}

func read(t testing.TB, peer *websocket.Conn) string {
	t.Helper()
	_, text, err := peer.Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ids returns the two ids of a forwarded request, and the text with both cut out.
func ids(t testing.TB, text string) (id, instance, rest string) {
	t.Helper()
	cut := func(before string) string {
		_, after, ok := strings.Cut(text, before)
		if !ok || len(after) < 28 {
			t.Fatalf("no %s in %s", before, text)
		}
		found := after[:28]
		text = strings.Replace(text, found, "", 1)
		return found
	}
	instance = cut(`"requestInstanceId":"`)
	id = cut(`"correlation":{"id":"`)
	return id, instance, text
}

// R29: bodies pass unchanged in both directions, with spacing, order, escapes and
// numbers that no encoder would write again.
func TestR29_BytesPassUnchangedInBothDirections(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const request = `{ "z":1.50 ,"a":[ 1e3,-0,"\u0041\/", {"deep":"\ud800","deep":2} ],"":null}`
		const response = "[\t{\"b\":2,\"a\":1.0}\n , \"\\ud83d\\ude00\" ]"
		c := newChain(t, Forward{Method: "report", Flow: "node-a"})
		defer c.end()
		write(t, c.node, `{"extra":{"x":1},"correlation":{"phase":"request","id":"c\u0031"},"authInfo":{"jwt":"secret"},"request":`+request+
			`,"localData":{"l":1},"requestInstanceId":"i\u0031","method":"re\u0070ort","response":null}`)
		id, instance, rest := ids(t, read(t, c.cloud))
		if want := `{"method":"report","request":` + request + `,"response":null,"requestInstanceId":"","correlation":{"id":"","phase":"request"}}`; rest != want {
			t.Fatalf("forwarded\n%s\nwant\n%s", rest, want)
		}
		write(t, c.cloud, fmt.Sprintf(`{"authInfo":{"jwt":"up"},"response":%s,"localData":null,"request":%s,"correlation":{"id":%q,"phase":"response","more":1},"requestInstanceId":%q,"method":"report"}`,
			response, request, id, instance))
		if got, want := read(t, c.node), `{"method":"report","request":null,"response":`+response+`,"requestInstanceId":"i\u0031","correlation":{"id":"c\u0031","phase":"response"}}`; got != want {
			t.Fatalf("answered\n%s\nwant\n%s", got, want)
		}
	})
}

func TestForwardedErrorAndRetryPassOnlyAsObjects(t *testing.T) {
	unnamed := `,"error":{"text":"Internal server error","data":{}}`
	for members, want := range map[string]string{
		`"response":{"a":1}`: `"response":{"a":1}`,
		`"error":null`:       `"response":null`,
		`"response":null,"error":{"text":"no","data":{"code":"X","n":1.0}}`: `"response":null` + `,"error":{"text":"no","data":{"code":"X","n":1.0}}`,
		`"response":7,"error":{"text":"no"}`:                                `"response":7` + `,"error":{"text":"no"}`,
		`"response":{},"error":"no"`:                                        `"response":{}` + unnamed,
		`"response":{},"error":{"data":{"secret":1}}`:                       `"response":{}` + unnamed,
		`"response":{},"error":{"text":5}`:                                  `"response":{}` + unnamed,
		`"response":{},"retry":null`:                                        `"response":{}`,
		`"response":null,"retry":{"waitForMs":5,"reason":"r"}`:              `"response":null` + `,"retry":{"waitForMs":5,"reason":"r"}`,
		`"response":{},"retry":[1]`:                                         `"response":{}` + unnamed,
		`"error":{"text":"e"},"retry":{"waitForMs":0}`:                      `"response":null` + `,"error":{"text":"e"},"retry":{"waitForMs":0}`,
	} {
		bubble(t, func(t *testing.T) {
			c := newChain(t, Forward{Method: "m"})
			defer c.end()
			write(t, c.node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
			id, instance, _ := ids(t, read(t, c.cloud))
			write(t, c.cloud, fmt.Sprintf(`{"method":"m",%s,"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, members, instance, id))
			response, rest, _ := strings.Cut(want, `,"error"`)
			if rest != "" {
				rest = `,"error"` + rest
			} else if r, after, ok := strings.Cut(want, `,"retry"`); ok {
				response, rest = r, `,"retry"`+after
			}
			if got, want := read(t, c.node), `{"method":"m","request":null,`+response+`,"requestInstanceId":"i","correlation":{"id":"c","phase":"response"}`+rest+`}`; got != want {
				t.Errorf("%s\nanswered %s\nwant     %s", members, got, want)
			}
		})
	}
}

func TestForwardFailsTheRequestWhenTheWayIsCut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ended := make(chan error, 1)
		c := newChain(t, Forward{Method: "m", Ended: func(err error) { ended <- err },
			Failed: func(err error) (string, []byte) {
				return "relay-not-ready: session lost", []byte(`{"code":"relay-not-ready"}`)
			}})
		defer c.end()
		write(t, c.node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		read(t, c.cloud)
		c.cloud.CloseNow()
		if got, want := read(t, c.node), `{"method":"m","request":null,"response":null,"requestInstanceId":"i","correlation":{"id":"c","phase":"response"},"error":{"text":"relay-not-ready: session lost","data":{"code":"relay-not-ready"}}}`; got != want {
			t.Fatalf("answered %s", got)
		}
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Fatalf("ended with %v", err)
		}
		write(t, c.node, `{"method":"m","request":{},"requestInstanceId":"j","correlation":{"id":"d","phase":"request"}}`)
		if got := read(t, c.node); !strings.Contains(got, `"error":{"text":"relay-not-ready: no session"`) {
			t.Fatalf("answered %s", got)
		}
	})
}

func TestForwardTimesOutAndTheLateAnswerIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newChain(t, Forward{Method: "m"})
		defer c.end()
		start := time.Now()
		write(t, c.node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		id, instance, _ := ids(t, read(t, c.cloud))
		if got := read(t, c.node); !strings.HasSuffix(got, `"error":{"text":"Internal server error","data":{}}}`) || time.Since(start) != 30*time.Second {
			t.Fatalf("after %s answered %s", time.Since(start), got)
		}
		write(t, c.cloud, fmt.Sprintf(`{"method":"m","response":{},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, instance, id))
		time.Sleep(time.Second)
		if st := c.up.Stats(); st.Unmatched != 1 || st.Timeouts != 1 {
			t.Fatalf("%+v", st)
		}
		if st := c.down.Stats(); st.Serving != 0 || st.FramesOut != 1 {
			t.Fatalf("%+v", st)
		}
	})
}

func TestJudgeSeesTheAnswerAndMayReplaceIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		wrong := errors.New("wrong")
		var seen ForwardedAnswer
		c := newChain(t, Forward{Method: "m",
			Judge: func(a *ForwardedAnswer) error {
				seen = ForwardedAnswer{Accepted: a.Accepted, ErrorText: a.ErrorText, ErrorData: append([]byte(nil), a.ErrorData...)}
				if string(a.Facts.NodeID) == "node-b" {
					return wrong
				}
				return nil
			},
			Failed: func(err error) (string, []byte) { return err.Error(), []byte(`{}`) }})
		defer c.end()
		send := func(members string) string {
			write(t, c.node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
			id, instance, _ := ids(t, read(t, c.cloud))
			write(t, c.cloud, fmt.Sprintf(`{"method":"m",%s,"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, members, instance, id))
			return read(t, c.node)
		}
		if got := send(`"response":{"nodeId":"node-a"}`); !strings.Contains(got, `"response":{"nodeId":"node-a"}`) || !seen.Accepted {
			t.Fatalf("%s %+v", got, seen)
		}
		if got := send(`"response":{"nodeId":"node-b"}`); !strings.Contains(got, `"error":{"text":"wrong"`) || strings.Contains(got, "node-b") {
			t.Fatal(got)
		}
		if got := send(`"response":null,"error":{"text":"stale: x","data":{"code":"y"}}`); seen.Accepted || seen.ErrorText != "stale: x" || string(seen.ErrorData) != `{"code":"y"}` {
			t.Fatalf("%s %+v", got, seen)
		}
	})
}

// TestJudgeTakesNothingButAnAcceptanceForOne: an unnamed error or a retry
// beside a response is none.
func TestJudgeTakesNothingButAnAcceptanceForOne(t *testing.T) {
	for members, want := range map[string]bool{
		`"response":{}`: true, `"response":{},"error":null,"retry":null`: true,
		`"response":{},"error":"no"`: false, `"response":{},"error":{"text":5}`: false, `"response":{},"error":{"text":"x"}`: false,
		`"response":{},"retry":[1]`: false, `"response":{},"retry":{"waitForMs":5,"reason":"r"}`: false,
	} {
		bubble(t, func(t *testing.T) {
			var accepted bool
			c := newChain(t, Forward{Method: "m", Judge: func(a *ForwardedAnswer) error { accepted = a.Accepted; return nil }})
			defer c.end()
			write(t, c.node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
			id, instance, _ := ids(t, read(t, c.cloud))
			write(t, c.cloud, fmt.Sprintf(`{"method":"m",%s,"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, members, instance, id))
			if read(t, c.node); accepted != want {
				t.Errorf("%s: accepted %v", members, accepted)
			}
		})
	}
}

// TestAFailedForwardLeavesTheRequestWhole: it can go another way.
func TestAFailedForwardLeavesTheRequestWhole(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gone, dead := newRig(t, Config{Peer: "cloudly"}).raw()
		gone.CloseNow()
		<-dead.Done()
		cloud, up := newRig(t, Config{Peer: "cloudly"}).raw()
		node, down := newRig(t, Config{Peer: "node", Handler: HandlerFunc(func(r *Request) {
			if err := r.Forward(dead, Forward{Method: "a-much-longer-method-name"}); !errors.Is(err, ErrClosed) {
				t.Errorf("%v", err)
			}
			if string(r.Body()) != `{"a":1}` {
				t.Errorf("body %s", r.Body())
			}
			if err := r.Forward(up, Forward{Method: "m"}); err != nil {
				t.Error(err)
			}
		})}).raw()
		write(t, node, `{"method":"m","request":{"a":1},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		if _, _, rest := ids(t, read(t, cloud)); rest != `{"method":"m","request":{"a":1},"response":null,"requestInstanceId":"","correlation":{"id":"","phase":"request"}}` {
			t.Fatal(rest)
		}
		node.CloseNow()
		cloud.CloseNow()
		<-up.Done()
		<-down.Done()
	})
}

// TestAFullAnswerFlowCostsItsAnswerAlone: the socket to the control plane
// carries other nodes too.
func TestAFullAnswerFlowCostsItsAnswerAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g *gate
		var node *Socket
		up := newRig(t, Config{Peer: "cloudly", Limits: Limits{Flow: 1 << 20, Flows: 16 << 20}, Handler: HandlerFunc(func(r *Request) {
			if err := r.Forward(node, Forward{Method: "push", AnswerFlow: "node-a"}); err != nil {
				t.Error(err)
			}
		})})
		cloud := rawOver(t, up.listener.dial(func(c, s net.Conn) (net.Conn, net.Conn) { g = newGate(c); return g, s }), func() {})
		upstream := <-up.accepted
		peer, n := newRig(t, Config{Peer: "node"}).raw()
		node = n
		write(t, cloud, `{"method":"push","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		id, instance, _ := ids(t, read(t, peer))
		g.shut()
		for full := false; ; synctest.Wait() { // until the writer takes no more either
			b := newNull()
			b.Append(make([]byte, 100<<10))
			if err := upstream.push("node-a", itemOf(b)); err == nil {
				full = false
				continue
			}
			b.Release()
			if full {
				break
			}
			full = true
		}
		write(t, peer, fmt.Sprintf(`{"method":"push","response":{"x":%q},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, strings.Repeat("y", 200<<10), instance, id))
		synctest.Wait()
		g.open()
		for {
			text := read(t, cloud)
			if strings.HasPrefix(text, `{"method":"push"`) {
				if want := `{"method":"push","request":null,"response":null,"requestInstanceId":"i","correlation":{"id":"c","phase":"response"},"error":{"text":"Internal server error","data":{}}}`; text != want {
					t.Errorf("answered %.200s", text)
				}
				break
			}
		}
		if upstream.Err() != nil {
			t.Fatalf("one node's answer ended the socket: %v", upstream.Err())
		}
		upstream.Cut(CloseNormal, "")
		peer.CloseNow()
		cloud.CloseNow()
		<-upstream.Done()
		<-node.Done()
	})
}

func TestOneMebibytePassesInPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newChain(t, Forward{Method: "reportRuntimeAssignmentLogs", Flow: "node-a"})
		defer c.end()
		body := `{"log":"` + strings.Repeat("x", 1<<20) + `"}`
		write(t, c.node, `{"method":"reportRuntimeAssignmentLogs","request":`+body+`,"response":null,"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		id, instance, rest := ids(t, read(t, c.cloud))
		if !strings.Contains(rest, body) {
			t.Fatal("request changed")
		}
		write(t, c.cloud, fmt.Sprintf(`{"method":"reportRuntimeAssignmentLogs","request":%s,"response":%s,"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, body, body, instance, id))
		if got := read(t, c.node); !strings.Contains(got, `"request":null,"response":`+body+`,`) {
			t.Fatal("response changed")
		}
	})
}

// B182: what carries an id is answered once, what is no request is not answered at all.
func TestB182_EveryRequestGetsOneAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peer, s := newRig(t, Config{Peer: "raw", Handler: handlers{"echo": echo}}).raw()
		for _, silent := range []string{
			`{}`, `{"method":"echo"}`, `{"method":"echo","request":{}}`,
			`{"method":"echo","request":null,"correlation":{"id":"c","phase":"request"}}`,
			`{"method":"echo","request":"s","correlation":{"id":"c","phase":"request"}}`,
			`{"method":"","request":{},"correlation":{"id":"c","phase":"request"}}`,
			`{"method":"echo","request":{},"correlation":{"id":"","phase":"request"}}`,
			`{"method":"echo","request":{},"correlation":{"id":"c","phase":"other"}}`,
			`{"method":"##VirtualStream##","request":{"cycle":"request"},"response":null}`,
			`{"hello":"broadcast"}`,
		} {
			write(t, peer, silent)
		}
		write(t, peer, `{"method":"nope","request":[],"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		if got := read(t, peer); got != `{"method":"nope","request":null,"response":null,"requestInstanceId":"i","correlation":{"id":"c","phase":"response"},"error":{"text":"There is no available method for this call on the server side","data":{}}}` {
			t.Fatal(got)
		}
		if n := s.Stats().Ignored; n != 10 {
			t.Fatalf("%d ignored", n)
		}
		peer.CloseNow()
		<-s.Done()
	})
}
