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

// Terms are what a client process is given at its start.
type Terms struct {
	Addrs      []string          // the nodes that it starts with
	Ways       map[string]string // the proxy that it uses for each server, by the server's address
	Resource   string
	Log        string
	Prefix     string // prefix of its operations' names
	Seed       uint64
	Epoch      int64 // start of the rounds of once
	Work       []string
	Each       int     // goroutines per name
	Rate       float64 // operations per second that each goroutine aims for
	TTL, Guard time.Duration
	Patience   time.Duration // how long to wait for a lock
	Hold       time.Duration // most holds are shorter
	Control    string
	Calm       bool // all faults have ended
}

// Omit leaves out the rule of the library that the control names, if it names
// one.
func (tm *Terms) Omit() error {
	switch tm.Control {
	case "", ControlUnfenced, ControlRedsync, ControlRival:
		return nil
	}
	return WithoutRule(tm.Control)
}

// List is the list of nodes that a rival uses in one of its lives.
type List struct {
	Addrs []string
	At    int64 // when the harness handed it out: it was the current set at that time
}

// workerEnv names the variable that holds a client's terms. A process in which
// it is set is a client.
const workerEnv = "QUORATE_CHAOS_WORKER"

// The lines that a client reads and writes. It exits at once when its input
// ends, however the harness ended.
const (
	sayCalm   = "calm"   // to the client: all faults have ended
	sayFinish = "finish" // to the client: lock each name once more, then close everything
	sayBye    = "bye"    // from the client: everything is closed
	sayDone   = "done"   // from the client, each second: holds begun, refusals
)

// Env is what a client's work uses.
type Env struct {
	Terms
	Quorum  *quorate.Quorum
	clients []redis.UniversalClient
}

// Connect creates the connections to the nodes.
func (e *Env) Connect() (err error) {
	ours := !slices.Contains(e.Work, record.Rival)
	for _, addr := range e.Addrs {
		// Nodes that join the set later are dialed with the same options, so
		// also through the client's own proxies.
		o := &redis.Options{Addr: addr, Dialer: func(ctx context.Context, network, addr string) (net.Conn,
			error) {
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
		e2e.Guarded(e.TTL, e.Guard), quorate.WithRetention(e.Guard),
		quorate.WithLogger(slog.New(slog.DiscardHandler)),
	}
	if record.Chance(e.Seed, e.Prefix, "minimal fanout").IntN(2) == 0 {
		opts = append(opts, e2e.MinimalFanout())
	}
	e.Quorum, err = quorate.New(e.clients, opts...)
	return err
}

// connectRival returns a Redis client as redsync needs it: requests end with
// their context.
func connectRival(o *redis.Options) *redis.Client {
	o.ContextTimeoutEnabled, o.MaxRetries = true, -1
	return redis.NewClient(o)
}
