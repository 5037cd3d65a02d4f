package envelope

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// benchFrame returns a request of about size bytes, shaped like a report: a
// session and a list of small objects, some with a longer text.
func benchFrame(size int, idsFirst bool) []byte {
	const ids = `"method":"reportRuntimeAssignmentLogs","correlation":{"id":"uni_a0a1a2a3a4a5a6a7a8a9aaab","phase":"request"},"requestInstanceId":"uni_00112233445566778899aabb"`
	body := []byte(`{"session":{"controller":{"kind":"cloudly"},"clusterId":"c-1","nodeId":"node-a","epoch":7},"entries":[`)
	for i := 0; len(body) < size-len(ids)-40; i++ {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"seq":%d,"at":"17000000000000%05d","stream":"stdout","text":"line \"%d\" of some service`, i, i, i)
		if size > 1000 && i%4 == 0 {
			body = append(body, bytes.Repeat([]byte(" with a longer message"), 10)...)
		}
		body = append(body, `","ok":true}`...)
	}
	body = append(body, `]}`...)
	if idsFirst {
		return fmt.Appendf(nil, `{%s,"request":%s,"response":null}`, ids, body)
	}
	return fmt.Appendf(nil, `{"request":%s,"response":null,%s}`, body, ids)
}

// readTokens is the peer of the benchmark: the tokens of the text, its grammar,
// encoding and names checked everywhere.
func readTokens(d *jsontext.Decoder, text []byte) error {
	d.Reset(bytes.NewBuffer(text))
	for {
		if _, err := d.ReadToken(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// BenchmarkScan prints, as tokens/scan, how many times longer it takes in the
// same run to read the frame's tokens with jsontext.
func BenchmarkScan(b *testing.B) {
	for _, size := range []int{500, 100 << 10, 1 << 20} {
		for _, order := range []string{"first", "last"} {
			text := benchFrame(size, order == "first")
			b.Run(fmt.Sprintf("%dB/ids-%s", size, order), func(b *testing.B) {
				var f Frame
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if err := Scan(text, &f); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(tokensPerScan(b, text), "tokens/scan")
			})
		}
	}
}

// tokensPerScan interleaves both readers, so that both meet the same machine,
// and compares the best of each, so that a pause of either counts for nothing.
func tokensPerScan(b *testing.B, text []byte) float64 {
	var f Frame
	d := jsontext.NewDecoder(bytes.NewReader(nil))
	scan, tokens := time.Hour, time.Hour
	for range 20 + 1<<20/len(text) {
		start := time.Now()
		if err := Scan(text, &f); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		if err := readTokens(d, text); err != nil {
			b.Fatal(err)
		}
		scan = min(scan, middle.Sub(start))
		tokens = min(tokens, time.Since(middle))
	}
	return float64(tokens) / float64(scan)
}

// BenchmarkScanHostileNames prints, as hostile/ordinary, how many times longer
// a byte takes when a level holds as many names as it may, alike in all but
// their ends.
func BenchmarkScanHostileNames(b *testing.B) {
	members := strings.ReplaceAll(names(MaxNames), `"n`, `"`+strings.Repeat("n", 200))
	hostile, ordinary := []byte(`{"request":{`+members+`}}`), benchFrame(len(members), true)
	var f Frame
	best := func(text []byte) float64 {
		least := time.Hour
		for range 20 {
			start := time.Now()
			if err := Scan(text, &f); err != nil {
				b.Fatal(err)
			}
			least = min(least, time.Since(start))
		}
		return float64(least) / float64(len(text))
	}
	b.SetBytes(int64(len(hostile)))
	b.ReportAllocs()
	for b.Loop() {
		if err := Scan(hostile, &f); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(best(hostile)/best(ordinary), "hostile/ordinary")
}
