package typedsocket

import (
	"reflect"
	"testing"
)

// Every figure of Stats that grows is a count, and each is its own.
func TestEveryStatIsACount(t *testing.T) {
	var s Stats
	fields := reflect.ValueOf(&s).Elem()
	n := 0
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		if fields.Field(i).Kind() != reflect.Uint64 || name == "BytesIn" || name == "BytesOut" {
			continue // levels, and sizes, which have a unit of their own
		}
		n++
		fields.Field(i).SetUint(uint64(n))
	}
	if n != int(Counts) {
		t.Fatalf("%d figures, %d counts", n, Counts)
	}
	var tally Tally
	tally.Add(s)
	tally.Add(s)
	for c := range Counts {
		if s.Of(c) != uint64(c)+1 || tally[c] != 2*s.Of(c) {
			t.Errorf("%s is %d, twice %d", c, s.Of(c), tally[c])
		}
	}
}
