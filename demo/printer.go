package demo

import "io"

// Printer is told what happens, in order and by one goroutine.
type Printer interface {
	Open(Opening) // first
	Begin(Result) // a step begins; only its number, name and title are set
	Step(Result)  // a step has ended, or is skipped
	Live(Live)    // live traffic begins, and from time to time while it lasts
	Close(Summary)
	// Err returns the error of the first write that failed. Nothing is written behind
	// it, and the demonstration ends.
	Err() error
}

// The kinds of objects that a demonstration prints, one a line.
const (
	kindOpen = "demo"
	kindStep = "step"
	kindLive = "live"
	kindEnd  = "end"
)

// Opening says what is about to be shown.
type Opening struct {
	Kind    string   `json:"kind"` // demo
	Version string   `json:"version"`
	Once    bool     `json:"once"`
	Break   Break    `json:"break,omitempty"`
	Steps   []string `json:"steps"` // their names, in order
}

func opening(cfg Config, steps []step) Opening {
	o := Opening{Kind: kindOpen, Version: cfg.Relay.Build.Version, Once: cfg.Once, Break: cfg.Break}
	for _, s := range steps {
		o.Steps = append(o.Steps, s.name)
	}
	return o
}

// Live is what live traffic has come to so far, by /status and by the peers' records.
type Live struct {
	Kind     string `json:"kind"`     // live
	Operator string `json:"operator"` // URL of the relay's operator endpoint
	// Commands are lines for a shell that look at the relay; in the first of all alone.
	Commands []string `json:"commands,omitempty"`
	Seconds  float64  `json:"seconds"`
	Rounds   int      `json:"rounds"` // of traffic that were whole
	Faults   int      `json:"faults"` // rounds that were not
	Fault    string   `json:"fault,omitempty"`

	Downloaded int64  `json:"downloadedBytes"` // by node-a from node-b, through the hub
	ToCloudly  uint64 `json:"toCloudly"`       // requests of all nodes that the relay carried up
	ToNodes    uint64 `json:"toNodes"`         // requests of Cloudly that it carried down
	Packets    uint64 `json:"packets"`         // that the hub relayed
	HTTPS      int64  `json:"https"`           // requests that the ingress counted
}

// Summary is the last thing that is printed.
type Summary struct {
	Kind    string          `json:"kind"` // end
	Held    bool            `json:"held"` // every step did
	Seconds float64         `json:"seconds"`
	Steps   map[Outcome]int `json:"steps"` // how many ended how
}

// sink is an output that remembers its first error and takes nothing behind it.
type sink struct {
	to  io.Writer
	err error
}

func (s *sink) write(b []byte) {
	if s.err == nil {
		_, s.err = s.to.Write(b)
	}
}

// Err returns the error of the first write that failed.
func (s *sink) Err() error { return s.err }
