package quorategocron_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorate/quorate"
	quorategocron "github.com/quorate/quorate/compat/gocron"
)

// Every replica has this scheduler. Each day, one of them makes the report.
func Example() {
	// a:6379, b:6379, c:6379.
	q, err := quorate.Connect(context.Background(), []string{os.Getenv("QUORATE_NODES")})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	s, err := gocron.NewScheduler()
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Shutdown() }()

	made := make(chan struct{})
	report := func() { fmt.Println("making the report"); close(made) }
	job, err := s.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(report), gocron.WithName("report"),
		gocron.WithDistributedJobLocker(quorategocron.NewLocker(q, 24*time.Hour)))
	if err != nil {
		log.Fatal(err)
	}
	s.Start()
	for range 3 { // three replicas on the same night
		if err := job.RunNow(); err != nil {
			log.Fatal(err)
		}
	}
	<-made
	// Output: making the report
}
