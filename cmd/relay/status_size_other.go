//go:build !linux

package main

import "io"

// sizeOf knows of no terminal's size here.
func sizeOf(io.Writer) (columns, rows int) { return 0, 0 }
