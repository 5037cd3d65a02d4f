package operator

import "strings"

// route is what a request asks for.
type route uint8

const (
	routeIndex route = iota
	routeLive
	routeReady
	routeStatus
	routeEvents
	routeMetrics
	routeExplain
	routeProfile
	routeNothing
	routes // how many there are
)

var routeNames = [routes]string{
	routeIndex: "index", routeLive: "live", routeReady: "ready", routeStatus: "status",
	routeEvents: "events", routeMetrics: "metrics", routeExplain: "explain", routeProfile: "profile", routeNothing: "nothing",
}

// String returns the route's name.
func (r route) String() string { return routeNames[r] }

// isProbe reports whether the route is answered also when nothing else is.
func (r route) isProbe() bool { return r == routeLive || r == routeReady }

// profilePrefix is what the paths of profiles begin with, as tools expect.
const profilePrefix = "/debug/pprof/"

// routeOf decides by the path alone.
func routeOf(path string) route {
	switch path {
	case "/":
		return routeIndex
	case "/livez", "/healthz":
		return routeLive
	case "/readyz":
		return routeReady
	case "/status":
		return routeStatus
	case "/events":
		return routeEvents
	case "/metrics":
		return routeMetrics
	case "/explain":
		return routeExplain
	}
	if strings.HasPrefix(path, profilePrefix) {
		return routeProfile
	}
	return routeNothing
}

// outcome is what became of a request.
type outcome uint8

const (
	served     outcome = iota // what was asked for
	notReady                  // 503 of /readyz
	notFound                  // there is no such thing
	misused                   // the request is not one of ours: method, Host, body, parameters
	forbidden                 // not for this peer
	overloaded                // too much at once
	leaving                   // the endpoint is draining
	broken                    // a mistake in the relay
	outcomes                  // how many there are
)

var outcomeNames = [outcomes]string{
	served: "served", notReady: "not-ready", notFound: "not-found", misused: "misused",
	forbidden: "forbidden", overloaded: "overloaded", leaving: "leaving", broken: "broken",
}

// String returns the outcome's name.
func (o outcome) String() string { return outcomeNames[o] }
