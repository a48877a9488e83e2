package once_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/once"
)

// Every replica of a service calls this at startup. One replica migrates the
// database. The others wait for it to finish and then continue.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	for replica := range 3 {
		migration := once.New(q, "migrate to v7")
		err := migration.DoContext(ctx, func(context.Context) error {
			fmt.Println("migrating")
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("replica", replica, "serves")
	}
	_ = once.New(q, "migrate to v7").Reset(ctx) // for the next run of this example
	// Output:
	// migrating
	// replica 0 serves
	// replica 1 serves
	// replica 2 serves
}

// Do mirrors sync.Once: it waits through outages and returns when the work is
// done.
func ExampleOnce_Do() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	here, elsewhere := once.New(q, "make bucket"), once.New(q, "make bucket")
	here.Do(func() { fmt.Println("made") })
	elsewhere.Do(func() { fmt.Println("made again") })
	_ = here.Reset(ctx) // for the next run of this example
	// Output:
	// made
}

// Work that fails is not done. The next caller runs it again.
func ExampleOnce_DoContext() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	o := once.New(q, "import rates")
	err = o.DoContext(ctx, func(context.Context) error { return errors.New("the bank does not answer") })
	fmt.Println(err)
	err = o.DoContext(ctx, func(context.Context) error { return nil })
	fmt.Println(err)
	_ = o.Reset(ctx) // for the next run of this example
	// Output:
	// the bank does not answer
	// <nil>
}

// The work passes the token of its run along with what it writes. The resource
// rejects a run that comes too late.
func ExampleLease() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	o := once.New(q, "migrate to v8")
	var highest uint64 // kept by the database
	err = o.DoContext(ctx, func(ctx context.Context) error {
		token := once.Lease(ctx).Token()
		if token < highest {
			return errors.New("a later run has begun")
		}
		highest = token
		return nil
	})
	fmt.Println(err, highest > 0)
	_ = o.Reset(ctx) // for the next run of this example
	// Output:
	// <nil> true
}

// Func mirrors sync.OnceFunc.
func ExampleFunc() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	warmUp := once.Func(q, "warm up", func() { fmt.Println("warm") })
	warmUp()
	warmUp()
	_ = once.New(q, "warm up").Reset(ctx) // for the next run of this example
	// Output:
	// warm
}

// The first process that needs the shared secret creates it.
func ExampleValue() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	session := once.Value(q, "session key", func() string { return "made by the first" })
	elsewhere := once.Value(q, "session key", func() string { return "made by another" })
	fmt.Println(session())
	fmt.Println(elsewhere())
	_ = once.New(q, "session key").Reset(ctx) // for the next run of this example
	// Output:
	// made by the first
	// made by the first
}

// Two results are shared as one record.
func ExampleValues() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	shard := once.Values(q, "first shard", func() (string, int) { return "eu-1", 7 })
	region, number := shard()
	fmt.Println(region, number)
	_ = once.New(q, "first shard").Reset(ctx) // for the next run of this example
	// Output:
	// eu-1 7
}

// ValueContext is for work that may fail, and for waits that must be bounded.
func ExampleValueContext() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	rate := once.ValueContext(q, "rate of today", func(context.Context) (float64, error) { return 1.25, nil },
		once.KeepFor(24*time.Hour)) // tomorrow there is a new rate
	fmt.Println(rate(ctx))
	_ = once.New(q, "rate of today").Reset(ctx) // for the next run of this example
	// Output:
	// 1.25 <nil>
}

// Status reports the progress of the work and which process did it.
func ExampleOnce_Status() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	o := once.New(q, "backfill")
	before, err := o.Status(ctx)
	if err != nil {
		log.Fatal(err)
	}
	o.Do(func() {})
	after, err := o.Status(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(before.State)
	fmt.Println(after.State, "by this process:", after.PID == os.Getpid())
	_ = o.Reset(ctx) // for the next run of this example
	// Output:
	// not started
	// done by this process: true
}

// Reset marks the work as not done, so that you can run it again on purpose.
func ExampleOnce_Reset() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	o := once.New(q, "rebuild index")
	for range 2 {
		o.Do(func() { fmt.Println("rebuilt") })
		if err := o.Reset(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// rebuilt
	// rebuilt
}

// With WithDurable the work runs only if the record would survive a restart of
// all nodes.
func ExampleWithDurable() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	o := once.New(q, "send invoices", once.WithDurable())
	err = o.DoContext(ctx, func(context.Context) error { return nil })
	fmt.Println(errors.Is(err, once.ErrNotDurable)) // these nodes have no append-only file
	// Output:
	// true
}

// Holder asks the nodes which process is running the work.
func ExampleOnce_Holder() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	o := once.New(q, "find the holder")
	err = o.DoContext(ctx, func(ctx context.Context) error {
		h, err := o.Holder(ctx)
		fmt.Println("this process:", h.PID == os.Getpid(), "waiters:", h.Waiters, err)
		return nil
	})
	fmt.Println(err)
	// Output:
	// this process: true waiters: 0 <nil>
	// <nil>
}
