package leader_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/redistest"
	"github.com/quorate/quorate/leader"
)

// A fleet of workers of which one at a time hands out the work. Every worker runs
// the same lines; here all of them are in one process.
func Example() {
	ctx, shutdown := context.WithCancel(context.Background())
	defer shutdown()
	q, stop := quorum(ctx)
	defer stop()

	jobs := make(chan int)
	var fleet sync.WaitGroup
	for _, id := range []string{"worker-1", "worker-2", "worker-3"} {
		fleet.Go(func() { // every worker works
			for {
				select {
				case n := <-jobs:
					fmt.Println("job", n, "is done")
				case <-ctx.Done():
					return
				}
			}
		})
		fleet.Go(func() { // and one of them is the scheduler
			scheduler := leader.New(q, "scheduler", id)
			err := scheduler.Run(ctx, leader.Callbacks{
				OnStartedLeading: func(ctx context.Context, lease quorate.Lease) {
					// What the scheduler writes goes with lease.Token(), so that one that
					// was asleep when it lost the leadership cannot spoil it.
					for n := range 3 {
						select {
						case jobs <- n + 1:
						case <-ctx.Done(): // the leadership is lost, or the fleet shuts down
							return
						}
					}
					shutdown()
				},
			})
			if !errors.Is(err, context.Canceled) {
				fmt.Println(err)
			}
		})
	}
	fleet.Wait()
	// Unordered output:
	// job 1 is done
	// job 2 is done
	// job 3 is done
}

// Those who need the leader follow it, and go on when another one leads.
func ExampleElection_Observe() {
	ctx := context.Background()
	q, stop := quorum(ctx)
	defer stop()
	a, b := leader.New(q, "scheduler", "a"), leader.New(q, "scheduler", "b")

	if err := a.Campaign(ctx, "http://10.0.0.1:8080"); err != nil {
		fmt.Println(err)
	}
	next := make(chan error, 1)
	for l, err := range leader.New(q, "scheduler", "").Observe(ctx) {
		switch {
		case errors.Is(err, leader.ErrNoLeader):
			continue // the next one is about to lead
		case err != nil:
			fmt.Println("nobody knows:", err)
			continue
		}
		fmt.Println(l.ID, "is at", l.Value)
		if l.ID == "b" {
			break
		}
		go func() { next <- b.Campaign(ctx, "http://10.0.0.2:8080") }()
		if err := a.Resign(ctx); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(<-next, b.Resign(ctx))
	_, err := a.Leader(ctx)
	fmt.Println(errors.Is(err, leader.ErrNoLeader), err)
	// Output:
	// a is at http://10.0.0.1:8080
	// b is at http://10.0.0.2:8080
	// <nil> <nil>
	// true quorate: leader "scheduler": no leader
}

// quorum is a Quorum on servers of its own.
func quorum(ctx context.Context) (*quorate.Quorum, func()) {
	c, err := redistest.Run(3)
	if err != nil {
		panic(err)
	}
	q, err := quorate.Connect(ctx, c.URLs())
	if err == nil {
		err = q.Bootstrap(ctx) // once in the life of the servers
	}
	if err != nil {
		panic(err)
	}
	return q, func() { _ = q.Close(); _ = c.Close() }
}
