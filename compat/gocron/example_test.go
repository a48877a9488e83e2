package quorategocron_test

import (
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorate/quorate"
	quorategocron "github.com/quorate/quorate/compat/gocron"
)

// Every replica has this scheduler. One of them makes the report of an hour.
func Example() {
	_ = func(q *quorate.Quorum, report func()) (gocron.Scheduler, error) {
		s, err := gocron.NewScheduler()
		if err != nil {
			return nil, err
		}
		_, err = s.NewJob(gocron.CronJob("0 * * * *", false), gocron.NewTask(report), gocron.WithName("report"),
			gocron.WithDistributedJobLocker(quorategocron.NewLocker(q, time.Hour)))
		return s, err
	}
}
