package client

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/redis/go-redis/v9"
)

// Terms are what a client gets at its start.
type Terms struct {
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

// Omit leaves out the rule of the library that the control is about, if any.
func (tm *Terms) Omit() error {
	switch tm.Control {
	case "", ControlUnfenced, ControlRedsync, ControlRival:
		return nil
	}
	return WithoutRule(tm.Control)
}

// List is what a rival has in one of its lives.
type List struct {
	Addrs []string
	At    int64 // when the harness gave it out: the set that counted then
}

// workerEnv holds the terms of a client: a process that finds it set is one.
const workerEnv = "QUORATE_CHAOS_WORKER"

// The lines that a client reads and writes. It ends at once when its input
// ends, in whatever way the harness has.
const (
	sayCalm   = "calm"   // to it: all faults have ended
	sayFinish = "finish" // to it: ask for each name once more, and close everything
	sayBye    = "bye"    // from it: everything is closed
	sayDone   = "done"   // from it, each second: holds begun, refusals
)

// Env is what a client's work is made of.
type Env struct {
	Terms
	Quorum  *quorate.Quorum
	clients []redis.UniversalClient
}

// Connect makes what the client reaches the nodes by.
func (e *Env) Connect() (err error) {
	ours := !slices.Contains(e.Work, record.Rival)
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
	if record.Chance(e.Seed, e.Prefix, "minimal fanout").IntN(2) == 0 {
		opts = append(opts, e2e.MinimalFanout())
	}
	e.Quorum, err = quorate.New(e.clients, opts...)
	return err
}

// connectRival is a client as redsync needs it: one whose requests end with
// their context.
func connectRival(o *redis.Options) *redis.Client {
	o.ContextTimeoutEnabled, o.MaxRetries = true, -1
	return redis.NewClient(o)
}
