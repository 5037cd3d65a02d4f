package stream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

func sumOf(p []byte) Integrity {
	return Integrity{ByteLength: int64(len(p)), Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(p))}
}

var sizes = []int{0, 1, 65_535, 65_536, 65_537, 1<<20 - 1, 1 << 20, 1<<20 + 1, 5 << 20}

// plain hides what io.Copy would use instead of Read and Write.
type plainReader struct{ io.Reader }
type plainWriter struct{ io.Writer }

func TestRoundTrips(t *testing.T) {
	ways := []struct {
		name    string
		send    func(*Stream, []byte) error
		receive func(*Stream, io.Writer) error
	}{
		{"Write, Read",
			func(s *Stream, p []byte) error { _, err := s.Write(p); return err },
			func(s *Stream, w io.Writer) error { _, err := io.Copy(w, plainReader{s}); return err }},
		{"ReadFrom, WriteTo",
			func(s *Stream, p []byte) error { _, err := s.ReadFrom(bytes.NewReader(p)); return err },
			func(s *Stream, w io.Writer) error { _, err := s.WriteTo(w); return err }},
		{"odd writes, odd reads",
			func(s *Stream, p []byte) error {
				_, err := io.CopyBuffer(plainWriter{s}, plainReader{bytes.NewReader(p)}, make([]byte, 10_007))
				return err
			},
			func(s *Stream, w io.Writer) error {
				_, err := io.CopyBuffer(plainWriter{w}, plainReader{s}, make([]byte, 30_011))
				return err
			}},
	}
	for _, sh := range shapes {
		for i, way := range ways {
			for _, size := range sizes {
				t.Run(fmt.Sprintf("%s/%s/%d", sh.name, way.name, size), func(t *testing.T) {
					p := noise(size, uint64(size))
					want := sumOf(p)
					var integrity *Integrity
					if i == 1 {
						integrity = &want
					}
					roundTrip(t, sh, p, integrity, way.send, way.receive)
				})
			}
		}
	}
}

func roundTrip(t *testing.T, sh shape, p []byte, integrity *Integrity,
	send func(*Stream, []byte) error, receive func(*Stream, io.Writer) error) {
	inBubble(t, nil, func(t *testing.T, pr *pair) {
		sender, receiver := sh.ends(t, pr, integrity)
		var sent, taken Receipt
		var sendErr, takeErr error
		var got bytes.Buffer
		both(func() {
			if sendErr = send(sender, p); sendErr == nil {
				sent, sendErr = sender.CloseSend(context.Background())
			}
		}, func() {
			if takeErr = receive(receiver, &got); takeErr == nil {
				taken, takeErr = receiver.Accept()
			}
		})
		if sendErr != nil || takeErr != nil {
			t.Fatalf("sender: %v, receiver: %v", sendErr, takeErr)
		}
		if !bytes.Equal(got.Bytes(), p) {
			t.Fatalf("got %d bytes that are not the %d sent", got.Len(), len(p))
		}
		want := sumOf(p)
		raw := fmt.Sprintf(`{"streamId":%q,"algorithm":"sha256","byteLength":%d,"digest":%q}`, sender.ID(), len(p), want.Digest)
		for _, r := range []Receipt{sent, taken} {
			if string(r.Raw) != raw || r.Integrity != want {
				t.Errorf("receipt %s %+v, want %s", r.Raw, r.Integrity, raw)
			}
		}
		checkAccepted(t, pr, sender, receiver, want)
	})
}

// checkAccepted checks what both ends say of a stream that was accepted.
func checkAccepted(t *testing.T, pr *pair, sender, receiver *Stream, want Integrity) {
	t.Helper()
	synctest.Wait()
	for _, s := range []*Stream{sender, receiver} {
		select {
		case <-s.Done():
		default:
			t.Error("an accepted stream is not done")
		}
		if sum, ok := s.Sum(); !ok || sum != want || s.Err() != nil {
			t.Errorf("%s end: sum %v %v, error %v", s.Direction(), sum, ok, s.Err())
		}
	}
	if n, err := receiver.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("read after acceptance: %d, %v", n, err)
	}
	c, s := pr.client.Stats(), pr.server.Stats()
	for _, stats := range []Stats{c, s} {
		if stats.Opened != 1 || stats.Ended[OutcomeAccepted] != 1 || stats.LateFrames != 0 || stats.ProtocolErrors != 0 || stats.Live != 0 {
			t.Errorf("stats %+v", stats)
		}
	}
	if c.BytesIn+s.BytesIn != uint64(want.ByteLength) || c.BytesOut+s.BytesOut != uint64(want.ByteLength) {
		t.Errorf("bytes in %d and %d, out %d and %d", c.BytesIn, s.BytesIn, c.BytesOut, s.BytesOut)
	}
}

func TestEightStreamsAtOnce(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		finished := make(chan error)
		for i := range MaxStreams {
			sender, receiver := shapes[i%4].ends(t, p, nil)
			data := noise(3<<20+i, uint64(i))
			go func() {
				_, err := sendAll(sender, data)
				finished <- err
			}()
			go func() {
				got, err := receiveAll(receiver)
				if err == nil && !bytes.Equal(got, data) {
					err = fmt.Errorf("stream %d has other bytes", i)
				}
				finished <- err
			}()
		}
		for range 2 * MaxStreams {
			if err := <-finished; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestReadFromKeepsTheSourcesErrors(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		sender, receiver := shapes[0].ends(t, p, nil)
		n, err := sender.ReadFrom(io.MultiReader(bytes.NewReader([]byte("abc")), iotest.ErrReader(errFull)))
		if n != 3 || err != errFull {
			t.Errorf("got %d, %v", n, err)
		}
		if n, err := sender.ReadFrom(iotest.DataErrReader(bytes.NewReader([]byte("de")))); n != 2 || err != nil {
			t.Errorf("data together with the end: %d, %v", n, err)
		}
		if _, err := sender.ReadFrom(stuck{}); err != io.ErrNoProgress {
			t.Errorf("a source without progress: %v", err)
		}
		if _, err := sender.ReadFrom(liar{}); err != errInvalidRead {
			t.Errorf("a source that lies: %v", err)
		}
		go sender.CloseSend(context.Background())
		if got, err := receiveAll(receiver); string(got) != "abcde" || err != nil {
			t.Errorf("received %q, %v", got, err)
		}
	})
}

// stuck never returns anything, liar more than was asked for.
type stuck struct{}
type liar struct{}

func (stuck) Read([]byte) (int, error)  { return 0, nil }
func (liar) Read(p []byte) (int, error) { return len(p) + 1, nil }

func TestWriteToKeepsWhatTheWriterRefused(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		sender, receiver := shapes[0].ends(t, p, nil)
		go sendAll(sender, []byte("abcdef"))
		synctest.Wait()
		n, err := receiver.WriteTo(&narrow{room: 4})
		if n != 4 || err != io.ErrShortWrite {
			t.Errorf("got %d, %v", n, err)
		}
		if got, err := receiveAll(receiver); string(got) != "ef" || err != nil {
			t.Errorf("the rest is %q, %v", got, err)
		}
		if sum, _ := receiver.Sum(); sum != sumOf([]byte("abcdef")) {
			t.Errorf("sum %v", sum)
		}
	})
}

// narrow takes only so many bytes.
type narrow struct{ room int }

func (n *narrow) Write(p []byte) (int, error) {
	took := min(len(p), n.room)
	n.room -= took
	return took, nil
}
