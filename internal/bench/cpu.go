package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/redistest"
)

// cpu is processor time used so far. Unlike times by the clock it does not
// depend on what else the machine does, and where clients and servers keep all
// processors busy it is what decides.
type cpu struct{ clients, servers time.Duration }

func usedCPU(ctx context.Context, c *redistest.Cluster) cpu {
	u := cpu{clients: ownCPU()}
	for i := range c.Len() {
		// A server that hangs uses none.
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		info, err := c.Node(i).Client().Info(ctx, "cpu").Result()
		cancel()
		if err != nil {
			continue
		}
		for line := range strings.Lines(info) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if key == "used_cpu_user" || key == "used_cpu_sys" {
				seconds, _ := strconv.ParseFloat(value, 64)
				u.servers += time.Duration(seconds * float64(time.Second))
			}
		}
	}
	return u
}
