package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/leader"
)

// In a fleet of workers, one worker at a time hands out the work. Every worker
// runs the same code. In this example they all run in one process.
func Example() {
	ctx, shutdown := context.WithCancel(context.Background())
	defer shutdown()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

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
			scheduler := leader.New(q, "scheduler", leader.WithID(id))
			err := scheduler.Run(ctx, leader.Callbacks{
				OnStartedLeading: func(ctx context.Context, lease quorate.Lease) {
					// Attach lease.Token() to what the scheduler writes, so
					// that a scheduler that was asleep when it lost the
					// leadership can do no damage.
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

// Run campaigns, leads, and campaigns again when the term is over. With
// WithOneTerm, it leads for a single term.
func ExampleElection_Run() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	e := leader.New(q, "mailer", leader.WithID("host-a"), leader.WithOneTerm())
	err = e.Run(ctx, leader.Callbacks{
		OnStartedLeading: func(ctx context.Context, lease quorate.Lease) {
			fmt.Println("leading:", ctx.Err() == nil, lease.Token() > 0)
		},
		OnStoppedLeading: func(err error) { fmt.Println("stopped:", err) },
	})
	fmt.Println(err)
	// Output:
	// leading: true true
	// stopped: <nil>
	// <nil>
}

// Campaign and Resign are for processes that decide for themselves how long to
// lead.
func ExampleElection_Campaign() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	e := leader.New(q, "mailer", leader.WithID("host-a"))
	if err := e.Campaign(ctx, "http://10.0.0.1:8080"); err != nil {
		log.Fatal(err)
	}
	fmt.Println("leading:", e.Lease().Context().Err() == nil)
	fmt.Println("resigned:", e.Resign(ctx))
	// Output:
	// leading: true
	// resigned: <nil>
}

// A leader hands over to the candidate that an operator has chosen.
func ExampleElection_TransferTo() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	here, there := leader.New(q, "mailer", leader.WithID("host-a")),
		leader.New(q, "mailer", leader.WithID("host-b"))
	if err := here.Campaign(ctx, ""); err != nil {
		log.Fatal(err)
	}
	fmt.Println(errors.Is(here.TransferTo(ctx, "host-b"), leader.ErrNoCandidate)) // it is not waiting yet
	led := make(chan error)
	go func() { led <- there.Campaign(ctx, "") }()
	for errors.Is(here.TransferTo(ctx, "host-b"), leader.ErrNoCandidate) {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println(<-led, here.Lease() == nil, there.Lease() != nil)
	_ = there.Resign(ctx)
	// Output:
	// true
	// <nil> true true
}

// The process in the first data center should lead when it can. A leader
// elsewhere looks between two pieces of work, and hands over.
func ExampleElection_Outranked() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// a:6379, b:6379, c:6379.
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}, quorate.WithTTL(time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	second := leader.New(q, "mailer", leader.WithID("dc-2"), leader.WithPriority(0), leader.WithOneTerm())
	first := leader.New(q, "mailer", leader.WithID("dc-1"), leader.WithPriority(1))
	led := make(chan error)
	err = second.Run(ctx, leader.Callbacks{
		OnStartedLeading: func(work context.Context, _ quorate.Lease) {
			go func() { led <- first.Campaign(ctx, "") }() // it has just come up
			for work.Err() == nil {
				if better, err := second.Outranked(work); err == nil && better {
					fmt.Println("a better candidate is waiting")
					return
				}
				time.Sleep(10 * time.Millisecond) // a piece of work
			}
		},
	})
	fmt.Println(err, <-led)
	_ = first.Resign(ctx)
	// Output:
	// a better candidate is waiting
	// <nil> <nil>
}

// The leader's address changes during its term.
func ExampleElection_Proclaim() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	e := leader.New(q, "mailer", leader.WithID("host-a"))
	if err := e.Campaign(ctx, "http://10.0.0.1:8080"); err != nil {
		log.Fatal(err)
	}
	if err := e.Proclaim(ctx, "http://10.0.0.1:9090"); err != nil {
		log.Fatal(err)
	}
	l, err := e.Leader(ctx)
	fmt.Println(l.Value, l.Term == e.Lease().Token(), err)
	_ = e.Resign(ctx)
	// Output:
	// http://10.0.0.1:9090 true <nil>
}

// The lease of a term has a token, which the leader attaches to its writes.
func ExampleElection_Lease() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	e := leader.New(q, "mailer", leader.WithID("host-a"))
	fmt.Println("not leading:", e.Lease() == nil)
	if err := e.Campaign(ctx, ""); err != nil {
		log.Fatal(err)
	}
	term := e.Lease()
	fmt.Println("a term with a token:", term.Token() > 0)
	_ = e.Resign(ctx)
	fmt.Println("over:", errors.Is(context.Cause(term.Context()), quorate.ErrReleased))
	// Output:
	// not leading: true
	// a term with a token: true
	// over: true
}

// Leader asks once. If there is no leader, it returns ErrNoLeader.
func ExampleElection_Leader() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	_, err = leader.New(q, "mailer").Leader(ctx)
	fmt.Println(errors.Is(err, leader.ErrNoLeader))
	// Output:
	// true
}

// A client follows the leader, and switches when another process takes over.
func ExampleElection_Observe() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	a, b := leader.New(q, "indexer", leader.WithID("a")), leader.New(q, "indexer", leader.WithID("b"))
	if err := a.Campaign(ctx, "http://10.0.0.1:8080"); err != nil {
		log.Fatal(err)
	}
	next := make(chan error, 1)
	go func() { next <- b.Campaign(ctx, "http://10.0.0.2:8080") }() // behind a
	for l, err := range leader.New(q, "indexer").Observe(ctx) {
		switch {
		case errors.Is(err, leader.ErrNoLeader):
			continue // the next one is about to lead
		case err != nil:
			fmt.Println("unknown:", err)
			continue
		}
		fmt.Println(l.ID, "is at", l.Value)
		if l.ID == "b" {
			break
		}
		if err := a.Resign(ctx); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(<-next, b.Resign(ctx))
	// Output:
	// a is at http://10.0.0.1:8080
	// b is at http://10.0.0.2:8080
	// <nil> <nil>
}

// HealthCheck is for a liveness probe: a leader that carries on after the end
// of its term should be restarted.
func ExampleElection_HealthCheck() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	e := leader.New(q, "mailer", leader.WithID("host-a"))
	fmt.Println(e.HealthCheck(20 * time.Second))
	// Output:
	// <nil>
}

// Any participant can call Holder to see which process leads and how many are
// waiting.
func ExampleElection_Holder() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	e := leader.New(q, "mailer")
	if err := e.Campaign(ctx, ""); err != nil {
		log.Fatal(err)
	}
	h, err := leader.New(q, "mailer").Holder(ctx)
	fmt.Println("this process:", h.PID == os.Getpid(), "waiters:", h.Waiters, err)
	_ = e.Resign(ctx)
	// Output:
	// this process: true waiters: 0 <nil>
}
