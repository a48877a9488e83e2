package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/bench/libraries"
	"github.com/quorate/quorate/internal/bench/report"
	"github.com/quorate/quorate/internal/bench/servers"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/semaphore"
)

const (
	// countedNames is the number of names in one count.
	countedNames = 256
	// countedTurns is how often a count of requests is repeated, because in a
	// single turn Lua's table of strings may happen to grow, which costs 1 to
	// 2%.
	countedTurns = 4
	// So long that no lease ends or is renewed while the slow server works.
	countedTTL = 10 * time.Minute
)

// counting starts, for one stage, a server whose instructions are counted.
func counting(ctx context.Context, st *stage) (*servers.Counted, error) {
	st.single = true
	n, err := servers.Count(ctx)
	if err != nil {
		return nil, err
	}
	st.onClose(func() { _ = n.Close() })
	return n, nil
}

// countedLocks counts the server's instructions for a lock and its unlock.
func countedLocks() bench {
	return bench{
		Name: "instructions/lock", Group: "instructions", Title: "1 client, N=1",
		Show: []string{report.LockCount, report.UnlockCount, report.BothCount},
		open: func(ctx context.Context, st *stage) error {
			n, err := counting(ctx, st)
			if err != nil {
				return err
			}
			for _, l := range libraries.Of(libraries.Working) {
				switch l.Name {
				case report.AsyncName, report.FastName, report.SyncName:
					continue
				}
				if st.libs.MatchString(l.Name) {
					st.sides = append(st.sides, side{l.Name,
						func(ctx context.Context, _ time.Duration) (report.Figures, error) {
							return countLocks(ctx, n, l)
						}})
				}
			}
			return nil
		},
	}
}

// countLocks makes one caller lock names that were used before, one after
// another, and then unlock them.
func countLocks(ctx context.Context, n *servers.Counted, l libraries.Library) (report.Figures, error) {
	if l.Name == report.QuorateName {
		l.Open = libraries.OpenQuorate(false, long()...)
	}
	c, err := l.Open(ctx, n.Nodes)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var ms []libraries.Locker
	for i := range countedNames {
		ms = append(ms, c.Mutex(fmt.Sprintf("%.2s counted %08d", l.Name, i)))
	}
	each := func(f func(libraries.Locker) error) func() error {
		return func() error {
			for _, m := range ms {
				if err := f(m); err != nil {
					return err
				}
			}
			return nil
		}
	}
	lock := each(func(m libraries.Locker) error { return m.Lock(ctx) })
	unlock := each(func(m libraries.Locker) error { return m.Unlock(ctx) })
	if err := errors.Join(lock(), unlock()); err != nil {
		return nil, err
	}
	locks, err := n.Of(ctx, lock)
	if err != nil {
		return nil, err
	}
	unlocks, err := n.Of(ctx, unlock)
	f := report.Figures{report.LockCount: thousands(locks), report.UnlockCount: thousands(unlocks)}
	f[report.BothCount] = f[report.LockCount] + f[report.UnlockCount]
	return f, err
}

// countedPermits is what it costs the server that a semaphore is acquired and
// released, while k of its permits are in use.
func countedPermits(k int) bench {
	return bench{
		Name: "instructions/permit/" + strconv.Itoa(k), Group: "instructions",
		Title: fmt.Sprintf("1 client, N=1, %d permits already in use", k), Show: []string{report.BothCount},
		open: func(ctx context.Context, st *stage) error {
			n, err := counting(ctx, st)
			if err != nil {
				return err
			}
			q, err := libraries.Connect(ctx, n.Nodes, long()...)
			if err != nil {
				return err
			}
			st.onClose(func() { _ = q.Close() })
			s := semaphore.NewWeighted(q, "permits", int64(k)+1)
			for range k {
				if err := s.Acquire(ctx, 1); err != nil {
					return err
				}
			}
			use := func() error {
				for range countedNames {
					if err := s.Acquire(ctx, 1); err != nil {
						return err
					}
					s.Release(1)
				}
				return nil
			}
			st.sides = []side{{report.QuorateName, func(ctx context.Context, _ time.Duration) (report.Figures, error) {
				if err := use(); err != nil { // to warm up
					return nil, err
				}
				counted, err := n.Of(ctx, use)
				return report.Figures{report.BothCount: thousands(counted)}, err
			}}}
			return nil
		},
	}
}

func thousands(counted float64) float64 { return counted / countedNames / 1e3 }

// countedRequests counts the server's instructions for each kind of request:
// alone, as one of 16 names in a batch, and while another claim waits.
func countedRequests() bench {
	return bench{
		Name: "instructions/requests", Group: "requests", Title: "a mutex",
		Show: []string{report.JoinCount, report.BeatCount, report.LeaveCount},
		open: func(ctx context.Context, st *stage) error {
			n, err := counting(ctx, st)
			if err != nil {
				return err
			}
			r, err := newRequests(ctx, n)
			if err != nil {
				return err
			}
			for _, s := range []struct {
				name string
				many int  // names per request
				wait bool // another claim waits at each name
			}{{report.AloneName, 1, false}, {report.BatchName, 16, false}, {report.QueueName, 1, true}} {
				st.sides = append(st.sides, side{s.name,
					func(ctx context.Context, _ time.Duration) (report.Figures, error) {
						return r.count(ctx, s.many, s.wait)
					}})
			}
			return nil
		},
	}
}

// requests sends the requests of a client of the library, one after another.
type requests struct {
	n      *servers.Counted
	marker string
	home   script.Home
	ticket protocol.Ticket
	turns  byte
}

const countedOwner = "quorate:push:a-host:12345:ABCDEFGHIJKL"

func newRequests(ctx context.Context, n *servers.Counted) (*requests, error) {
	c := n.Node(0).Client()
	for _, s := range script.All() {
		if err := c.ScriptLoad(ctx, s.Source).Err(); err != nil {
			return nil, err
		}
	}
	r := &requests{n: n, home: script.HomeOf("1.home"), ticket: protocol.Ticket(time.Now().UnixMicro())}
	r.marker = r.home.Marker("quorate")
	// A node that has served for a long time.
	return r, c.Set(ctx, r.marker, "1234567890123456 0 run 0", 0).Err()
}

// of returns the keys and terms of request i.
func (r *requests) of(i int, waiter bool) (script.Keys, *protocol.Terms) {
	t := &protocol.Terms{Weight: 1, Capacity: 1, TTL: countedTTL}
	t.ID[0], t.ID[1], t.ID[2], t.ID[15] = 1, byte(i), r.turns, byte(i)
	if waiter {
		t.ID[0] = 2
	}
	return script.NewKeys("quorate", fmt.Sprintf("qu counted %08d", i)).At(r.home), t
}

// send sends one request for each name, many names at a time.
func (r *requests) send(ctx context.Context, op protocol.Op, many int, waiter bool) func() error {
	ticket := r.ticket
	if waiter {
		ticket += protocol.Residues
	}
	return func() error {
		for first := 0; first < countedNames; first += many {
			var keys, args, command []byte
			nKeys, nArgs := 0, 0
			for i := first; i < first+many; i++ {
				k, t := r.of(i, waiter)
				q := protocol.Request{Op: op, Ticket: t.ID.Next(ticket), Patient: op == protocol.OpBeat}
				if many == 1 {
					command = script.AppendCommand(nil, k, t, countedOwner, 0, time.Minute, q)
					continue
				}
				var nk, na int
				keys, args, nk, na = script.AppendItem(keys, args, k, t, q)
				nKeys, nArgs = nKeys+nk, nArgs+na
			}
			if many > 1 {
				kind := script.Kind(&protocol.Terms{TTL: countedTTL}, protocol.Request{Op: op})
				command = script.AppendBatch(nil, r.marker, 0, time.Minute, countedOwner, kind, keys, args, nKeys, nArgs)
			}
			if err := r.do(ctx, command); err != nil {
				return fmt.Errorf("%v: %w", op, err)
			}
		}
		return nil
	}
}

func (r *requests) do(ctx context.Context, command []byte) error {
	words, err := resp.NewReader(bytes.NewReader(command)).Read()
	if err != nil {
		return err
	}
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = string(w.Str)
	}
	return r.n.Node(0).Client().Do(ctx, args...).Err()
}

// count counts a join, a beat and a leave. If another claim waits, the join is
// that claim's, and the leave admits it.
func (r *requests) count(ctx context.Context, many int, wait bool) (report.Figures, error) {
	f := report.Figures{}
	for turn := range 1 + countedTurns {
		r.turns++
		r.ticket += 64 * protocol.Residues
		if wait {
			if err := r.send(ctx, protocol.OpJoin, 1, false)(); err != nil {
				return nil, err
			}
		}
		for _, s := range []struct {
			figure string
			op     protocol.Op
			waiter bool
		}{{report.JoinCount, protocol.OpJoin, wait}, {report.BeatCount, protocol.OpBeat, wait},
			{report.LeaveCount, protocol.OpLeave, false}} {
			send := r.send(ctx, s.op, many, s.waiter)
			if turn == 0 { // to warm up
				if err := send(); err != nil {
					return nil, err
				}
				continue
			}
			counted, err := r.n.Of(ctx, send)
			if err != nil {
				return nil, err
			}
			f[s.figure] += thousands(counted) / countedTurns
		}
		if wait {
			if err := r.send(ctx, protocol.OpLeave, 1, true)(); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}
