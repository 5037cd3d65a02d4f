package policy

import (
	"bytes"
	"testing"
)

// shapes are packets that differ in their shape alone, with what becomes of them.
func shapes() map[string]struct {
	packet []byte
	fault  string
} {
	p := func(changes ...func([]byte)) []byte { return packet("10.0.0.1", "10.1.0.1", changes...) }
	return map[string]struct {
		packet []byte
		fault  string
	}{
		"whole":                              {p(), ""},
		"header alone":                       {sized(p(), 20), ""},
		"largest":                            {sized(p(), 65535), ""},
		"do not fragment":                    {p(at(fragmentAt, 0x40)), ""},
		"reserved flag":                      {p(at(fragmentAt, 0x80)), ""},
		"ttl 0":                              {p(at(ttlAt, 0)), ""},
		"nothing":                            {nil, "packet-short"},
		"one byte":                           {[]byte{0x45}, "packet-short"},
		"19 bytes":                           {p()[:19], "packet-short"},
		"ipv6":                               {p(at(0, 0x60)), "packet-ipv6"},
		"one byte of ipv6":                   {[]byte{0x60}, "packet-ipv6"},
		"version 0":                          {p(at(0, 0x05)), "packet-version"},
		"version 5":                          {p(at(0, 0x55)), "packet-version"},
		"version 15":                         {p(at(0, 0xf5)), "packet-version"},
		"header of 0 bytes":                  {p(at(0, 0x40)), "packet-header-length"},
		"header of 16 bytes":                 {p(at(0, 0x44)), "packet-header-length"},
		"header beyond the packet":           {p(at(0, 0x4f)), "packet-header-length"},
		"header of 24 bytes in a short one":  {sized(p(at(0, 0x46)), 20), "packet-header-length"},
		"header of 24 bytes":                 {p(at(0, 0x46)), "packet-options"},
		"header of 40 bytes, all of it":      {p(at(0, 0x4a)), "packet-options"},
		"options and a wrong length":         {p(at(0, 0x46), at(3, 39)), "packet-options"},
		"one byte too many":                  {append(p(), 0), "packet-length"},
		"one byte too few":                   {p()[:39], "packet-length"},
		"total length 0":                     {p(at(3, 0)), "packet-length"},
		"total length below the header":      {p(at(3, 19)), "packet-length"},
		"total length in the other order":    {p(at(2, 40), at(3, 0)), "packet-length"},
		"longer than a packet can be":        {sized(p(), 65536), "packet-length"},
		"twice as long, with the rest of it": {sized(p(), 65536+40), "packet-length"},
		"first fragment":                     {sized(p(fragment(0, true)), 20+48), ""},
		"first fragment of 1400 bytes":       {sized(p(fragment(0, true)), 20+1376), ""},
		"first fragment of 40 bytes":         {sized(p(fragment(0, true)), 20+40), "fragment-tiny"},
		"first fragment of 8 bytes":          {sized(p(fragment(0, true)), 20+8), "fragment-tiny"},
		"first fragment of 47 bytes":         {sized(p(fragment(0, true)), 20+47), "fragment-malformed"},
		"first fragment of 49 bytes":         {sized(p(fragment(0, true)), 20+49), "fragment-malformed"},
		"first fragment of nothing":          {sized(p(fragment(0, true)), 20), "fragment-malformed"},
		"second fragment":                    {sized(p(fragment(48, true)), 20+8), ""},
		"last fragment":                      {sized(p(fragment(48, false)), 20+1), ""},
		"last fragment of nothing":           {sized(p(fragment(48, false)), 20), "fragment-malformed"},
		"second fragment of 9 bytes":         {sized(p(fragment(48, true)), 20+9), "fragment-malformed"},
		"fragment within the first 48 bytes": {sized(p(fragment(40, false)), 20+100), "fragment-overlap"},
		"fragment at 8 (RFC 1858)":           {sized(p(fragment(8, true)), 20+8), "fragment-overlap"},
		"fragment that ends at 65535":        {sized(p(fragment(65512, false)), 20+3), ""},
		"fragment that ends at 65536":        {sized(p(fragment(65512, false)), 20+4), "fragment-malformed"},
		"fragment at the largest offset":     {sized(p(fragment(65528, false)), 20+1), "fragment-malformed"},
		"fragment that does not fragment":    {sized(p(fragment(48, false), func(b []byte) { b[fragmentAt] |= 0x40 }), 20+8), ""},
	}
}

func TestPacketShapes(t *testing.T) {
	table := compile(t, nil, granted())
	from, to := idOf(t, table, "node-000"), "node-001"
	for name, tc := range shapes() {
		before := bytes.Clone(tc.packet)
		v := table.Judge(tc.packet, from, admitted)
		switch {
		case tc.fault == "" && (v.Action != Relay || v.To.NodeID != to):
			t.Errorf("%s: %v for %v", name, v.Action, v.Reason)
		case tc.fault != "" && (v.Action != Drop || v.Reason.String() != tc.fault || v.To != nil):
			t.Errorf("%s: %v for %v, want a drop for %s", name, v.Action, v.Reason, tc.fault)
		}
		if !bytes.Equal(before, tc.packet) {
			t.Errorf("%s: the packet was changed", name)
		}
	}
}

// B199: any packet is parsed as a second parser does, and, where it passes, as
// golang.org/x/net does.
func FuzzB199_Parse(f *testing.F) {
	for _, tc := range shapes() {
		f.Add(tc.packet[:min(len(tc.packet), 2048)])
	}
	f.Add(packet("192.168.0.2", "192.168.0.1", echo))
	f.Add(sized(packet("192.168.0.2", "192.168.0.1", echo), 27))
	f.Fuzz(func(t *testing.T, packet []byte) {
		before := bytes.Clone(packet)
		h, fault, ok := parse(packet)
		want := readWire(packet)
		switch {
		case ok != (want.fault == ""):
			t.Fatalf("well formed is %v, the other parser says %q", ok, want.fault)
		case !ok && fault.String() != want.fault:
			t.Fatalf("%v, the other parser says %q", fault, want.fault)
		case !ok && h != (header{}):
			t.Fatalf("%v of a packet with a fault", h)
		case ok && h != (header{want.source, want.destination, want.echo}):
			t.Fatalf("%v, the other parser says %v", h, want)
		case !bytes.Equal(before, packet):
			t.Fatal("the packet was changed")
		}
		if ok {
			if err := againstSystem(packet, h); err != nil {
				t.Fatalf("%v: %v", h, err)
			}
		}
	})
}
