package main

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestStatus_Ages(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", time.Second - 1: "0s", 59*time.Second + 999*time.Millisecond: "59s",
		time.Minute: "1m", time.Hour - 1: "59m", time.Hour: "1h00m", 4*time.Hour - time.Second: "3h59m", 48*time.Hour - 1: "47h59m",
		48 * time.Hour: "2d", 3649*24*time.Hour + 5: "3649d",
	} {
		if got := ageText(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestStatus_Sizes(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1024*1024 - 53: "1023.9 KiB", 1024*1024 - 1: "1.0 MiB",
		1 << 20: "1.0 MiB", 1 << 30: "1.0 GiB", 5 << 40: "5.0 TiB", 1 << 50: "1.0 PiB", math.MaxUint64: "16.0 EiB",
	} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := sizeText(1023.99); got != "1023 B" {
		t.Error(got)
	}
}

func TestStatus_Counts(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0", 99_999: "99999", 100_000: "100k", 107_499: "107k", 9_999_499: "9999k", 9_999_500: "10M", 12_000_000_000: "12G", math.MaxUint64: "18E",
	} {
		if got := countText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for want, got := range map[string]string{
		"1 node": things(1, "node"), "0 nodes": things(0, "node"), "2 prefixes": things(2, "prefix"), "3 pushes": things(3, "push"), "1 push": things(1, "push"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestStatus_Facts(t *testing.T) {
	for facts, want := range map[string]string{
		"": "", "null": "", "[1]": "", `{}`: "", "{": "",
		`{"count":3,"limit":18446744073709551615}`:                                           "count=3, limit=18446744073709551615",
		`{"zebra":1,"attempt":7,"nextSeconds":12.7}`:                                         "zebra=1, attempt=7, next=12s",
		`{"durationSeconds":-1e300,"ageSeconds":1e300}`:                                      "duration=0s, age=36500d",
		`{"expiresAt":"2026-12-01T08:45:00.000Z","durationSeconds":"no number","full":true}`: "expiresAt=2026-12-01T08:45:00.000Z, durationSeconds=no number, full=true",
		`{"a":{"b":1},"c":[1],"d":null,"e":5}`:                                               "e=5",
		`{"count":3,"limit":`:                                                                "count=3",
	} {
		if got := factsText(json.RawMessage(facts)); got != want {
			t.Errorf("%s: %q, want %q", facts, got, want)
		}
	}
}

func TestStatus_Shortening(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{cut("abcdef", 6), "abcdef"}, {cut("abcdefg", 6), "abcd.."}, {cut("äöüäöüä", 6), "äöüä.."}, {cut("abc", 2), ".."}, {cut("abc", 1), ""}, {cut("", 0), ""},
		{squeeze("abcdef", 6), "abcdef"}, {squeeze("abcdefg", 6), "ab..fg"}, {squeeze("abcdefgh", 7), "abc..gh"}, {squeeze("äöüäöüä", 6), "äö..üä"},
		{named(nil), ""}, {named([]string{"a", "b", "c"}), "a, b, c"}, {named([]string{"a", "b", "c", "d", "e"}), "a, b, c and 2 more"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
	for _, test := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 10, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one\ntwo\tthree", 100, []string{"one two three"}},
		{"incomprehensibly long", 5, []string{"incomprehensibly", "long"}},
		{"it is 12 KiB, 3 B", 11, []string{"it is", "12 KiB, 3 B"}},
		{"at 12 KiB/s; here", 7, []string{"at", "12 KiB/s;", "here"}},
		{"B is it", 3, []string{"B", "is", "it"}},
	} {
		if got := wrap(test.text, test.width); !slices.Equal(got, test.want) {
			t.Errorf("%q in %d: %q, want %q", test.text, test.width, got, test.want)
		}
	}
}

// Of few things all are picked, of many those that matter most; both in order.
func TestStatus_Pick(t *testing.T) {
	weights := []int{3, 9, 1, 9, 5}
	heavier := func(i, j int) int { return weights[j] - weights[i] }
	for room, want := range map[int][]int{5: {0, 1, 2, 3, 4}, 9: {0, 1, 2, 3, 4}, 3: {1, 3, 4}, 1: {1}} {
		if got := pick(len(weights), room, heavier); !slices.Equal(got, want) {
			t.Errorf("room for %d: %v, want %v", room, got, want)
		}
	}
}

// A sheet is as wide as it may be, and no wider.
func TestStatus_SheetWidth(t *testing.T) {
	for given, want := range map[int]int{0: 100, 20: 60, 60: 60, 61: 61, 100: 100, 101: 100} {
		s := newSheet(given)
		for _, length := range []int{want, want + 1} {
			s.add(piece{text: strings.Repeat("x", length-5)}, piece{good, strings.Repeat("y", 5)})
		}
		full, short := s.lines[0].text(false), s.lines[1].text(false)
		if len(full) != want || !strings.HasSuffix(full, "xyyyyy") || len(short) != want || !strings.HasSuffix(short, "xyy..") {
			t.Errorf("%d: %q, %q", given, full, short)
		}
	}
}
