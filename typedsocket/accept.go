package typedsocket

import (
	"fmt"
	"net/http"

	"github.com/coder/websocket"
)

// Accept upgrades an HTTP request to a socket, on any path. There is no check
// of the Origin header (authority is the registration, not the page that
// dials), no compression and no subprotocol (design §6; typedsocket.md §1.5).
// On failure, ErrNoUpgrade, it has answered the HTTP request.
func Accept(w http.ResponseWriter, r *http.Request, cfg Config) (*Socket, error) {
	h := &hijacker{ResponseWriter: w}
	late := &lateSocket{ready: make(chan struct{})}
	ws, err := websocket.Accept(h, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true,
		CompressionMode:    websocket.CompressionDisabled,
		OnPingReceived:     late.ping,
	})
	if err != nil {
		return nil, fmt.Errorf("accept a socket of %s: %w", cfg.Peer, ErrNoUpgrade)
	}
	late.s = start(ws, h.link, false, cfg)
	close(late.ready)
	return late.s, nil
}
