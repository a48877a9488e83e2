package client

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/testkit/worker"
	"go.uber.org/goleak"
)

// AsWorker runs a client's main if this process is a client, and returns its
// exit status.
func AsWorker() (isWorker bool, status int) {
	var tm Terms
	isWorker, err := worker.Terms(workerEnv, &tm)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return true, record.ExitVoid
	case isWorker:
		return true, workerMain(tm)
	}
	return false, 0
}

func workerMain(tm Terms) int {
	log, err := record.CreateLog(tm.Log, tm.Prefix)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos: a client's log:", err)
		return record.ExitVoid
	}
	if err := tm.Omit(); err != nil {
		log.Trouble(err)
		return record.ExitVoid
	}
	if err := serve(tm, log); err != nil {
		log.Trouble(err)
		return record.ExitVoid
	}
	return 0
}

func serve(tm Terms, log *record.Oplog) error {
	e := &Env{Terms: tm}
	if err := e.Connect(); err != nil {
		return err
	}
	var calm atomic.Bool
	calm.Store(tm.Calm)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var all sync.WaitGroup
	for _, kind := range tm.Work {
		for _, name := range Names(kind) {
			w := primitives[kind].open(e, name)
			for i := range tm.Each {
				u, err := record.DialResource(tm.Resource)
				if err != nil {
					return err
				}
				t := &turn{
					kind: kind, name: name, log: log, user: u, ttl: tm.TTL, patience: tm.Patience,
					hold: tm.Hold,
					rand: record.Chance(tm.Seed, tm.Prefix, name, fmt.Sprint(i)),
				}
				all.Go(func() {
					defer u.Close()
					for last := false; !last; t.pause(ctx, tm.Rate) {
						last, t.calm = ctx.Err() != nil, calm.Load()
						w.do(context.Background(), t)
					}
				})
			}
		}
	}
	all.Go(func() { tell(ctx, log) })
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		switch in.Text() {
		case sayCalm:
			calm.Store(true)
		case sayFinish:
			cancel()
			all.Wait()
			return e.close(log)
		}
	}
	os.Exit(record.ExitVoid) // the harness has ended
	return nil
}

// tell reports each second how much has been done.
func tell(ctx context.Context, log *record.Oplog) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			fmt.Println(sayDone, log.Done.Load(), log.Failed.Load())
		}
	}
}

// close ends the client as a well-behaved program does, and checks that nothing
// of the library is left running.
func (e *Env) close(log *record.Oplog) error {
	if e.Quorum != nil {
		if err := e.Quorum.Close(); err != nil {
			log.Write(record.Event{T: record.Now(), E: record.EvLate, Err: err.Error()})
		}
	}
	for _, c := range e.clients {
		_ = c.Close()
	}
	if err := goleak.Find(); err != nil {
		log.Trouble(fmt.Errorf("left running: %w", err))
	}
	fmt.Println(sayDone, log.Done.Load(), log.Failed.Load())
	fmt.Println(sayBye)
	return log.Close()
}
