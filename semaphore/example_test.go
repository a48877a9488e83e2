package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/semaphore"
)

// Two permits for the whole fleet: no more than two films are encoded at the
// same time.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	here, elsewhere := semaphore.NewWeighted(q, "encoders", 2), semaphore.NewWeighted(q, "encoders", 2)
	if err := here.Acquire(ctx, 1); err != nil {
		log.Fatal(err)
	}
	fmt.Println("another two:", elsewhere.TryAcquire(2))
	fmt.Println("another one:", elsewhere.TryAcquire(1))
	elsewhere.Release(1)
	here.Release(1)
	// Output:
	// another two: false
	// another one: true
}

// A request for more permits than the semaphore has fails immediately, because
// it could never succeed.
func ExampleWeighted_Acquire() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	encoders := semaphore.NewWeighted(q, "encoders", 2)
	err = encoders.Acquire(ctx, 3)
	fmt.Println(errors.Is(err, quorate.ErrInvalid))
	// Output:
	// true
}

// A lease has its own token and context, and has its own Release.
func ExampleWeighted_AcquireLease() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	encoders := semaphore.NewWeighted(q, "encoders", 2)
	lease, err := encoders.AcquireLease(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held:", lease.Context().Err() == nil, lease.Token() > 0)
	fmt.Println("released:", lease.Release())
	fmt.Println("over:", errors.Is(context.Cause(lease.Context()), quorate.ErrReleased))
	// Output:
	// held: true true
	// released: <nil>
	// over: true
}

// TryAcquireLease reports why there is no lease: too few permits, or too few
// nodes.
func ExampleWeighted_TryAcquireLease() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	encoders := semaphore.NewWeighted(q, "encoders", 2)
	if err := encoders.Acquire(ctx, 2); err != nil {
		log.Fatal(err)
	}
	_, err = encoders.TryAcquireLease(ctx, 1)
	fmt.Println("all in use:", errors.Is(err, quorate.ErrHeld))
	encoders.Release(2)
	// Output:
	// all in use: true
}

// Resize changes the number for the whole fleet. Processes that still pass two
// to NewWeighted share four permits.
func ExampleWeighted_Resize() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	here, elsewhere := semaphore.NewWeighted(q, "GPUs", 2), semaphore.NewWeighted(q, "GPUs", 2)
	if err := here.Resize(ctx, 4); err != nil {
		log.Fatal(err)
	}
	n, err := elsewhere.Size(ctx)
	fmt.Println(n, err)
	fmt.Println(elsewhere.TryAcquire(3))
	elsewhere.Release(3)
	// Output:
	// 4 <nil>
	// true
}

// Holder asks the nodes which process has held permits longest.
func ExampleWeighted_Holder() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	s := semaphore.NewWeighted(q, "encoders", 16)
	if err := s.Acquire(ctx, 3); err != nil {
		log.Fatal(err)
	}
	h, err := s.Holder(ctx)
	fmt.Println("this process:", h.PID == os.Getpid(), "holders:", h.Holders, "waiters:", h.Waiters, err)
	s.Release(3)
	// Output:
	// this process: true holders: 1 waiters: 0 <nil>
}

// Available returns how many permits are free across the fleet right now, for a
// metric or a dashboard.
func ExampleWeighted_Available() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	s := semaphore.NewWeighted(q, "encoders", 16)
	if err := s.Acquire(ctx, 3); err != nil {
		log.Fatal(err)
	}
	n, err := s.Available(ctx)
	fmt.Println(n, err)
	s.Release(3)
	// Output:
	// 13 <nil>
}
