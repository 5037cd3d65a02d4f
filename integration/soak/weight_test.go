package soak_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// weight is what the relay holds at a quiet point.
type weight struct {
	goroutines int
	heap       int // bytes on the heap behind two collections, without the events that are held
}

// heapAllowance is how much more may lie on the heap at a like later point although
// nothing leaked: tables and rings that grew to the size which the work needed, what
// pools and the runtime keep.
const heapAllowance = 3 << 20

// faults are what is wrong with the weight at a later point like an earlier one.
func (w weight) faults(earlier weight) []string {
	var found []string
	if w.goroutines > earlier.goroutines {
		found = append(found, fmt.Sprintf("weight: %d goroutines, and %d at a like earlier point", w.goroutines, earlier.goroutines))
	}
	if w.heap > earlier.heap+heapAllowance {
		found = append(found, fmt.Sprintf("weight: %d bytes on the heap, and %d at a like earlier point", w.heap, earlier.heap))
	}
	return found
}

// Goroutines that come and go at rest.
const (
	// asking reads beside a handler whether its client is still there: it is of the
	// question for the profile itself.
	asking = "net/http.(*connReader).backgroundRead+"
	// recalling has nodes register again when Cloudly is back. It ends some seconds later,
	// also when there is nothing to do.
	recalling = "forward.(*Forward).runRecall+"
)

// errRecalling is a relay that is not at rest yet.
var errRecalling = errors.New("nodes are being recalled")

// readGoroutines reads how many there are from the text form of that profile.
func readGoroutines(profile string) (int, error) {
	head, stacks, _ := strings.Cut(profile, "\n")
	text, ok := strings.CutPrefix(head, "goroutine profile: total ")
	if !ok {
		return 0, errors.New("the profile of goroutines does not begin with their number")
	}
	total, err := strconv.Atoi(text)
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		switch {
		case strings.Contains(stack, recalling):
			return 0, errRecalling
		case strings.Contains(stack, asking), !strings.Contains(stack, "#"):
			// One that has not begun shows no function at all.
			if stack = strings.TrimSpace(stack); stack == "" {
				continue
			}
			count, _, _ := strings.Cut(stack, " ")
			n, wrong := strconv.Atoi(count)
			total, err = total-n, errors.Join(err, wrong)
		}
	}
	return total, err
}

// readHeap reads how many bytes are allocated from the text form of that profile.
func readHeap(profile string) (int, error) {
	for line := range strings.Lines(profile) {
		if text, ok := strings.CutPrefix(line, "# HeapAlloc = "); ok {
			return strconv.Atoi(strings.TrimSpace(text))
		}
	}
	return 0, errors.New("the profile of the heap does not say what is allocated")
}
