package portforward

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

// reason names why the other end could not be had, without the name or the address that
// errors of package net hold.
func reason(err error) string {
	var lookup *net.DNSError
	var limit net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &limit) && limit.Timeout():
		return "timeout"
	case errors.As(err, &lookup):
		return "name-not-resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no-route"
	}
	return "not-reached"
}
