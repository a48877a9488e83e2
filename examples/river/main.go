// Command river is a sample of a queue of River whose jobs run one at a time
// over all replicas: MaxWorkers counts those of one client, so only the replica
// that leads has a client that works on the queue.
//
//	QUORATE_NODES=a:6379,b:6379,c:6379 DATABASE_URL=postgres://… river
package main

import (
	"cmp"
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/leader"
)

// Number is a job: it gives an invoice its number.
type Number struct {
	Order string `json:"order"`
}

// Kind names the jobs for River.
func (Number) Kind() string { return "number" }

const queue = "numbers"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	q, err := quorate.Connect(ctx, []string{os.Getenv("QUORATE_NODES")})
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	db, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	s := service{db: db, number: func(_ context.Context, order string, token uint64) error {
		log.Printf("numbering %s, with token %d", order, token)
		return nil
	}}
	if err := s.run(ctx, q); ctx.Err() == nil {
		log.Print(err)
	}
}

// service is a replica.
type service struct {
	db     *pgxpool.Pool
	number func(ctx context.Context, order string, token uint64) error
}

// run takes part in the election until ctx ends.
func (s service) run(ctx context.Context, q *quorate.Quorum) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	err := leader.New(q, queue).Run(ctx,
		leader.Callbacks{OnStartedLeading: func(ctx context.Context, term quorate.Lease) {
			if err := s.work(ctx, term); err != nil {
				fail(err)
			}
		}})
	return cmp.Or(context.Cause(ctx), err)
}

// work works on the queue until the term ends. That ends the context of the job
// under way, and River runs it again. What the job writes to refuses a lower
// token than it has seen, in case the replica slept through its lease.
func (s service) work(ctx context.Context, term quorate.Lease) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[Number]) error {
		return s.number(ctx, job.Args.Order, term.Token())
	}))
	c, err := river.NewClient(riverpgxv5.New(s.db), &river.Config{
		Queues:  map[string]river.QueueConfig{queue: {MaxWorkers: 1}},
		Workers: workers,
	})
	if err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	<-c.Stopped() // before the next term begins
	return nil
}
