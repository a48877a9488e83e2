package quorate_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/redistest"
	"github.com/quorate/quorate/mutex"
)

// Three independent masters, of which any one may fail.
func Example() {
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

	report, err := q.Check(ctx)
	fmt.Println("ready:", report.Ready, "needed:", report.Quorum, err)

	m, other := mutex.New(q, "invoices"), mutex.New(q, "invoices")
	m.Lock()
	soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	err = other.LockContext(soon)
	fmt.Println("held:", errors.Is(err, quorate.ErrHeld), "too late:", errors.Is(err, context.DeadlineExceeded))
	m.Unlock()
	// Output:
	// ready: 3 needed: 2 <nil>
	// held: true too late: true
}

func servers() (urls []string, stop func()) {
	c, err := redistest.Run(3)
	if err != nil {
		panic(err)
	}
	return c.URLs(), func() { _ = c.Close() }
}
