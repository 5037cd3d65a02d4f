//go:build !linux

package demo

import "time"

func processTime() time.Duration { return 0 }
