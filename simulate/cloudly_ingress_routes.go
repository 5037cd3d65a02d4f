package simulate

import (
	"context"

	"serve.zone/relay/contract"
)

// NextRouteTable composes a table with the revision after the one that Cloudly
// holds, issued now, and makes it the one that pulls are answered with. It pushes
// nothing.
func (c *Cloudly) NextRouteTable(routes []IngressRoute, ports []IngressPortRoute) (contract.RouteTable, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	revision := int64(1)
	if held := c.cluster.table; held != nil {
		revision = held.Revision + 1
	}
	table, err := contract.NewRouteTable(revision, c.wall().UnixMilli(), raws(routes), raws(ports))
	if err != nil {
		return contract.RouteTable{}, err
	}
	c.cluster.table = &table
	return table, nil
}

// PublishRoutes makes these routes the cluster's next table and pushes it. It
// returns the table, and the error of a push whose answer does not bind to it.
func (c *Cloudly) PublishRoutes(ctx context.Context, routes []IngressRoute, ports []IngressPortRoute) (contract.RouteTable, error) {
	table, err := c.NextRouteTable(routes, ports)
	if err != nil {
		return table, err
	}
	_, err = c.PushRouteTable(ctx, table)
	return table, err
}

func raws[T appender](list []T) []contract.Raw {
	var values []contract.Raw
	for _, v := range list {
		values = append(values, v.AppendJSON(nil))
	}
	return values
}
