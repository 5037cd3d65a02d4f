//go:build !linux

package main

import "syscall"

// boundUnsent leaves the connection as it is: the option is Linux's.
func boundUnsent(_, _ string, _ syscall.RawConn) error { return nil }
