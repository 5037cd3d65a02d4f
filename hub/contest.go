package hub

import (
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/hub/policy"
)

// contest has the session that stands asked whether it lives, where its member's switcher
// wants to know that before a newer connection takes its place. It waits for answerWait at
// most, for each that has taken the place meanwhile.
func (h *Hub) contest(id policy.ID, conn *quic.Conn) {
	for range mostChanges {
		h.mu.Lock()
		var older *session
		if seat := h.seats[id.Slot()]; seat != nil && seat.id == id && seat.session != nil && seat.switches.suspects(time.Since(h.start)) {
			older = seat.session
		}
		if older == nil || older.asker.Load() == conn {
			h.mu.Unlock()
			return
		}
		older.asker.Store(conn)
		h.mu.Unlock()
		lives := older.answers(conn)
		h.mu.Lock()
		if older.asker.Load() == conn {
			older.lives = lives
		}
		h.mu.Unlock()
	}
}

// answers reports whether the other end of the session is there. It is told the size of its
// datagrams again, which QUIC acknowledges at once, whatever the node does; so does anything
// else that comes from there. Nobody waits for the answer any more when a still newer
// connection asks: so one waits at most.
func (s *session) answers(asker *quic.Conn) bool {
	before := s.conn.ConnectionStats().PacketsReceived
	s.tellSize()
	look := time.NewTicker(answerLook)
	defer look.Stop()
	over := time.NewTimer(answerWait)
	defer over.Stop()
	for s.asker.Load() == asker {
		select {
		case <-look.C:
			if s.conn.ConnectionStats().PacketsReceived != before {
				return true
			}
		case <-over.C:
			return false
		case <-s.conn.Context().Done():
			return false
		case <-asker.Context().Done():
			return false
		}
	}
	return false
}
