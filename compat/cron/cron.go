// Package quoratecron provides a wrapper for jobs of github.com/robfig/cron/v3:
// of all replicas that have the same schedule, one runs a job in each period.
// It uses a quorum of independent Redis masters.
package quoratecron

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/period"
)

// OncePer returns a wrapper that runs a job unless this period has had its run
// or a run is in progress, in any process. The periods have the length every,
// as in [period.New], and OncePer panics if New would. Choose the interval of
// the schedule as the length. If you need no other part of cron than its syntax,
// pass the schedule to [period.NewScheduled] instead. Jobs that share a name share the runs, so wrap
// only one job with each name.
//
// A job that implements [Job] gets the context of the run. It waits for nodes,
// and runs, until ctx ends. Failures are logged.
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

// A Job is a [cron.Job] that also takes a context, which ends when the claim is
// lost. The context carries the start of the period and the lease; see
// [period.Start] and [period.Lease]. An error means that the run has failed,
// see [period.WithRetry]. Run is not called. [OncePer] must be the last wrapper
// of the chain: if another wrapper is between them, OncePer does not recognize
// the Job, and calls Run.
type Job interface {
	cron.Job
	RunContext(ctx context.Context) error
}
