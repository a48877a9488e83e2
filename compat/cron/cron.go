// Package quoratecron has a wrapper for jobs of github.com/robfig/cron/v3: of
// all replicas that have the same schedule, one runs a job in each period, on a
// quorum of independent Redis masters.
package quoratecron

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/period"
)

// OncePer returns a wrapper that runs a job unless this period has had its run,
// or a run is under way, in whatever process. Periods have that length, and are
// those of [period.New]: it panics as that does. Choose the interval of the
// schedule. Jobs that share a name share the runs, so wrap one job with each.
//
// A job that implements [Job] gets the context of the run. It waits for nodes,
// and runs, until ctx ends. What goes wrong is logged.
func OncePer(ctx context.Context, q *quorate.Quorum, name string, every time.Duration, log cron.Logger, opts ...quorate.PeriodOption) cron.JobWrapper {
	p := period.New(q, name, every, opts...)
	return func(j cron.Job) cron.Job {
		return cron.FuncJob(func() {
			ran, err := p.Do(ctx, func(ctx context.Context) error {
				if own, is := j.(Job); is {
					return own.RunContext(ctx)
				}
				j.Run()
				return nil
			})
			switch {
			case err != nil:
				log.Error(err, "quorate", "job", name, "ran", ran)
			case !ran:
				log.Info("skip", "job", name)
			}
		})
	}
}

// A Job is a [cron.Job] that wants a context, which ends when the claim is
// lost. It has the start of the period and the lease, see [period.Start] and
// [period.Lease]. An error says that the run has failed, see
// [period.WithRetry]. Run is not called. [OncePer] must be the last wrapper of
// the chain: behind another one it sees no Job, and calls Run.
type Job interface {
	cron.Job
	RunContext(ctx context.Context) error
}
