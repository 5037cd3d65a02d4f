package operator

import (
	"net/http"
	"net/netip"
	"strings"
)

// isDirect reports whether a Host header names an address or localhost, with or
// without a port. Any other name could have been made to point here by the web
// page that asks.
func isDirect(host string) bool {
	if a, ok := strings.CutPrefix(host, "["); ok {
		a, port, closed := strings.Cut(a, "]")
		return closed && isAddress(a) && strings.Contains(a, ":") && (port == "" || isPort(port))
	}
	name, port, found := strings.Cut(host, ":")
	if found && !isPort(":"+port) {
		return false
	}
	return strings.EqualFold(name, "localhost") || isAddress(name)
}

// isAddress accepts an address without a zone, which is free text.
func isAddress(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Zone() == ""
}

// isPort accepts a colon and up to five digits.
func isPort(s string) bool {
	digits, ok := strings.CutPrefix(s, ":")
	return ok && len(digits) <= len("65535") && strings.Trim(digits, "0123456789") == ""
}

// isLoopback reports whether the peer of a connection is on this machine.
func isLoopback(remote string) bool {
	a, err := netip.ParseAddrPort(remote)
	return err == nil && a.Addr().Unmap().IsLoopback()
}

// isFromHere refuses a request for what is not everybody's, unless it comes from this
// machine and from no page of another site.
func isFromHere(w http.ResponseWriter, r *http.Request, what string) bool {
	switch {
	case !isLoopback(r.RemoteAddr):
		say(w, http.StatusForbidden, what+" are for peers with a loopback address")
		return false
	case !isOwnFetch(r.Header.Get("Sec-Fetch-Site")):
		// A page of another site cannot read the answer, but could have it made.
		say(w, http.StatusForbidden, what+" are not for pages of other sites")
		return false
	}
	return true
}

// isOwnFetch judges what a browser says of where a request comes from (Fetch
// Metadata). Other clients say nothing.
func isOwnFetch(site string) bool { return site == "" || site == "none" || site == "same-origin" }
