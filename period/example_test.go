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

// Every replica runs this loop. Each hour, one of them makes the report.
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

// A scheduler calls Do several times per period. With WithRetry, its next call
// repeats a run that failed.
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

// The work can get its period and the token to fence with.
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

// nightly is due at 2 o'clock every night. You can also use a schedule from
// github.com/robfig/cron/v3: cron.ParseStandard("0 2 * * *").
type nightly struct{}

func (nightly) Next(t time.Time) time.Time {
	at := time.Date(t.Year(), t.Month(), t.Day(), 2, 0, 0, 0, t.Location())
	if !at.After(t) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}

// Every replica runs this loop. Every night at two o'clock in Berlin, one of
// them makes the backup. If all of them were down at that time, the first one
// to come back makes it.
func ExampleNewScheduled() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		log.Fatal(err)
	}

	ctx, stop := context.WithTimeout(ctx, time.Second) // as signal.NotifyContext does
	defer stop()
	p := period.NewScheduled(q, "backup", nightly{}, period.WithZone(berlin), period.WithCatchUp())
	for p.Wait(ctx) == nil {
		_, err := p.Do(ctx, func(ctx context.Context) error {
			log.Print("the backup of ", period.Start(ctx).In(berlin))
			return nil
		})
		if err != nil {
			log.Print(err)
		}
	}
	// Output:
}

// Last reports how the latest run ended, no matter which process it ran in.
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
