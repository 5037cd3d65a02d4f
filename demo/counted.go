package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"serve.zone/relay/operator/client"
)

// pushedRenewals counts every push of a renewal to a node, also one of a renewal that was
// pushed before.
const pushedRenewals = "relay_escrow_pushed_renewals_total"

// mostMetrics bounds how much of /metrics is read: many times what a relay states.
const mostMetrics = 4 << 20

// counted reads a counter without labels from /metrics. One that is not stated is a
// mismatch, and no zero.
func (c console) counted(ctx context.Context, name string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, client.Timeout)
	defer cancel()
	response, err := get(ctx, new(net.Dialer).DialContext, c.Base+fromMetrics)
	if err != nil {
		return 0, fmt.Errorf("ask the relay for %s: %w", fromMetrics, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("ask the relay for %s: it answers %s", fromMetrics, response.Status)
	}
	lines := bufio.NewScanner(io.LimitReader(response.Body, mostMetrics))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				return 0, mismatch("a count as "+name, "%.40q", value)
			}
			return n, nil
		}
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read %s: %w", fromMetrics, err)
	}
	return 0, mismatch(name+" in "+fromMetrics, "none")
}
