package tunnel

import (
	"bytes"
	"testing"
)

func BenchmarkSealAndOpen(b *testing.B) {
	for _, cipher := range bothCiphers {
		b.Run(cipher.String(), func(b *testing.B) {
			keys := Keys{0, cipher, hide([KeySize]byte{}), hide([KeySize]byte{})}
			payload := testPacket(MinInnerMTU, 0)
			buf := make([]byte, 0, 2048)
			b.ReportAllocs()
			b.SetBytes(MinInnerMTU)
			var d *Direct
			for i := 0; b.Loop(); i++ {
				if i%(MaxSealed/2) == 0 {
					d = &Direct{}
					d.install(keys)
					d.Switch(0, start)
				}
				packet, err := d.Seal(buf, PacketData, payload, start)
				if err != nil {
					b.Fatal(err)
				}
				if _, _, result := d.Open(packet, start); result != OpenNew {
					b.Fatal(result)
				}
			}
		})
	}
}

func BenchmarkSplitAndJoin(b *testing.B) {
	var (
		splitter Splitter
		scratch  [MaxInnerMTU]byte
		bufs     [2][]byte
		joiner   = NewJoiner(DefaultInnerMTU)
		packet   = testPacket(DefaultInnerMTU, 0)
	)
	b.ReportAllocs()
	b.SetBytes(DefaultInnerMTU)
	for b.Loop() {
		first, second, err := splitter.Split(packet, 1195, &bufs)
		if err != nil {
			b.Fatal(err)
		}
		joiner.Take(first, &scratch, start)
		if _, result := joiner.Take(second, &scratch, start); result != JoinJoined {
			b.Fatal(result)
		}
	}
}

// What a hub spends on a first message before it knows whose it is.
func BenchmarkReceive(b *testing.B) {
	export := testExporter("one session")
	_, frame, err := testInitiator().begin(export)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := testResponder().Receive(bytes.NewReader(frame), export); err != nil {
			b.Fatal(err)
		}
	}
}
