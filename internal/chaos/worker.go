package main

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/worker"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// workerEnv holds the terms of a client: a process that finds it set is one.
const workerEnv = "QUORATE_CHAOS_WORKER"

// terms are what a client gets at its start.
type terms struct {
	Addrs      []string          // of the nodes that it begins with
	Ways       map[string]string // its own way to each server, by the server's address
	Resource   string
	Log        string
	Prefix     string // of its operations' names
	Seed       uint64
	Epoch      int64 // of the rounds of once
	Work       []string
	Each       int     // goroutines for each name
	Rate       float64 // operations per second that each goroutine tries for
	TTL, Guard time.Duration
	Patience   time.Duration // how long a lock is waited for
	Hold       time.Duration // most holds are shorter
	Control    string
	Calm       bool // all faults have ended
}

// omit leaves out the rule of the library that the control is about, if any.
func (tm *terms) omit() error {
	switch tm.Control {
	case "", controlUnfenced, controlRedsync, controlRival:
		return nil
	}
	return withoutRule(tm.Control)
}

// clientEnv is what a client's work is made of.
type clientEnv struct {
	terms
	quorum  *quorate.Quorum
	clients []redis.UniversalClient
}

// The lines that a client reads and writes. It ends at once when its input
// ends, in whatever way the harness has.
const (
	sayCalm   = "calm"   // to it: all faults have ended
	sayFinish = "finish" // to it: ask for each name once more, and close everything
	sayBye    = "bye"    // from it: everything is closed
	sayDone   = "done"   // from it, each second: holds begun, refusals
)

// asWorker is a client's main, where this process is one, and returns its exit
// status.
func asWorker() (isWorker bool, status int) {
	var tm terms
	isWorker, err := worker.Terms(workerEnv, &tm)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return true, exitVoid
	case isWorker:
		return true, workerMain(tm)
	}
	return false, 0
}

func workerMain(tm terms) int {
	log, err := createLog(tm.Log, tm.Prefix)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos: a client's log:", err)
		return exitVoid
	}
	if err := tm.omit(); err != nil {
		log.trouble(err)
		return exitVoid
	}
	if err := serve(tm, log); err != nil {
		log.trouble(err)
		return exitVoid
	}
	return 0
}

func serve(tm terms, log *oplog) error {
	e := &clientEnv{terms: tm}
	if err := e.connect(); err != nil {
		return err
	}
	var calm atomic.Bool
	calm.Store(tm.Calm)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var all sync.WaitGroup
	for _, kind := range tm.Work {
		for _, name := range names(kind) {
			w := primitives[kind].open(e, name)
			for i := range tm.Each {
				u, err := dialResource(tm.Resource)
				if err != nil {
					return err
				}
				t := &turn{
					kind: kind, name: name, log: log, user: u, ttl: tm.TTL, patience: tm.Patience, hold: tm.Hold,
					rand: chance(tm.Seed, tm.Prefix, name, fmt.Sprint(i)),
				}
				all.Go(func() {
					defer u.close()
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
	os.Exit(exitVoid) // the harness is gone
	return nil
}

// connect makes what the client reaches the nodes by.
func (e *clientEnv) connect() (err error) {
	ours := !slices.Contains(e.Work, rival)
	for _, addr := range e.Addrs {
		// Nodes that enter the set later are connected to with the same
		// options, so by the client's own way, too.
		o := &redis.Options{Addr: addr, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, e.Ways[addr])
		}}
		if ours {
			e.clients = append(e.clients, redis.NewClient(o))
		} else {
			e.clients = append(e.clients, connectRival(o))
		}
	}
	if !ours {
		return nil
	}
	opts := []quorate.Option{
		e2e.Guarded(e.TTL, e.Guard), quorate.WithRetention(e.Guard), quorate.WithLogger(slog.New(slog.DiscardHandler)),
	}
	if chance(e.Seed, e.Prefix, "minimal fanout").IntN(2) == 0 {
		opts = append(opts, e2e.MinimalFanout())
	}
	e.quorum, err = quorate.New(e.clients, opts...)
	return err
}

// tell says each second how much has been done.
func tell(ctx context.Context, log *oplog) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			fmt.Println(sayDone, log.done.Load(), log.failed.Load())
		}
	}
}

// close ends the client as a well-behaved program does, and sees that nothing
// of the library is left running.
func (e *clientEnv) close(log *oplog) error {
	if e.quorum != nil {
		if err := e.quorum.Close(); err != nil {
			log.write(event{T: now(), E: evLate, Err: err.Error()})
		}
	}
	for _, c := range e.clients {
		_ = c.Close()
	}
	if err := goleak.Find(); err != nil {
		log.trouble(fmt.Errorf("left running: %w", err))
	}
	fmt.Println(sayDone, log.done.Load(), log.failed.Load())
	fmt.Println(sayBye)
	return log.close()
}
