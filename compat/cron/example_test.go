package quoratecron_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/quorate/quorate"
	quoratecron "github.com/quorate/quorate/compat/cron"
	"github.com/quorate/quorate/period"
)

// Every replica has this schedule. Each day, one of them makes the report.
func Example() {
	ctx := context.Background()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")}) // a:6379, b:6379, c:6379
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()

	once := quoratecron.OncePer(ctx, q, "report", 24*time.Hour, cron.DiscardLogger)
	job := cron.NewChain(once).Then(cron.FuncJob(func() { fmt.Println("making the report") }))
	c := cron.New()
	if _, err := c.AddJob("0 3 * * *", job); err != nil {
		log.Fatal(err)
	}
	c.Start()
	defer c.Stop()
	for range 3 { // three replicas on the same night
		job.Run()
	}
	// Output: making the report
}

// You can use a cron expression without cron's scheduler. Every night at two
// o'clock in Berlin, one replica makes the report, even on days when the clocks
// change.
func Example_period() {
	_ = func(ctx context.Context, q *quorate.Quorum, report func(context.Context) error) error {
		nightly, err := cron.ParseStandard("0 2 * * *")
		if err != nil {
			return err
		}
		berlin, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			return err
		}
		p := period.NewScheduled(q, "report", nightly, period.WithZone(berlin))
		for p.Wait(ctx) == nil {
			if _, err := p.Do(ctx, report); err != nil {
				log.Print(err)
			}
		}
		return ctx.Err()
	}
}
