package simulate

import (
	"sync"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// Step changes what a peer does with one request. The zero Step changes
// nothing; fields combine. Whatever a step says, the request is recorded and
// the rules of Violations are watched.
type Step struct {
	// Unjudged leaves the request alone: nothing of it is judged or taken over,
	// and no answer comes, or Response.
	Unjudged bool
	// Text refuses the request with this error and Data, {} when nil, and does
	// not judge it.
	Text string
	Data []byte
	// Protocol refuses it with a protocol refusal of this reason, and does not
	// judge it.
	Protocol contract.Incompatibility
	// Response replaces the answer to an accepted or unjudged request. Any bytes
	// do: what is no JSON makes the whole message malformed.
	Response []byte
	// Silent keeps the answer back for ever.
	Silent bool
	// Delay passes before the answer leaves. The judgement is not delayed.
	Delay time.Duration
	// StopReading leaves everything that arrives on the socket from now on unread,
	// until ResumeReading.
	StopReading bool
	// Close ends the socket with this code once the answer is queued.
	Close typedsocket.CloseCode
	// Cut breaks the connection without a word, in place of an answer.
	Cut bool
}

// Refuse refuses with an error as it stands.
func Refuse(text string, data []byte) Step { return Step{Text: text, Data: data} }

// RefuseNamed refuses with a name of the vocabulary, led by it in the text and
// carried as data.code (contract §6.1, O10).
func RefuseNamed(name contract.RefusalName, reason string) Step {
	r := contract.Refusal{Name: name, Reason: reason}
	return Step{Text: r.Text(), Data: r.AppendData(nil)}
}

// RefuseProtocol refuses as a server does whose offer does not go with the
// client's (contract §4).
func RefuseProtocol(reason contract.Incompatibility) Step { return Step{Protocol: reason} }

// Respond judges the request and, when it is accepted, answers these bytes.
func Respond(response []byte) Step { return Step{Response: response} }

// Swallow judges the request, takes it over, and never answers: the answer was
// lost.
func Swallow() Step { return Step{Silent: true} }

// Ignore neither judges nor answers: the request was lost.
func Ignore() Step { return Step{Unjudged: true} }

// Late answers after a while.
func Late(d time.Duration) Step { return Step{Delay: d} }

// CutOff takes the request over and breaks the connection in place of an answer.
func CutOff() Step { return Step{Cut: true} }

// judged reports whether the request is judged at all.
func (s Step) judged() bool { return !s.Unjudged && s.Text == "" && s.Protocol == "" }

// AnyMethod, as the method of a script, is every method that has no step of its
// own.
const AnyMethod = ""

// script holds the steps that wait for their requests, by method.
type script struct {
	mu     sync.Mutex
	once   map[string][]Step
	always map[string]Step
}

func (s *script) add(method string, steps []Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.once == nil {
		s.once = map[string][]Step{}
	}
	s.once[method] = append(s.once[method], steps...)
}

func (s *script) keep(method string, step Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.always == nil {
		s.always = map[string]Step{}
	}
	s.always[method] = step
}

func (s *script) clear(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.once, method)
	delete(s.always, method)
}

func (s *script) waiting(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.once[method])
}

// next takes the step of the next request of a method.
func (s *script) next(method string) Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range []string{method, AnyMethod} {
		if steps := s.once[key]; len(steps) > 1 {
			s.once[key] = steps[1:]
			return steps[0]
		} else if len(steps) == 1 {
			delete(s.once, key)
			return steps[0]
		}
		if step, ok := s.always[key]; ok {
			return step
		}
	}
	return Step{}
}
