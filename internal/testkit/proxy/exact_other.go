//go:build !linux

package proxy

import "time"

func sleepExactly(d time.Duration) { time.Sleep(d) }
