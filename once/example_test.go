package once_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/redistest"
	"github.com/quorate/quorate/once"
)

// Every replica of a service calls this as it starts. One migrates the
// database, the others wait for that and go on.
func Example() {
	ctx := context.Background()
	urls, stop := servers() // in real life: redis://a:6379, redis://b:6379, redis://c:6379
	defer stop()

	q, err := quorate.Connect(ctx, urls)
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	if err := q.Bootstrap(ctx); err != nil { // once in the life of the servers
		log.Fatal(err)
	}

	for replica := range 3 {
		migration := once.New(q, "migrate to v7")
		err := migration.DoContext(ctx, func(ctx context.Context) error {
			// A database that refuses a token below one it has seen is safe even
			// from a replica that was asleep when it lost its claim.
			return migrate(ctx, once.Lease(ctx).Token())
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("replica", replica, "serves")
	}
	// Output:
	// migrating
	// replica 0 serves
	// replica 1 serves
	// replica 2 serves
}

// A secret that all processes share is made by whoever needs it first.
func ExampleValue() {
	q, stop := quorum()
	defer stop()

	session := once.Value(q, "session key", func() string { return "made by the first" })
	elsewhere := once.Value(q, "session key", func() string { return "made by another" })
	fmt.Println(session())
	fmt.Println(elsewhere())
	// Output:
	// made by the first
	// made by the first
}

// Who did it, and when.
func ExampleOnce_Status() {
	q, stop := quorum()
	defer stop()

	o := once.New(q, "migrate to v7")
	before, err := o.Status(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	o.Do(func() {})
	after, err := o.Status(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(before.State)
	fmt.Println(after.State, "by this process:", after.PID == os.Getpid())
	// Output:
	// not started
	// done by this process: true
}

// migrate stands for what an example does once.
func migrate(context.Context, uint64) error {
	fmt.Println("migrating")
	return nil
}

// servers starts three servers for an example.
func servers() (urls []string, stop func()) {
	c, err := redistest.Run(3)
	if err != nil {
		panic(err)
	}
	return c.URLs(), func() { _ = c.Close() }
}

// quorum is a Quorum on servers of its own, for an example.
func quorum() (*quorate.Quorum, func()) {
	urls, stop := servers()
	q, err := quorate.Connect(context.Background(), urls)
	if err == nil {
		err = q.Bootstrap(context.Background())
	}
	if err != nil {
		panic(err)
	}
	return q, func() { _ = q.Close(); stop() }
}
