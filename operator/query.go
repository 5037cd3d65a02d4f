package operator

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
)

// query is the parameters of a request. Those that nobody asks for are ignored.
// An error names the parameter and its rule, never what was sent.
type query struct{ values url.Values }

func readQuery(r *http.Request) (query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return query{}, errors.New("the query is not one of name=value pairs")
	}
	return query{values}, nil
}

// has reports whether a parameter was given.
func (q query) has(name string) bool { return len(q.values[name]) > 0 }

// number reads a whole number of low to high; fallback if it was not given.
func (q query) number(name string, fallback, low, high uint64) (uint64, error) {
	if !q.has(name) {
		return fallback, nil
	}
	n, err := strconv.ParseUint(q.values[name][0], 10, 64)
	if err != nil || n < low || n > high || len(q.values[name]) > 1 {
		return 0, fmt.Errorf("%s must be given once, as a whole number from %d to %d", name, low, high)
	}
	return n, nil
}

// flag reads a parameter that is on when it is there, or says yes or no.
func (q query) flag(name string) (bool, error) {
	if !q.has(name) {
		return false, nil
	}
	if len(q.values[name]) == 1 {
		switch q.values[name][0] {
		case "", "1", "true":
			return true, nil
		case "0", "false":
			return false, nil
		}
	}
	return false, fmt.Errorf("%s must be given once, alone or as true or false", name)
}

// address reads an IP address.
func (q query) address(name string) (netip.Addr, error) {
	if len(q.values[name]) == 1 {
		if text := q.values[name][0]; isAddress(text) {
			return netip.ParseAddr(text)
		}
	}
	return netip.Addr{}, fmt.Errorf("%s must be given once, as an IP address", name)
}
