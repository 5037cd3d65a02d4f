package netns_test

import (
	"regexp"
	"strconv"
)

// counterLine is what nft shows of a counter.
var counterLine = regexp.MustCompile(`packets (\d+) bytes`)

// counted is how many packets a named counter of a table has seen.
func (s *space) counted(table, counter string) int64 {
	s.t.Helper()
	out := s.must("", "nft", "list", "counter", "inet", table, counter)
	found := counterLine.FindStringSubmatch(out)
	if found == nil {
		s.t.Fatalf("nft shows %s", out)
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}
