// Command asynq is a sample of asynq's scheduler in a fleet. Every replica
// works on tasks, and the one that leads enqueues the periodic ones: two
// schedulers would enqueue each of them twice.
//
//	QUORATE_NODES=a:6379,b:6379,c:6379 REDIS_ADDR=d:6379 asynq
package main

import (
	"cmp"
	"context"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/hibiken/asynq"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/leader"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	s := service{redis: asynq.RedisClientOpt{Addr: os.Getenv("REDIS_ADDR")}, every: "0 * * * *",
		report: func(_ context.Context, task *asynq.Task) error {
			log.Printf("making a report, as the leader of term %s wants", task.Payload())
			return nil
		}}
	if err := s.run(ctx, q); ctx.Err() == nil {
		log.Print(err)
	}
}

// service is a replica.
type service struct {
	redis  asynq.RedisClientOpt
	every  string // when to make a report, as asynq writes it
	report asynq.HandlerFunc
}

// run works on tasks, and takes part in the election, until ctx ends.
func (s service) run(ctx context.Context, q *quorate.Quorum) error {
	mux := asynq.NewServeMux()
	mux.HandleFunc("report", s.report)
	server := asynq.NewServer(s.redis, asynq.Config{LogLevel: asynq.WarnLevel})
	if err := server.Start(mux); err != nil {
		return err
	}
	defer server.Shutdown()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	err := leader.New(q, "scheduler").Run(ctx,
		leader.Callbacks{OnStartedLeading: func(ctx context.Context, term quorate.Lease) {
			if err := s.schedule(ctx, term); err != nil {
				fail(err)
			}
		}})
	return cmp.Or(context.Cause(ctx), err)
}

// schedule enqueues the periodic tasks until the term ends. Each has the term's
// token. A leader that sleeps through its lease may enqueue one more as it
// wakes up: what a task writes to refuses a lower token than it has seen.
func (s service) schedule(ctx context.Context, term quorate.Lease) error {
	scheduler := asynq.NewScheduler(s.redis, &asynq.SchedulerOpts{LogLevel: asynq.WarnLevel})
	token := strconv.FormatUint(term.Token(), 10)
	if _, err := scheduler.Register(s.every, asynq.NewTask("report", []byte(token))); err != nil {
		return err
	}
	if err := scheduler.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	scheduler.Shutdown() // before the next term begins
	return nil
}
