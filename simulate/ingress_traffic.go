package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"serve.zone/relay/contract"
)

// Traffic is what is counted: of one bucket, or summed over some.
type Traffic struct {
	// Requests are those that reached a handler, refused ones included.
	Requests int64
	// BytesIn and BytesOut are the bytes of HTTP from and to clients, heads
	// included, without what TLS adds.
	BytesIn, BytesOut int64
	// Connections are those whose handshake was completed.
	Connections int64
	Failures    BackendFailures
}

// BackendFailures are the failures of backends that a proxy can observe (contract
// §11.4). OWN: the seeds name them and do not tell them apart.
type BackendFailures struct {
	Connect   int64 // no connection to a destination
	Handshake int64 // an upgrade that the backend answered wrongly
	Request   int64 // a request that broke on a connection that stood
}

// TrafficBucket is one UTC day of one hostname's traffic on one node.
type TrafficBucket struct {
	DayUTC   string // YYYY-MM-DD
	Hostname string
	NodeID   string // of the ingress; in AddTraffic and IngressConfig "" stands for its own
	Traffic
}

// plus returns the sum. No count leaves the range that can be reported.
func (t Traffic) plus(o Traffic) Traffic {
	add := func(a, b int64) int64 { return min(a+b, contract.MaximumSafeInteger) }
	f, g := t.Failures, o.Failures
	return Traffic{add(t.Requests, o.Requests), add(t.BytesIn, o.BytesIn), add(t.BytesOut, o.BytesOut),
		add(t.Connections, o.Connections),
		BackendFailures{add(f.Connect, g.Connect), add(f.Handshake, g.Handshake), add(f.Request, g.Request)}}
}

// counts returns every count with its name.
func (t Traffic) counts() []namedCount {
	return []namedCount{{"requests", t.Requests}, {"bytesIn", t.BytesIn}, {"bytesOut", t.BytesOut}, {"connections", t.Connections},
		{"failures.connect", t.Failures.Connect}, {"failures.handshake", t.Failures.Handshake}, {"failures.request", t.Failures.Request}}
}

type namedCount struct {
	name string
	n    int64
}

// AppendJSON appends the bucket as it is reported. OWN: the member that holds the
// failures (contract O29).
func (b TrafficBucket) AppendJSON(dst []byte) []byte {
	f := b.Failures
	return append(dst, compose().text("dayUtc", b.DayUTC).text("hostname", b.Hostname).text("nodeId", b.NodeID).
		integer("requests", b.Requests).integer("bytesIn", b.BytesIn).integer("bytesOut", b.BytesOut).
		integer("connections", b.Connections).value("failures", compose().integer("connect", f.Connect).
		integer("handshake", f.Handshake).integer("request", f.Request).end()).end()...)
}

// bucketKey orders the buckets of one node.
type bucketKey struct{ day, hostname string }

func (k bucketKey) compare(o bucketKey) int {
	return cmp.Or(strings.Compare(k.day, o.day), strings.Compare(k.hostname, o.hostname))
}

// traffic is what an ingress counted. It has a lock of its own, which comes last,
// since bytes are counted where they pass.
type traffic struct {
	mu      sync.Mutex
	buckets map[bucketKey]*Traffic
	dropped uint64
}

// add counts under a day. Beyond the bound the oldest day makes room.
func (t *traffic) add(k bucketKey, more Traffic) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.buckets[k]
	if held == nil {
		if t.buckets == nil {
			t.buckets = map[bucketKey]*Traffic{}
		}
		if len(t.buckets) >= maximumBuckets {
			t.dropOldest()
		}
		held = &Traffic{}
		t.buckets[k] = held
	}
	*held = held.plus(more)
}

func (t *traffic) dropOldest() {
	oldest := slices.MinFunc(slices.Collect(maps.Keys(t.buckets)), bucketKey.compare)
	delete(t.buckets, oldest)
	t.dropped++
}

// between returns the buckets of some days that come after a place, in order, at
// most limit, and whether more follow.
func (t *traffic) between(from, to string, after bucketKey, limit int) (list []TrafficBucket, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range slices.SortedFunc(maps.Keys(t.buckets), bucketKey.compare) {
		if k.day < from || k.day > to || k.compare(after) <= 0 {
			continue
		}
		if len(list) == limit {
			return list, true
		}
		list = append(list, TrafficBucket{DayUTC: k.day, Hostname: k.hostname, Traffic: *t.buckets[k]})
	}
	return list, false
}

// count counts under the present day.
func (i *Ingress) count(hostname string, more Traffic) {
	i.traffic.add(bucketKey{utcDay(i.wall()), hostname}, more)
	i.watch.notify()
}

// AddTraffic counts what did not pass: what an earlier process counted, or what a
// test wants to page over.
func (i *Ingress) AddTraffic(b TrafficBucket) error {
	b.Hostname = strings.ToLower(b.Hostname)
	switch {
	case !contract.IsUTCDay(b.DayUTC):
		return fmt.Errorf("add traffic: the day is no utc day")
	case !isDNSName(b.Hostname):
		return fmt.Errorf("add traffic: the hostname is not a dns name")
	case b.NodeID != "" && b.NodeID != i.cfg.NodeID:
		return fmt.Errorf("add traffic: the node is not that of this ingress")
	}
	for _, c := range b.counts() {
		if !contract.IsCount(c.n) {
			return fmt.Errorf("add traffic: %s is not a count", c.name)
		}
	}
	i.traffic.add(bucketKey{b.DayUTC, b.Hostname}, b.Traffic)
	return nil
}

// Counters returns every bucket, ordered by day and hostname.
func (i *Ingress) Counters() []TrafficBucket {
	list, _ := i.traffic.between("", "9999-99-99", bucketKey{}, maximumBuckets)
	for n := range list {
		list[n].NodeID = i.cfg.NodeID
	}
	return list
}

// Counted returns what was counted for a hostname, over all days.
func (i *Ingress) Counted(hostname string) Traffic {
	var sum Traffic
	for _, b := range i.Counters() {
		if b.Hostname == strings.ToLower(hostname) {
			sum = sum.plus(b.Traffic)
		}
	}
	return sum
}
