package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// What is done to the wall clocks of clients: one is wrong from the start of
// the process, or is set while it runs, ahead or back; and right again after a
// while. What is within the skew must not be noticed. Any other client must not
// be either.
var wallHarms = []harm{
	{"client started with its wall clock wrong, within the skew", wrongFromStart(skew/4, skew/2)},
	{"client started with its wall clock wrong by 1.5 to 6 s", wrongFromStart(3*skew/2, 6*skew)},
	{"client started with its wall clock wrong by 10 min", wrongFromStart(10*time.Minute, 10*time.Minute)},
	{"client started with its wall clock wrong by 49 h", wrongFromStart(49*time.Hour, 49*time.Hour)},
	{"client started with its wall clock wrong by a year", wrongFromStart(year, year)},
	{"wall clock of a client set wrong, within the skew", wrongMeanwhile(skew/4, skew/2)},
	{"wall clock of a client set wrong by 1.5 to 6 s", wrongMeanwhile(3*skew/2, 6*skew)},
	{"wall clock of a client set wrong by 10 min to a year", wrongMeanwhile(10*time.Minute, year)},
}

// wrong draws which client's clock is wrong, by how much, and for how long.
func (n *nemesis) wrong(r *rand.Rand, from, to time.Duration) (c *client, off, d time.Duration) {
	c, off, d = n.clients[r.IntN(n.plan.Clients)], between(r, from, to+1), between(r, n.plan.TTL, 5*n.plan.TTL)
	if r.IntN(2) == 0 {
		off = -off
	}
	return c, off, d
}

func wrongFromStart(from, to time.Duration) func(context.Context, *nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
		c, off, d := n.wrong(r, from, to)
		target := fmt.Sprintf("client %d by %v for %v", c.id, off.Round(time.Millisecond), d.Round(time.Millisecond))
		err := c.restart(ctx, between(r, 0, n.plan.TTL), off)
		wait(ctx, d)
		return target, errors.Join(err, c.setWall(0))
	}
}

func wrongMeanwhile(from, to time.Duration) func(context.Context, *nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
		c, off, d := n.wrong(r, from, to)
		target := fmt.Sprintf("client %d by %v for %v", c.id, off.Round(time.Millisecond), d.Round(time.Millisecond))
		err := c.setWall(off)
		wait(ctx, d)
		return target, errors.Join(err, c.setWall(0))
	}
}
