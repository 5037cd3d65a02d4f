package stream

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"serve.zone/relay/typedsocket/buffer"
)

var update = flag.Bool("update", false, "write testdata/vectors.json anew")

const vectorsFile = "testdata/vectors.json"

type vectors struct {
	Frames      []frameVector      `json:"frames"`
	NotFrames   []notFrameVector   `json:"notFrames"`
	Descriptors []descriptorVector `json:"descriptors"`
	Receipts    []receiptVector    `json:"receipts"`
	Exchanges   []exchange         `json:"exchanges"`
}

type frameVector struct {
	Name    string `json:"name"`
	Kind    Kind   `json:"kind"`
	Number  uint32 `json:"number"`
	Value   uint64 `json:"value"`
	Payload string `json:"payload"`
	Hex     string `json:"hex"`
}

type notFrameVector struct {
	Name string `json:"name"`
	Hex  string `json:"hex"`
	Why  string `json:"why"`
}

type descriptorVector struct {
	Name  string  `json:"name"`
	JSON  string  `json:"json"`
	Fault *string `json:"fault,omitempty"`
	Ours  bool    `json:"ours"`
}

type receiptVector struct {
	JSON string `json:"json"`
	Good bool   `json:"good"`
}

type exchange struct {
	Name  string         `json:"name"`
	Steps []exchangeStep `json:"steps"`
}

type exchangeStep struct {
	Does       string `json:"does,omitempty"`
	From       string `json:"from,omitempty"`
	Descriptor string `json:"descriptor,omitempty"`
	Hex        string `json:"hex,omitempty"`
	Note       string `json:"note,omitempty"`
	Breaks     Rule   `json:"breaks,omitempty"`
	Late       bool   `json:"late,omitempty"`
}

// TestVectors makes the vectors anew from the code and compares them with the
// file, so that neither changes without the other.
func TestVectors(t *testing.T) {
	got, err := json.MarshalIndent(makeVectors(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(vectorsFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the vectors differ from the code; -update writes them anew")
	}
}

// TestPageShowsTheVectors holds the example of docs/streams.md against the
// exchange that it quotes.
func TestPageShowsTheVectors(t *testing.T) {
	page, err := os.ReadFile("../../docs/streams.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range makeVectors(t).Exchanges {
		if e.Name != "upload of three bytes" {
			continue
		}
		for _, step := range e.Steps {
			line := step.Descriptor
			if step.Hex != "" {
				line = pageLine(step)
			}
			if !strings.Contains(string(page), line) {
				t.Errorf("the page lacks %q", line)
			}
		}
		return
	}
	t.Error("no such exchange")
}

// pageLine is how the page prints a frame: its header in groups, its payload.
func pageLine(step exchangeStep) string {
	p, _ := hex.DecodeString(step.Hex)
	payload := hex.EncodeToString(p[HeaderSize:])
	if len(payload) > 16 {
		payload = string(p[HeaderSize:])
	}
	return strings.TrimRight(fmt.Sprintf("%s  %-8s %x %x %x %x  %s", step.From, Kind(p[1]), p[:2], p[2:4], p[4:8], p[8:16], payload), " ")
}

// TestPageNamesEveryRule holds the tables of the page against the constants.
func TestPageNamesEveryRule(t *testing.T) {
	page, err := os.ReadFile("../../docs/streams.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range Rules() {
		if !bytes.Contains(page, []byte("\n| `"+string(rule)+"` |")) {
			t.Errorf("rule %s is not in the table", rule)
		}
	}
	for _, reason := range []string{ReasonIdle, ReasonCancelled, ReasonNotOffered, ReasonIntegrityLength,
		ReasonIntegrityDigest, ReasonQueueFull, ReasonDiscarded} {
		if !bytes.Contains(page, []byte("`"+reason+"`")) {
			t.Errorf("reason %s is not on the page", reason)
		}
	}
	for kind := kindOpenAck; kind <= kindAbort; kind++ {
		if !bytes.Contains(page, []byte(fmt.Sprintf("\n| %d | %s |", kind, kind))) {
			t.Errorf("kind %s is not in the table", kind)
		}
	}
}

func makeVectors(t *testing.T) vectors {
	return vectors{
		Frames:      frameVectors(),
		NotFrames:   notFrameVectors(t),
		Descriptors: descriptorVectors(t),
		Receipts:    receiptVectors(t),
		Exchanges: []exchange{
			record(t, "upload of three bytes", Config{}, upload),
			record(t, "download with a window of 8 bytes", Config{Window: 8}, download),
			record(t, "the opener sends", Config{}, openerSends),
			record(t, "reject, and frames that come too late", Config{}, rejectLate),
			record(t, "open-ack for a stream that is not on offer", Config{}, notOffered),
			record(t, "frames that break a rule, windows of 8 bytes", Config{Window: 8}, breakRules),
		},
	}
}

func frameVectors() (all []frameVector) {
	receipt := string(appendReceipt(nil, "s", Integrity{3, someDigest}))
	for _, f := range []frameVector{
		{Name: "open-ack of a receiver", Kind: kindOpenAck, Number: 2, Value: Window, Payload: "s-7f3a"},
		{Name: "open-ack of a sender", Kind: kindOpenAck, Number: 1, Payload: "é😀"},
		{Name: "first data", Kind: kindData, Number: 1, Payload: "\x01\x02\x03"},
		{Name: "data at an offset above 2^32", Kind: kindData, Number: 1<<32 - 2, Value: 1<<32 + 5, Payload: "\xff"},
		{Name: "credit", Kind: kindCredit, Number: 2, Value: Window + Window/2},
		{Name: "end of nothing", Kind: kindEnd, Number: 3},
		{Name: "end at the largest total", Kind: kindEnd, Number: 3, Value: MaxTotal},
		{Name: "accept", Kind: kindAccept, Number: 2, Value: 3, Payload: receipt},
		{Name: "reject", Kind: kindReject, Number: 2, Payload: ReasonIntegrityDigest},
		{Name: "abort", Kind: kindAbort, Number: 2, Payload: "storage-failed: ünïcode"},
		{Name: "abort without a reason", Kind: kindAbort, Number: 7},
	} {
		h := header(f.Kind, f.Number, f.Value)
		f.Hex = hex.EncodeToString(append(h[:], f.Payload...))
		f.Payload = hex.EncodeToString([]byte(f.Payload))
		all = append(all, f)
	}
	return all
}

func notFrameVectors(t *testing.T) (all []notFrameVector) {
	h := header(kindCredit, 1, 1)
	for _, c := range []struct {
		name   string
		change func(p []byte) []byte
	}{
		{"empty", func(p []byte) []byte { return nil }},
		{"15 bytes", func(p []byte) []byte { return p[:15] }},
		{"version 2", func(p []byte) []byte { p[0] = 2; return p }},
		{"kind 0", func(p []byte) []byte { p[1] = 0; return p }},
		{"kind 8", func(p []byte) []byte { p[1] = 8; return p }},
		{"reserved not zero", func(p []byte) []byte { p[3] = 1; return p }},
		{"number zero", func(p []byte) []byte { p[7] = 0; return p }},
	} {
		p := c.change(bytes.Clone(h[:]))
		_, err := readFrame(p)
		var wrong *FrameError
		if !errors.As(err, &wrong) {
			t.Fatalf("%s is a frame", c.name)
		}
		all = append(all, notFrameVector{c.name, hex.EncodeToString(p), wrong.Rule})
	}
	return all
}

func descriptorVectors(t *testing.T) (all []descriptorVector) {
	for _, v := range []descriptorVector{
		{Name: "ours", JSON: member("transport", ourTransport)},
		{Name: "ours, with more", JSON: member("transport", `{"relayStream":1.0,"more":null},"also":1`)},
		{Name: "another version", JSON: member("transport", `{"relayStream":2}`)},
		{Name: "written by TypedRequest 8", JSON: run3},
		{Name: "shortest", JSON: `{"transport":null,"creatorDirection":"send","streamId":"s","protocol":"virtual-stream-v1","_isVirtualStream":true}`},
		{Name: "256 units", JSON: member("streamId", `"`+strings.Repeat("é", 254)+`😀"`)},
		{Name: "257 units", JSON: member("streamId", `"`+strings.Repeat("é", 255)+`😀"`)},
		{Name: "byteLength as a double", JSON: integrityWith(`"sha256"`, "3.0e0", `"`+someDigest+`"`)},
		{Name: "byteLength 2^53", JSON: integrityWith(`"sha256"`, "9007199254740992", `"`+someDigest+`"`)},
		{Name: "digest in upper case", JSON: integrityWith(`"sha256"`, "3", `"sha256:`+strings.ToUpper(someDigest[7:])+`"`)},
		{Name: "integrity null", JSON: member("integrity", "null")},
		{Name: "contentType empty", JSON: member("contentType", `""`)},
		{Name: "no transport", JSON: member("transport", "")},
		{Name: "of version 3", JSON: `{"_isVirtualStream":true,"streamId":"s"}`},
		{Name: "name twice", JSON: member("transport", `1,"transport":1`)},
		{Name: "half a pair", JSON: member("streamId", `"\ud83d"`)},
		{Name: "trailing data", JSON: member("", "") + "1"},
	} {
		d, err := ReadDescriptor([]byte(v.JSON))
		var wrong *DescriptorError
		if errors.As(err, &wrong) {
			v.Fault = &wrong.Member
		} else if err != nil {
			t.Fatal(err)
		}
		v.Ours = err == nil && isOurTransport(d.Transport)
		all = append(all, v)
	}
	return all
}

func receiptVectors(t *testing.T) (all []receiptVector) {
	sent := sumOf([]byte{1, 2, 3})
	if sent.Digest != someDigest {
		t.Fatal("someDigest is not that of 01 02 03")
	}
	for _, raw := range []string{
		string(appendReceipt(nil, "s", sent)), `{}`, `{"byteLength":3.0,"acceptedAt":5}`, `{"digest":"` + someDigest + `"}`,
		`{"byteLength":4}`, `{"byteLength":"3"}`, `{"digest":null}`, `{"digest":"` + strings.ToUpper(someDigest) + `"}`,
		`{"byteLength":3,"byteLength":3}`, `[]`, `null`, ``,
	} {
		_, err := readReceipt([]byte(raw), sent)
		all = append(all, receiptVector{raw, err == nil})
	}
	return all
}

// recorder joins two Muxes without time: frames wait until flow is called.
type recorder struct {
	t              *testing.T
	client, server *Mux
	steps          []exchangeStep
	waiting        []said
}

type said struct {
	from string
	b    *buffer.Buffer
	sent func()
}

// mouth is one end's carrier.
type mouth struct {
	r    *recorder
	from string
}

func (m mouth) Control(b *buffer.Buffer) error { return m.Bulk("", b, func() {}) }

func (m mouth) Bulk(_ string, b *buffer.Buffer, sent func()) error {
	m.r.waiting = append(m.r.waiting, said{m.from, b, sent})
	return nil
}

func record(t *testing.T, name string, cfg Config, play func(*recorder)) exchange {
	r := &recorder{t: t}
	end := func(from string, client bool) *Mux {
		own := cfg
		own.Carrier, own.Client, own.Peer = mouth{r, from}, client, "peer"
		m := NewMux(own)
		n := 0
		m.newID = func() string {
			n++
			return fmt.Sprintf("%s-%d", from, n)
		}
		return m
	}
	r.client, r.server = end("client", true), end("server", false)
	play(r)
	r.flow()
	r.client.Close(nil)
	r.server.Close(nil)
	return exchange{name, r.steps}
}

// flow delivers frames until both ends are silent.
func (r *recorder) flow() {
	for len(r.waiting) > 0 {
		f := r.waiting[0]
		r.waiting = r.waiting[1:]
		to := r.server
		if f.from == "server" {
			to = r.client
		}
		r.deliver(f.from, to, bytes.Clone(f.b.Bytes()))
		f.b.Release()
		f.sent()
	}
}

func (r *recorder) deliver(from string, to *Mux, p []byte) {
	f, err := readFrame(p)
	if err != nil {
		r.t.Fatal(err)
	}
	late := to.Stats().LateFrames
	step := exchangeStep{From: from, Hex: hex.EncodeToString(p), Note: note(f)}
	err = to.Receive(buffer.Of(p))
	var broken *ProtocolError
	if errors.As(err, &broken) {
		step.Breaks = broken.Rule
	} else if err != nil {
		r.t.Fatal(err)
	}
	step.Late = to.Stats().LateFrames > late
	r.steps = append(r.steps, step)
}

// inject says a frame that no Mux of ours would.
func (r *recorder) inject(from string, to *Mux, kind Kind, number uint32, value uint64, payload string) {
	h := header(kind, number, value)
	r.deliver(from, to, append(h[:], payload...))
	r.flow()
}

func (r *recorder) does(what string) { r.steps = append(r.steps, exchangeStep{Does: what}) }

// opens lets one end create and the other open a stream.
func (r *recorder) opens(from string, creator, opener *Mux, d Direction, id string, integrity *Integrity) (created, opened *Stream) {
	if id != "" {
		creator.newID = func() string { return id }
	}
	created, err := creator.Offer(Options{Direction: d, Integrity: integrity})
	if err != nil {
		r.t.Fatal(err)
	}
	r.steps = append(r.steps, exchangeStep{From: from, Descriptor: string(created.Descriptor())})
	opened, err = opener.Open(created.Descriptor())
	if err != nil {
		r.t.Fatal(err)
	}
	r.flow()
	return created, opened
}

// end begins CloseSend, which would wait; verdict is its second half.
func (r *recorder) end(s *Stream) {
	s.take(Send)
	s.m.mu.Lock()
	err := s.sendEnd()
	s.m.mu.Unlock()
	s.give()
	if err != nil {
		r.t.Error(err)
	}
	r.flow()
}

func (r *recorder) verdict(sender, receiver *Stream) {
	if n, err := io.Copy(io.Discard, receiver); err != nil {
		r.t.Error(n, err)
	}
	r.flow()
	if _, err := receiver.Accept(); err != nil {
		r.t.Error(err)
	}
	r.flow()
	if _, err := sender.CloseSend(context.Background()); err != nil {
		r.t.Error(err)
	}
}

func upload(r *recorder) {
	s, o := r.opens("client", r.client, r.server, Send, "s-7f3a", nil)
	s.Write([]byte{1, 2, 3})
	r.flow()
	r.end(s)
	r.verdict(s, o)
}

func download(r *recorder) {
	want := sumOf([]byte("abcdefghijkl"))
	s, o := r.opens("server", r.server, r.client, Send, "", &want)
	s.Write([]byte("abcdef"))
	s.Write([]byte("gh"))
	r.flow()
	r.does("the client reads 4 bytes")
	io.ReadFull(o, make([]byte, 4))
	r.flow()
	s.Write([]byte("ijkl"))
	r.end(s)
	r.does("the client reads the rest")
	r.verdict(s, o)
}

func openerSends(r *recorder) {
	o, s := r.opens("client", r.client, r.server, Receive, "", nil)
	s.Write([]byte("hello"))
	r.end(s)
	r.does("the client reads everything, and is slow to store it")
	io.Copy(io.Discard, o)
	o.KeepAlive()
	r.flow()
	r.verdict(s, o)
}

func rejectLate(r *recorder) {
	s, o := r.opens("client", r.client, r.server, Send, "", nil)
	s.Write([]byte("abc"))
	r.does("the server rejects while data is on its way")
	o.Reject("storage-failed")
	r.flow()
	r.inject("client", r.server, kindEnd, 2, 3, "")
	r.inject("client", r.server, kindAbort, 2, 0, "cancelled")
}

func notOffered(r *recorder) {
	s, err := r.client.Offer(Options{Direction: Send})
	if err != nil {
		r.t.Fatal(err)
	}
	r.steps = append(r.steps, exchangeStep{From: "client", Descriptor: string(s.Descriptor())})
	r.does("the client's call fails")
	s.Abort("call-failed")
	if _, err := r.server.Open(s.Descriptor()); err != nil {
		r.t.Fatal(err)
	}
	r.flow()
}

// wrong is a frame that breaks a rule.
type wrong struct {
	kind    Kind
	value   uint64
	payload string
}

func breakRules(r *recorder) {
	r.inject("server", r.client, kindData, 2, 0, "x")
	r.inject("server", r.client, kindAbort, 2, 0, "x")
	r.inject("server", r.client, kindOpenAck, 1, 0, "client-1")
	streams := 0
	// The server says each frame on a stream of its own.
	each := func(d Direction, before func(created *Stream), frames ...wrong) {
		for _, f := range frames {
			streams++
			created, _ := r.opens("client", r.client, r.server, d, fmt.Sprintf("client-%d", streams), nil)
			before(created)
			r.inject("server", r.client, f.kind, created.number, f.value, f.payload)
			r.server.AbortAll("next")
			r.flow()
		}
	}
	each(Send, func(*Stream) {}, wrong{kindOpenAck, 0, "client-1"}, wrong{kindData, 0, ""},
		wrong{kindCredit, MaxTotal + 1, ""}, wrong{kindAbort, 0, "\xff"}, wrong{kindData, 0, "x"},
		wrong{kindCredit, 7, ""}, wrong{kindAccept, 0, "{}"})
	each(Send, r.end, wrong{kindAccept, 1, "{}"}, wrong{kindAccept, 0, `{"byteLength":1}`})
	each(Receive, func(*Stream) {}, wrong{kindAccept, 0, "{}"}, wrong{kindData, 1, "x"},
		wrong{kindData, 0, "123456789"}, wrong{kindEnd, 1, ""})
	each(Receive, func(s *Stream) { r.inject("server", r.client, kindEnd, s.number, 0, "") },
		wrong{kindData, 0, "x"}, wrong{kindEnd, 0, ""})
}
