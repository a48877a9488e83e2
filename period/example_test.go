package period_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/period"
)

// Each replica runs this loop. One of them makes the report of each hour.
func Example() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	ctx, stop := context.WithCancel(ctx) // as signal.NotifyContext does
	defer stop()
	p := period.New(q, "hourly report", time.Hour)
	for p.Wait(ctx) == nil {
		ran, err := p.Do(ctx, func(context.Context) error { return nil })
		fmt.Println(ran, err)
		stop()
	}
	// Output:
	// true <nil>
}

// A scheduler calls Do more often than a period is long. A run that fails is
// repeated at its next call, with WithRetry.
func ExamplePeriod_Do() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	backup := period.New(q, "backup", 10000*24*time.Hour, period.WithRetry())
	for _, result := range []error{errors.New("the disk is full"), nil, nil} {
		ran, err := backup.Do(ctx, func(context.Context) error { return result })
		fmt.Println("ran here:", ran, "error:", err)
	}
	// Output:
	// ran here: true error: the disk is full
	// ran here: true error: <nil>
	// ran here: false error: <nil>
}

// The work knows the period that it is for, and the token to fence it with.
func ExampleStart() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	day := period.New(q, "daily report", 24*time.Hour)
	_, err = day.Do(ctx, func(ctx context.Context) error {
		fmt.Println(period.Start(ctx).Format(time.TimeOnly), period.Lease(ctx).Token() > 0)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 00:00:00 true
}

// Last tells how the newest run has ended, wherever that was.
func ExamplePeriod_Last() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	p := period.New(q, "import", time.Hour)
	if _, err := p.Do(ctx, func(context.Context) error { return nil }); err != nil {
		log.Fatal(err)
	}
	last, err := p.Last(ctx)
	fmt.Println(last.State, time.Since(last.Start) < 2*time.Hour, err)
	// Output:
	// done true <nil>
}
