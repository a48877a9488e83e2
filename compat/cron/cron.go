// Package quoratecron provides a job wrapper for github.com/robfig/cron/v3: in
// each period, only one of the replicas with the same schedule runs the job. It
// uses a quorum of independent Redis masters.
package quoratecron

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/period"
)

// OncePer returns a wrapper that runs a job unless this period has already had
// its run or a run is in progress, in any process. Periods have the length
// every, as in [period.New], which should be the interval of the schedule.
// OncePer panics if New would. If all you need from cron is its syntax, pass
// the schedule to [period.NewScheduled] instead. Jobs with the same name share
// their runs, so wrap only one job with each name.
//
// A job that implements [Job] gets the context of the run. When ctx is done,
// the wrapper stops waiting for nodes and the context of the run ends. Failures
// are logged.
func OncePer(ctx context.Context, q *quorate.Quorum, name string, every time.Duration, log cron.Logger,
	opts ...quorate.PeriodOption) cron.JobWrapper {
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

// A Job is a [cron.Job] that also takes a context, which ends if the claim is
// lost. The context carries the start of the period and the lease; see
// [period.Start] and [period.Lease]. An error means that the run has failed;
// see [period.WithRetry]. Run is not called. [OncePer] must be the last wrapper
// in the chain: if there is another wrapper between OncePer and the Job,
// OncePer does not recognize the Job and calls Run.
type Job interface {
	cron.Job
	RunContext(ctx context.Context) error
}
