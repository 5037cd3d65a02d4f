package tunnel

import (
	"crypto/cipher"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A Direct seals and opens the packets of one end of one tunnel's direct lane.
// Seal and Open may be called from any goroutine, also at once: the counter is
// atomic, and each epoch's window has a lock of its own. Install and Switch
// belong to the goroutine that owns the control stream.
type Direct struct {
	index  uint32 // what packets to this end bear
	remote uint32 // what packets to the other end bear
	side   Side

	sealing atomic.Pointer[sealing]
	opening atomic.Pointer[[]*opening] // newest last, at most maxOpen

	mu        sync.Mutex // of those who replace the two above
	installed Keys       // newest, until Switch takes it into use
	newest    uint32     // epoch ever installed
}

// maxOpen is how many epochs are open at once: the old one for a while, the one
// in use, and the next one between its answer and its first packet.
const maxOpen = 3

// sealing is the epoch that this end seals under.
type sealing struct {
	epoch   uint32
	aead    cipher.AEAD
	since   time.Time
	counter atomic.Uint64 // of the next packet
}

// opening is an epoch that this end opens.
type opening struct {
	epoch  uint32
	aead   cipher.AEAD
	failed atomic.Uint64
	until  atomic.Pointer[time.Time] // set once a newer epoch is in use

	mu   sync.Mutex
	seen window
}

// ErrSealedOut is a lane that has sealed all it may without a new epoch. The
// datagram lane carries on.
var ErrSealedOut = errors.New("direct lane needs a new epoch before it seals again")

// newDirect returns the lane of a session, with the keys of epoch 0 in use.
func newDirect(s *Session, keys Keys, now time.Time) *Direct {
	d := &Direct{index: s.answer.ReceiverIndex, remote: s.offer.ReceiverIndex, side: s.side}
	if s.side == Node {
		d.index, d.remote = d.remote, d.index
	}
	d.install(keys)
	d.Switch(keys.epoch, now)
	return d
}

// Install opens packets of the next epoch from now on. Keys of an epoch that
// was installed before, or of an older one, are refused: to take them into use
// again would be to count again from zero under one key.
func (d *Direct) Install(keys Keys) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if keys.epoch <= d.newest {
		return false
	}
	d.install(keys)
	return true
}

func (d *Direct) install(keys Keys) {
	var open []*opening
	if held := d.opening.Load(); held != nil {
		open = append(open, *held...)
	}
	open = append(open, &opening{epoch: keys.epoch, aead: keys.cipher.aead(keys.open.get())})
	if len(open) > maxOpen {
		open = open[len(open)-maxOpen:]
	}
	d.opening.Store(&open)
	d.installed, d.newest = keys, keys.epoch
}

// Switch seals under the epoch that was installed last, which the other end has
// proved to have; now is the time. Older epochs stay open for OldEpochLife. Any
// other epoch is left alone.
func (d *Direct) Switch(epoch uint32, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.installed.seal.get() == nil || d.installed.epoch != epoch {
		return
	}
	d.sealing.Store(&sealing{epoch: epoch, aead: d.installed.cipher.aead(d.installed.seal.get()), since: now})
	d.installed = Keys{}
	end := now.Add(OldEpochLife)
	for _, o := range *d.opening.Load() {
		if o.epoch != epoch && o.until.Load() == nil {
			o.until.Store(&end)
		}
	}
}

// Due reports whether the epoch in use has been sealed under so often, or is so
// old, that the next one should begin. A hub asks the node for the count's
// sake alone: the node sees the age by itself.
func (d *Direct) Due(now time.Time) bool {
	s := d.sealing.Load()
	return s.counter.Load() >= AskSealed || d.side == Node && now.Sub(s.since) >= EpochLife
}

// Seal appends a packet to dst. payload must not overlap dst, unless it begins
// PacketHeader bytes behind the end of dst in the same array. Nothing is
// allocated where dst has room for PacketOverhead more than payload. No counter
// is used twice, whatever becomes of the packet.
func (d *Direct) Seal(dst []byte, kind PacketKind, payload []byte, now time.Time) ([]byte, error) {
	s := d.sealing.Load()
	if now.Sub(s.since) >= MaxEpochLife {
		return dst, ErrSealedOut
	}
	counter := s.counter.Add(1) - 1
	if counter >= MaxSealed {
		return dst, ErrSealedOut
	}
	start := len(dst)
	dst = appendHeader(dst, Header{kind, uint16(s.epoch), d.remote, counter})
	header := dst[start:]
	return s.aead.Seal(dst, header[nonceAt:PacketHeader], payload, header), nil
}

// Open opens a packet in place and returns what was sealed, which lies in
// packet. A packet that does not open is destroyed, and moves nothing.
func (d *Direct) Open(packet []byte, now time.Time) (kind PacketKind, payload []byte, result OpenResult) {
	h, result := ReadHeader(packet)
	if result != OpenNew {
		return 0, nil, result
	}
	if h.ReceiverIndex != d.index {
		return 0, nil, OpenIndex
	}
	o := d.find(h.Epoch, now)
	if o == nil {
		return 0, nil, OpenEpoch
	}
	sealed := packet[PacketHeader:]
	payload, err := o.aead.Open(sealed[:0], packet[nonceAt:PacketHeader], sealed, packet[:PacketHeader])
	if err != nil {
		o.failed.Add(1)
		return 0, nil, OpenNotAuthentic
	}
	o.mu.Lock()
	result = o.seen.see(h.Counter)
	o.mu.Unlock()
	if result != OpenNew {
		return 0, nil, result
	}
	return h.Kind, payload, OpenNew
}

// find returns the open epoch with those low bits, or nil.
func (d *Direct) find(epoch uint16, now time.Time) *opening {
	for _, o := range *d.opening.Load() {
		if uint16(o.epoch) != epoch {
			continue
		}
		if until := o.until.Load(); until != nil && !now.Before(*until) || o.failed.Load() >= MaxFailedOpens {
			return nil
		}
		return o
	}
	return nil
}
