package simulate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"serve.zone/relay/contract"
)

// heldTraffic is what Cloudly keeps of the counters it has read, by node, day and
// hostname. It is guarded by Cloudly.mu.
type heldTraffic map[trafficKey]*readTraffic

type trafficKey struct {
	node string
	bucketKey
}

// readTraffic is a bucket as it was last read.
type readTraffic struct {
	Traffic
	closed bool // its day was over by then
}

// dayGrace is how long after midnight a day may still grow: what was in flight is
// counted where it ends, and clocks differ.
const dayGrace = time.Minute

// TrafficPage asks for one page of counters and judges it by itself and by what was
// asked. The error of one that breaks a rule is an ErrAnswer, and it is a violation
// where the relay had to notice.
func (c *Cloudly) TrafficPage(ctx context.Context, request contract.TrafficRequest) (contract.TrafficPage, error) {
	body, err := c.Call(ctx, contract.MethodGetTrafficStatistics, request.AppendJSON(nil))
	if err != nil {
		return contract.TrafficPage{}, err
	}
	page, err := contract.ReadTrafficPage(body)
	if err == nil {
		err = c.judgePage(page, request)
	}
	if err != nil {
		c.trafficViolation(TrafficPageRule)
		return contract.TrafficPage{}, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return page, nil
}

func (c *Cloudly) trafficViolation(rule Rule) {
	socket, _ := c.Registered()
	c.violated(rule, socket, contract.MethodGetTrafficStatistics)
}

// judgePage judges a page by what was asked and by whose ingresses there are.
func (c *Cloudly) judgePage(page contract.TrafficPage, request contract.TrafficRequest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := &object{what: contract.MethodGetTrafficStatistics + " answer"}
	if int64(len(page.Statistics)) > request.Limit {
		o.refuse("statistics", "has more elements than were asked for")
	}
	for n, b := range page.Statistics {
		at := fmt.Sprintf("statistics[%d]", n)
		if b.DayUTC < request.FromDayUTC || b.DayUTC > request.ToDayUTC {
			o.refuse(at+".dayUtc", "is outside the days that were asked for")
		}
		if b.NodeID != page.Statistics[0].NodeID {
			o.refuse(at+".nodeId", "is not that of the page's first bucket")
		}
		if !c.hasIngress(b.NodeID) {
			o.refuse(at+".nodeId", "has no ingress whose registration was accepted")
		}
	}
	return o.err()
}

func (c *Cloudly) hasIngress(node string) bool {
	return slices.ContainsFunc(c.cluster.ingress.accepted, func(a AcceptedIngress) bool { return a.NodeID == node })
}

// ReadTraffic reads all pages of some days, at most limit buckets each, and takes
// the buckets over. It judges the order of the pages, their cursors, and what has
// become of buckets that were read before. It returns what it read, in the order
// that it came in; what was read before an error is not taken over.
func (c *Cloudly) ReadTraffic(ctx context.Context, fromDay, toDay string, limit int64) ([]TrafficBucket, error) {
	request := contract.TrafficRequest{FromDayUTC: fromDay, ToDayUTC: toDay, Limit: limit}
	r := trafficRead{cursors: map[string]bool{}, seen: map[trafficKey]bool{}}
	for range maximumTrafficPages {
		page, err := c.TrafficPage(ctx, request)
		if err != nil {
			return nil, err
		}
		if rule, err := r.take(page); err != nil {
			c.trafficViolation(rule)
			return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
		}
		if request.Cursor = page.NextCursor; request.Cursor == nil {
			return r.buckets, c.takeTraffic(r.buckets, fromDay, toDay)
		}
	}
	return nil, fmt.Errorf("%w: more than %d pages", ErrAnswer, maximumTrafficPages)
}

// trafficRead is one read of all pages.
type trafficRead struct {
	buckets []TrafficBucket
	node    string // of the newest bucket
	seen    map[trafficKey]bool
	cursors map[string]bool
}

// take judges one page behind those before it, and names the rule it breaks.
func (r *trafficRead) take(page contract.TrafficPage) (Rule, error) {
	order := &object{what: contract.MethodGetTrafficStatistics + " answer"}
	content := &object{what: order.what}
	for n, b := range page.Statistics {
		at := fmt.Sprintf("statistics[%d]", n)
		key := trafficKey{b.NodeID, bucketKey{b.DayUTC, b.Hostname}}
		if b.NodeID < r.node {
			order.refuse(at+".nodeId", "is before that of an earlier page")
		}
		if r.seen[key] {
			order.refuse(at, "repeats a bucket of this read")
		}
		r.node, r.seen[key] = b.NodeID, true
		bucket, reasons := readBucket(b)
		content.within(at, &object{reasons: reasons})
		r.buckets = append(r.buckets, bucket)
	}
	if page.NextCursor != nil {
		if r.cursors[*page.NextCursor] {
			order.refuse("nextCursor", "came before in this read")
		}
		r.cursors[*page.NextCursor] = true
	}
	if err := order.err(); err != nil {
		return TrafficOrder, err
	}
	return TrafficContent, content.err()
}

// readBucket reads the whole of a bucket, with the failures, into which a relay does
// not look.
func readBucket(b contract.TrafficStatistics) (TrafficBucket, []string) {
	o := readObject("bucket", b.Encoded, []string{"dayUtc", "hostname", "nodeId", "requests", "bytesIn", "bytesOut", "connections", "failures"})
	bucket := TrafficBucket{DayUTC: b.DayUTC, Hostname: b.Hostname, NodeID: b.NodeID, Traffic: Traffic{
		Requests: b.Requests, BytesIn: b.BytesIn, BytesOut: b.BytesOut, Connections: b.Connections}}
	if raw := o.members["failures"]; raw != nil {
		inner := readObject("failures", raw, []string{"connect", "handshake", "request"})
		bucket.Failures = BackendFailures{inner.count("connect"), inner.count("handshake"), inner.count("request")}
		o.within("failures", inner)
	}
	return bucket, o.reasons
}

// takeTraffic takes buckets over that were read in one pass over some days, each in
// the place of the one before. A day only grows, and not any more when it has
// closed.
func (c *Cloudly) takeTraffic(list []TrafficBucket, fromDay, toDay string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	over := utcDay(c.wall().Add(-dayGrace))
	o := &object{what: contract.MethodGetTrafficStatistics + " answer"}
	missing := c.heldWithin(list, fromDay, toDay)
	for n, b := range list {
		key := trafficKey{b.NodeID, bucketKey{b.DayUTC, b.Hostname}}
		delete(missing, key)
		held := c.cluster.traffic[key]
		switch {
		case held == nil:
		case held.closed && held.Traffic != b.Traffic:
			o.refuse(fmt.Sprintf("bucket %d", n), "has changed after its day had closed")
		case !b.atLeast(held.Traffic):
			o.refuse(fmt.Sprintf("bucket %d", n), "holds less than before")
		}
		c.holdTraffic(key, readTraffic{b.Traffic, b.DayUTC < over})
	}
	if len(missing) > 0 {
		o.refuse("statistics", "lack a bucket that was there before")
	}
	if err := o.err(); err != nil {
		number := 0
		if c.registered != nil {
			number = c.registered.number
		}
		c.violated(TrafficWentBack, number, contract.MethodGetTrafficStatistics)
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return nil
}

// heldWithin returns what is held of these days of the nodes that answered now.
func (c *Cloudly) heldWithin(list []TrafficBucket, fromDay, toDay string) map[trafficKey]bool {
	nodes, keys := map[string]bool{}, map[trafficKey]bool{}
	for _, b := range list {
		nodes[b.NodeID] = true
	}
	for key := range c.cluster.traffic {
		if nodes[key.node] && key.day >= fromDay && key.day <= toDay {
			keys[key] = true
		}
	}
	return keys
}

func (c *Cloudly) holdTraffic(key trafficKey, read readTraffic) {
	if c.cluster.traffic == nil {
		c.cluster.traffic = heldTraffic{}
	}
	if _, held := c.cluster.traffic[key]; !held && len(c.cluster.traffic) >= maximumBuckets {
		delete(c.cluster.traffic, slices.MinFunc(slices.Collect(maps.Keys(c.cluster.traffic)), func(a, b trafficKey) int {
			return cmp.Or(strings.Compare(a.day, b.day), a.compare(b.bucketKey))
		}))
	}
	c.cluster.traffic[key] = &read
}

// atLeast reports whether every count is at least that of another.
func (t Traffic) atLeast(o Traffic) bool {
	theirs := o.counts()
	for n, c := range t.counts() {
		if c.n < theirs[n].n {
			return false
		}
	}
	return true
}

// Traffic returns the buckets that were read so far, ordered by node, day and
// hostname.
func (c *Cloudly) Traffic() []TrafficBucket {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []TrafficBucket
	for key, held := range c.cluster.traffic {
		list = append(list, TrafficBucket{DayUTC: key.day, Hostname: key.hostname, NodeID: key.node, Traffic: held.Traffic})
	}
	slices.SortFunc(list, func(a, b TrafficBucket) int {
		return cmp.Or(strings.Compare(a.NodeID, b.NodeID), bucketKey{a.DayUTC, a.Hostname}.compare(bucketKey{b.DayUTC, b.Hostname}))
	})
	return list
}
