package operator

import (
	"net/http"
)

// Explanation is what becomes of packets from one address to another, by the network
// that the hub has in force.
type Explanation struct {
	// Admitted tells whether a rule lets packets pass; for the hub's own address,
	// whether it answers echo requests.
	Admitted bool   `json:"admitted"`
	Action   string `json:"action"`   // relay, echo or drop
	Reason   string `json:"reason"`   // of a drop, one of hub/policy/drops.md; else empty
	Revision int64  `json:"revision"` // of the network, 0 while none is held
	From     End    `json:"from"`
	To       End    `json:"to"`
	// Suspended tells that nothing passes at present, whatever the rule, since custody
	// may be about to end.
	Suspended bool   `json:"suspended"`
	Sentence  string `json:"sentence"` // the same for a person
}

// End is one end of a packet's way.
type End struct {
	Address   string `json:"address"`
	Node      string `json:"node"`      // that has the address, empty for none
	Prefix    string `json:"prefix"`    // of the workload that the address is in, empty for none
	Domain    string `json:"domain"`    // of that workload
	Connected bool   `json:"connected"` // the node has a session with the hub
}

// NoHub is the error that /explain answers, with 404, where the relay has no hub.
const NoHub = "no-hub"

// serveExplain answers /explain. It is not for everybody: it would tell who maps a
// cluster which ways there are.
func (o *Operator) serveExplain(w http.ResponseWriter, r *http.Request) outcome {
	if !isFromHere(w, r, "explanations") {
		return forbidden
	}
	q, err := readQuery(r)
	if err != nil {
		return misuse(w, err)
	}
	from, err := q.address("from")
	if err != nil {
		return misuse(w, err)
	}
	to, err := q.address("to")
	if err != nil {
		return misuse(w, err)
	}
	if o.cfg.Explain == nil {
		sendJSON(w, http.StatusNotFound, map[string]string{"error": NoHub, "hint": "The relay was started without --hub-listen."})
		return notFound
	}
	sendJSON(w, http.StatusOK, o.cfg.Explain(from, to))
	return served
}
