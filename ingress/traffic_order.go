package ingress

import (
	"slices"

	"serve.zone/relay/contract"
)

// at returns which of the nodes, in their order, is asked for a cursor, nil for
// none: the one that it names, at its own cursor, or when that node has no ingress
// any more, the next one from its beginning. It reports false when none is left.
func at(nodes []string, cursor *contract.TrafficCursor) (contract.TrafficCursor, bool) {
	if cursor == nil {
		cursor = &contract.TrafficCursor{}
	}
	n, found := slices.BinarySearch(nodes, cursor.NodeID)
	switch {
	case found:
		return *cursor, true
	case n < len(nodes):
		return contract.TrafficCursor{NodeID: nodes[n]}, true
	}
	return contract.TrafficCursor{}, false
}

// behind returns the cursor behind a page: where that ingress goes on, or else the
// next node's beginning; nil behind the last.
func behind(nodes []string, node string, inner *string) *string {
	next := contract.TrafficCursor{NodeID: node}
	if inner != nil {
		next.Inner = *inner
	} else {
		n, found := slices.BinarySearch(nodes, node)
		if found {
			n++
		}
		if n == len(nodes) {
			return nil
		}
		next.NodeID = nodes[n]
	}
	text := next.Text()
	return &text
}
