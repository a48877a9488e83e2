package quoratecron_test

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/quorate/quorate"
	quoratecron "github.com/quorate/quorate/compat/cron"
)

// Every replica has this schedule. One of them makes the report of an hour.
func Example() {
	_ = func(ctx context.Context, q *quorate.Quorum, report func()) (*cron.Cron, error) {
		once := quoratecron.OncePer(ctx, q, "report", time.Hour, cron.DefaultLogger)
		c := cron.New()
		_, err := c.AddJob("0 * * * *", cron.NewChain(once).Then(cron.FuncJob(report)))
		return c, err
	}
}
