package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"serve.zone/relay/operator/client"
)

// Where facts come from. Peers go by their own names.
const (
	fromStatus  = "/status"
	fromEvents  = "/events"
	fromReady   = "/readyz"
	fromExplain = "/explain"
	fromRelay   = "relay" // its process: how Run returned
	fromNodes   = "nodes" // all of them
)

// document is what the demonstration reads of /status: the members that it shows.
type document struct {
	Duties struct {
		Relay struct {
			Phase  string `json:"phase"`
			NodeID string `json:"nodeId"`
		} `json:"relay"`
		Cloudly struct {
			State                 string `json:"state"`
			Registered            bool   `json:"registered"`
			Origin                string `json:"origin"`
			AcceptedRegistrations uint64 `json:"acceptedRegistrations"`
			LastTrouble           string `json:"lastTrouble"`
		} `json:"cloudly"`
		Forward struct {
			Attached bool          `json:"attached"`
			Nodes    []carriedNode `json:"nodes"`
		} `json:"forward"`
		Escrow struct {
			Attached bool         `json:"attached"`
			Runs     int          `json:"runs"`
			Renewals int          `json:"renewals"`
			Nodes    []leasedNode `json:"nodes"`
		} `json:"escrow"`
		Ingress struct {
			Table *struct {
				Revision int64 `json:"revision"`
				Routes   int   `json:"routes"`
			} `json:"table"`
			Ingresses []struct {
				Node   string `json:"node"`
				Pulled int64  `json:"pulled"`
			} `json:"ingresses"`
		} `json:"ingress"`
		Hub struct {
			Bound   string          `json:"bound"`
			Network *networkInForce `json:"network"`
			Members []hubMember     `json:"members"`
		} `json:"hub"`
		Listener struct {
			Address string `json:"address"`
			Bound   []struct {
				Role string `json:"role"`
				Node string `json:"node"`
			} `json:"bound"`
		} `json:"listener"`
	} `json:"duties"`
}

// carriedNode is a node whose session the relay carries.
type carriedNode struct {
	ID          string  `json:"id"`
	Confirmed   bool    `json:"confirmed"`
	ToCloudly   carried `json:"toCloudly"`
	FromCloudly carried `json:"fromCloudly"`
	LastRefusal string  `json:"lastRefusal"`
}

// carried is what went one way.
type carried struct {
	Requests uint64 `json:"requests"`
	Bytes    uint64 `json:"bytes"`
}

// leasedNode is a node of the escrow.
type leasedNode struct {
	ID           string    `json:"id"`
	ExpiresAt    time.Time `json:"expiresAt"`
	Acknowledged *struct {
		Sequence int64 `json:"sequence"`
	} `json:"acknowledged"`
}

// networkInForce is what the hub shows of the network that it enforces.
type networkInForce struct {
	Revision int64  `json:"revision"`
	State    string `json:"state"`
	Members  int    `json:"members"`
	Grants   int    `json:"grants"`
}

// hubMember is a member of the network.
type hubMember struct {
	Node        string `json:"node"`
	Sessions    uint64 `json:"sessions"`
	FromPackets uint64 `json:"fromPackets"`
	FromBytes   uint64 `json:"fromBytes"`
	ToPackets   uint64 `json:"toPackets"`
	ToBytes     uint64 `json:"toBytes"`
	Dropped     []struct {
		Reason  string `json:"reason"`
		Packets uint64 `json:"packets"`
	} `json:"dropped"`
	Session *struct {
		Lane       string  `json:"lane"`
		RTTSeconds float64 `json:"rttSeconds"`
	} `json:"session"`
}

// dropped is how many packets of the member were dropped for a reason.
func (m hubMember) dropped(reason string) uint64 {
	for _, d := range m.Dropped {
		if d.Reason == reason {
			return d.Packets
		}
	}
	return 0
}

// member returns the member of that name, or one of which nothing is known.
func (d document) member(name string) hubMember {
	for _, m := range d.Duties.Hub.Members {
		if m.Node == name {
			return m
		}
	}
	return hubMember{}
}

// node returns the carried node of that name, and false when it is not carried.
func (d document) node(name string) (carriedNode, bool) {
	for _, n := range d.Duties.Forward.Nodes {
		if n.ID == name {
			return n, true
		}
	}
	return carriedNode{}, false
}

// console reads the operator endpoint of the relay, as an operator would.
type console struct{ client.Client }

// status asks for the status document.
func (c console) status(ctx context.Context) (document, error) {
	text, err := c.Status(ctx)
	if err != nil {
		return document{}, err
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return document{}, fmt.Errorf("read /status: %w", err)
	}
	return d, nil
}

// until asks for the status document again and again until look finds in it what it
// wants, and returns that document.
func (c console) until(ctx context.Context, look func(document) error) (document, error) {
	var d document
	err := eventually(ctx, settleWait, func() error {
		var err error
		if d, err = c.status(ctx); err != nil {
			return err
		}
		return look(d)
	})
	return d, err
}

// happening is an event with the fields that the demonstration shows.
type happening struct {
	client.Event `json:"-"`
	Address      string  `json:"address"`
	Node         string  `json:"node"`
	Sequence     int64   `json:"sequence"`
	Count        int     `json:"count"`
	Reason       string  `json:"reason"`
	Seconds      float64 `json:"durationSeconds"`
}

// next returns the number of the next event.
func (c console) next(ctx context.Context) (uint64, error) {
	var from uint64
	for {
		page, err := c.Events(ctx, from)
		if err != nil || len(page.Events) == 0 {
			return page.Next, err
		}
		from = page.Next
	}
}

// since returns the events of a type, from a number on.
func (c console) since(ctx context.Context, from uint64, kind string) ([]happening, error) {
	var found []happening
	for {
		page, err := c.Events(ctx, from)
		if err != nil || len(page.Events) == 0 {
			return found, err
		}
		for _, e := range page.Events {
			if e.Type != kind {
				continue
			}
			h := happening{Event: e}
			if len(e.Fields) > 0 {
				if err := json.Unmarshal(e.Fields, &h); err != nil {
					return nil, fmt.Errorf("read /events: %w", err)
				}
			}
			found = append(found, h)
		}
		from = page.Next
	}
}

// awaitEvent returns the first event of a type, from a number on.
func (c console) awaitEvent(ctx context.Context, from uint64, kind string) (happening, error) {
	var first happening
	err := eventually(ctx, settleWait, func() error {
		found, err := c.since(ctx, from, kind)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return mismatch("the event "+kind, "none in /events from number %d on", from)
		}
		first = found[0]
		return nil
	})
	return first, err
}
