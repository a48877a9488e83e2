package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"
)

// What happens to clients whose machine sleeps: they are stopped, for less or
// more than a ttl, and meanwhile their connections end, or the answers to what
// they have asked wait for them.
var sleepHarms = []harm{
	{"one client asleep, its connections end", asleep(oneSleeps, true)},
	{"some clients asleep, their connections end", asleep(someSleep, true)},
	{"all clients asleep, their connections end", asleep(allSleep, true)},
	{"some clients asleep, answers wait for them", asleep(someSleep, false)},
	{"all clients asleep, answers wait for them", asleep(allSleep, false)},
}

func oneSleeps(*rand.Rand, int) int     { return 1 }
func someSleep(r *rand.Rand, n int) int { return 1 + r.IntN(n-1) }
func allSleep(_ *rand.Rand, n int) int  { return n }

// asleep stops clients for 20 ms to 2 ttl.
func asleep(how func(*rand.Rand, int) int, ends bool) func(context.Context, *nemesis, *rand.Rand) (string, error) {
	return func(ctx context.Context, n *nemesis, r *rand.Rand) (string, error) {
		chosen := some(r, how(r, len(n.clients)), len(n.clients))
		d := between(r, 20*time.Millisecond, 2*n.plan.TTL)
		before := between(r, 0, d)
		target := fmt.Sprintf("clients %s for %v", list(chosen), d.Round(time.Millisecond))
		signal := func(s syscall.Signal) (err error) {
			for _, c := range chosen {
				err = errors.Join(err, n.clients[c].signal(s))
			}
			return err
		}
		err := signal(syscall.SIGSTOP)
		wait(ctx, before)
		if ends {
			ended := n.wires.cut(chosen)
			n.ended.Add(int64(ended))
			target += fmt.Sprintf(", %d connections ended after %v", ended, before.Round(time.Millisecond))
		}
		wait(ctx, d-before)
		return target, errors.Join(err, signal(syscall.SIGCONT))
	}
}
