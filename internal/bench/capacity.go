package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/bench/libraries"
	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// fleet is a node with many connections, holds and waiters on one name. Each
// client is a Quorum with a connection of its own. One process has no processor
// time for as many clients as a node can serve, so most connections only
// subscribe to a channel, as clients do, and then stay silent. The sides are
// not compared with each other: they fill the same node, one after another.
type fleet struct {
	silent, clients, holds, waiters int
	n                               servers.Nodes
	quorums                         []*quorate.Quorum
	held                            []*mutex.Mutex
	subscribed                      []*exec.Cmd // of the silent connections
}

// With this ttl each lease is renewed every 40 s, which is 100 turns of the
// usual length.
const fleetTTL = 2 * time.Minute

// capacity fills a node with the given number of connections, a tenth of which
// are clients. There are ten holds, and two and a half waiters on one name, per
// connection. A server cannot have more connections than open files, and needs
// some files for itself, so there may be fewer connections than asked for.
func capacity(connections int) bench {
	f := &fleet{holds: 10 * connections, waiters: connections * 5 / 2}
	// Of the server itself, and of clients that reconnect before it has closed
	// their old connections.
	const others = 32 + 64
	connections = max(2, min(connections, servers.OpenFiles()-others))
	f.clients = max(1, connections/10)
	f.silent = connections - f.clients
	return bench{
		Name: "capacity", Group: "capacity", Title: "one node",
		Show: []string{
			report.Count, report.EachClient, report.EachNode, report.EachAtRest, report.EachData,
			report.EachNodeCPU, report.ClientShare, report.ServerShare, report.HandOvers,
		},
		open: func(_ context.Context, st *stage) error {
			st.single = true
			// Redis lowers this to what its open files allow.
			c, err := redistest.Run(1, redistest.WithArgs("--maxclients", strconv.Itoa(2*connections+100)))
			if err != nil {
				return err
			}
			f.n = servers.Direct(c)
			st.onClose(func() {
				_ = many(len(f.quorums), func(i int) error {
					if q := f.quorums[i]; q != nil {
						return q.Close()
					}
					return nil
				})
				for _, c := range f.subscribed {
					_, _ = c.Process.Kill(), c.Wait()
				}
				_ = c.Close()
			})
			st.sides = []side{
				{report.ConnectionsName, func(ctx context.Context, d time.Duration) (report.Figures, error) {
					got, err := f.turn(f.silent, f.subscribe)(ctx, d)
					delete(got, report.EachClient) // they are other processes'
					return got, err
				}},
				{report.ClientsName, f.turn(f.clients, f.connect)},
				{report.HoldsName, f.turn(f.holds, f.hold)},
				{report.WaitersName, f.wait},
			}
			return nil
		},
	}
}

type turn = func(ctx context.Context, d time.Duration) (report.Figures, error)

// turn measures what it costs to create number things with fill, and what they
// cost afterwards while nothing else happens except renewals.
func (f *fleet) turn(number int, fill func(context.Context) error) turn {
	return func(ctx context.Context, d time.Duration) (report.Figures, error) {
		before := f.n.Account(ctx)
		got, err := f.fill(ctx, number, fill)
		if err != nil {
			return nil, err
		}
		rest, err := holding(ctx, f.n, 100*d)
		// By now the server has taken back the buffers that are not in use.
		after := f.n.Account(ctx)
		memory := after.Memory - before.Memory
		got[report.EachAtRest] = memory / float64(number)
		got[report.EachData] = (memory - after.Buffers + before.Buffers) / float64(number)
		got[report.ClientShare], got[report.ServerShare] = rest[report.ClientShare], rest[report.ServerShare]
		return got, err
	}
}

func (f *fleet) fill(ctx context.Context, number int,
	fill func(context.Context) error) (report.Figures, error) {
	before, own := f.n.Account(ctx), inUse()
	if err := fill(ctx); err != nil {
		return nil, err
	}
	after, each := f.n.Account(ctx), float64(number)
	return report.Figures{
		report.Count:       each,
		report.EachClient:  (inUse() - own) / each,
		report.EachNode:    (after.Memory - before.Memory) / each,
		report.EachNodeCPU: servers.Spent(before, after, nil, each)[report.ServerCPU],
	}, nil
}

// inUse returns the size of the reachable heap and of all stacks.
func inUse() float64 {
	heap := heapInUse()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return heap + float64(m.StackInuse)
}

// subscribe has processes of their own hold the silent connections, because this
// one has no open files for them.
func (f *fleet) subscribe(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	const each = 10_000
	for first := 0; first < f.silent; first += each {
		c := exec.Command(program, silentCommand, f.n.Ways[0], strconv.Itoa(first),
			strconv.Itoa(min(each, f.silent-first)))
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		if err != nil {
			return err
		}
		if err := c.Start(); err != nil {
			return err
		}
		f.subscribed = append(f.subscribed, c)
		if _, err := out.Read(make([]byte, 1)); err != nil {
			return fmt.Errorf("silent connections: %w", err)
		}
	}
	return ctx.Err()
}

// silentCommand is the command of this program that holds silent connections.
const silentCommand = "silent"

// silent connects to a node as often as args say, subscribes as a client does,
// writes a line and waits until it is killed, or nobody reads what it writes.
func silent(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: %s ADDRESS FIRST NUMBER", silentCommand)
	}
	first, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	sockets := make([]net.Conn, number)
	for i := range sockets {
		if sockets[i], err = net.Dial("tcp", args[0]); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(sockets[i],
			"HELLO 3\r\nSUBSCRIBE quorate:push:a-host:12345:%012d\r\n", first+i); err != nil {
			return err
		}
		if _, err := sockets[i].Read(make([]byte, 1024)); err != nil {
			return err
		}
	}
	fmt.Println("subscribed")
	for { // the server closes them when it ends
		if _, err := sockets[0].Read(make([]byte, 1024)); err != nil {
			return nil
		}
	}
}

func (f *fleet) connect(ctx context.Context) error {
	f.quorums = make([]*quorate.Quorum, f.clients)
	first, err := libraries.Connect(ctx, f.n, timing(fleetTTL, 0)...)
	if err != nil {
		return err
	}
	f.quorums[0] = first
	return many(f.clients-1, func(i int) (err error) {
		f.quorums[1+i], err = libraries.Connect(ctx, f.n, timing(fleetTTL, 0)...)
		return err
	})
}

func (f *fleet) hold(ctx context.Context) error {
	f.held = make([]*mutex.Mutex, f.holds)
	return many(f.holds, func(i int) error {
		f.held[i] = mutex.New(f.quorums[i%len(f.quorums)], fmt.Sprintf("qu held %08d", i))
		return f.held[i].LockContext(ctx)
	})
}

// wait makes all waiters queue for one name, and then lets each of them have it
// in turn.
func (f *fleet) wait(ctx context.Context, d time.Duration) (report.Figures, error) {
	first := mutex.New(f.quorums[0], "qu of all")
	if err := first.LockContext(ctx); err != nil {
		return nil, err
	}
	var served atomic.Int64
	var all sync.WaitGroup
	defer all.Wait() // after cancel
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed atomic.Pointer[error]
	got, err := f.turn(f.waiters, func(ctx context.Context) error {
		for i := range f.waiters {
			all.Go(func() {
				m := mutex.New(f.quorums[i%len(f.quorums)], "qu of all")
				if err := m.LockContext(ctx); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
				served.Add(1)
				m.Unlock()
			})
		}
		return f.queued(ctx, "qu of all", int64(f.waiters)+1)
	})(ctx, d)
	if err != nil {
		return nil, err
	}
	for _, m := range f.held {
		if err := m.Lease().Context().Err(); err != nil {
			return nil, fmt.Errorf("a hold was lost: %w", err)
		}
	}
	began := time.Now()
	first.Unlock()
	all.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	got[report.HandOvers] = float64(served.Load()) / time.Since(began).Seconds()
	return got, nil
}

// queued waits until the given number of claims is queued at the node.
func (f *fleet) queued(ctx context.Context, name string, claims int64) error {
	for {
		n, err := f.n.Node(0).Client().ZCard(ctx, "quorate:{"+name+"}:q").Result()
		if err != nil || n >= claims {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}
