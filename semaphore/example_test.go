package semaphore_test

import (
	"context"
	"fmt"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/redistest"
	"github.com/quorate/quorate/semaphore"
)

// At most two of the whole fleet encode at a time.
func ExampleWeighted() {
	ctx := context.Background()
	urls, stop := servers()
	defer stop()
	q, err := quorate.Connect(ctx, urls)
	if err != nil {
		panic(err)
	}
	defer q.Close()
	if err := q.Bootstrap(ctx); err != nil { // these servers are brand-new
		panic(err)
	}

	encoders := semaphore.NewWeighted(q, "encoders", 2)
	if err := encoders.Acquire(ctx, 1); err != nil {
		panic(err)
	}
	fmt.Println("another two:", encoders.TryAcquire(2))
	fmt.Println("another one:", encoders.TryAcquire(1))
	encoders.Release(2)
	// Output:
	// another two: false
	// another one: true
}

func servers() (urls []string, stop func()) {
	c, err := redistest.Run(3)
	if err != nil {
		panic(err)
	}
	return c.URLs(), func() { _ = c.Close() }
}
