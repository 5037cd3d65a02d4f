package policy

import (
	"testing"

	"serve.zone/relay/hub/network/networktest"
)

// Nothing is allocated for a packet, whatever becomes of it.
func TestJudgeAllocatesNothing(t *testing.T) {
	table := compile(t, nil, networktest.Wide())
	small := compile(t, nil, granted())
	var budget EchoBudget
	for name, tc := range map[string]struct {
		table  *Table
		packet []byte
		want   string
	}{
		"relayed":          {table, packet("10.0.0.1", "10.1.0.1"), "relay to node-001"},
		"relayed, a few":   {small, packet("10.0.0.1", "10.1.0.1"), "relay to node-001"},
		"no grant":         {table, packet("10.0.1.1", "10.1.0.1"), "drop no-grant"},
		"spoofed":          {table, packet("10.1.0.1", "10.0.0.1"), "drop source-spoofed"},
		"unknown":          {table, packet("10.0.0.1", "8.8.8.8"), "drop destination-unknown"},
		"later fragment":   {table, packet("10.0.0.1", "10.1.0.1", fragment(800, false)), "relay to node-001"},
		"malformed":        {table, []byte{0x45}, "drop packet-short"},
		"ping":             {table, packet("192.168.0.2", "192.168.0.1", echo), "echo"},
		"from a stranger":  {Empty(table), packet("10.0.0.1", "10.1.0.1"), "drop sender-unknown"},
		"to who's expired": {small, packet("10.0.0.1", "10.3.0.1"), "drop destination-expired"},
	} {
		var id ID
		if m := tc.table.node("node-000"); m != nil {
			id = m.ID
		}
		want(t, name, tc.table, id, admitted, tc.packet, tc.want)
		var v Verdict
		if n := testing.AllocsPerRun(100, func() {
			if v = tc.table.Judge(tc.packet, id, admitted); v.Action == Echo && budget.Take(admitted) {
				AnswerEcho(tc.packet)
				AnswerEcho(tc.packet)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
