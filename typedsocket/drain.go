package typedsocket

import "context"

// Drain refuses new requests of the peer by name, waits until every request is
// answered that is not yet, or the context ends, and then closes as Close does.
// Calls of our own may still be made meanwhile. It returns the context's error
// when requests were left unanswered.
func (s *Socket) Drain(ctx context.Context, refusal string, code CloseCode, reason string) error {
	s.mu.Lock()
	s.refusing = refusal
	if s.serving > 0 && s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	var err error
	if idle != nil {
		select {
		case <-idle:
		case <-s.ending:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	s.Close(code, reason)
	return err
}
