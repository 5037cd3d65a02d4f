package typedsocket

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// R93: a log report of 1,024 entries and 1,048,576 bytes of canonical JSON goes up and
// its answer repeats it; a projection of 896 KiB goes down; a frame above a node's 4
// MiB ends that socket and no other (contract §19).
func TestR93_MaximalBodiesPassAndLargerFramesEndTheirSocketAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		// The control plane repeats the request, as TypedRequest servers do.
		cloud := newRig(t, Config{Peer: "relay", Handler: handlers{"reportRuntimeAssignmentLogs": echo}, Limits: Limits{Frame: 16 << 20}})
		up, down := cloud.connect(Config{Peer: "cloudly", Limits: Limits{Frame: 16 << 20}, Handler: nil}, nil)
		listener := newRig(t, Config{Peer: "node", Limits: Limits{Frame: 4 << 20}, Handler: HandlerFunc(func(r *Request) {
			if err := r.Forward(up, Forward{Method: "reportRuntimeAssignmentLogs", Flow: "node-a"}); err != nil {
				t.Error(err)
			}
		})})
		project := handlers{"applyProjection": echo}
		node, carried := listener.connect(Config{Peer: "relay", Handler: project}, nil)
		other, carriedOther := listener.connect(Config{Peer: "relay", Handler: project}, nil)

		report := maximalReport()
		if len(report) != 1<<20 {
			t.Fatalf("the report has %d bytes", len(report))
		}
		if got := call(t, node, "reportRuntimeAssignmentLogs", report); got != report {
			t.Fatalf("the report came back as %d bytes", len(got))
		}
		projection := `{"session":{"nodeId":"node-a"},"signed":"` + strings.Repeat("p", 896<<10) + `"}`
		if got := call(t, carried, "applyProjection", projection); got != projection {
			t.Fatalf("the projection came back as %d bytes", len(got))
		}
		_, err := node.Call(context.Background(), "reportRuntimeAssignmentLogs", []byte(`{"x":"`+strings.Repeat("x", 4<<20)+`"}`), CallOptions{})
		if !errors.Is(err, ErrClosed) {
			t.Fatalf("the larger frame: %v", err)
		}
		wantEnd(t, carried, CloseTooBig, false)
		synctest.Wait()
		for _, s := range []*Socket{up, down, other, carriedOther} {
			if s.Err() != nil {
				t.Fatalf("another socket ended too: %v", s.Err())
			}
		}
		if got := call(t, other, "reportRuntimeAssignmentLogs", `{"a":1}`); got != `{"a":1}` {
			t.Fatal(got)
		}
	})
}

// maximalReport is a log report of exactly one mebibyte.
func maximalReport() string {
	var b strings.Builder
	b.WriteString(`{"batch":{"entries":[`)
	for i := range 1024 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"text":%q,"timestamp":"17648%014d"}`, strings.Repeat("é", 480), i)
	}
	b.WriteString(`]},"session":{"nodeId":"node-a","pad":"`)
	b.WriteString(strings.Repeat("x", 1<<20-b.Len()-len(`"}}`)))
	b.WriteString(`"}}`)
	return b.String()
}
