package fleet

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/chaos/judge"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/samber/lo"
)

// Did the servers get enough CPU time? On a machine that is busy with other
// things, servers may not answer for ten seconds. If clients get no lock during
// that time, that says nothing about the library.

// Prompt is how soon a healthy server answers the harness, which does not go
// through a proxy.
const Prompt = time.Second

// Pulse records when servers did not answer the harness. mu guards it.
type Pulse struct {
	quorum int

	mu   sync.Mutex
	late [][]span // per node
}

// span is an interval of record.Now.
type span struct{ from, to int64 }

// WatchPulse asks each server repeatedly until stop is called.
func WatchPulse(nodes []*Node) (p *Pulse, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	p = &Pulse{quorum: len(nodes)/2 + 1, late: make([][]span, len(nodes))}
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { p.watch(ctx, i, n.Server) })
	}
	return p, func() {
		cancel()
		all.Wait()
	}
}

func (p *Pulse) watch(ctx context.Context, node int, server *redistest.Server) {
	client := connectAdmin(server.Addr())
	defer func() { _ = client.Close() }()
	for ; ctx.Err() == nil; record.Wait(ctx, 50*time.Millisecond) {
		from := record.Now()
		err := client.Ping(ctx).Err()
		if to := record.Now(); ctx.Err() == nil && (err != nil || to-from > int64(Prompt)) {
			p.mu.Lock()
			p.late[node] = append(p.late[node], span{from, to})
			p.mu.Unlock()
		}
	}
}

// stopped reports whether so many servers were late between from and to that no
// quorum was prompt.
func (p *Pulse) stopped(from, to int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	late := lo.CountBy(p.late, func(spans []span) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return s.from < to && s.to > from })
	})
	return len(p.late)-late < p.quorum
}

// Excuse removes the liveness violations from times in which the servers were
// stopped, and returns how many it has removed. ended is when the clients had
// ended, and patience how long they wait for a lock.
func (p *Pulse) Excuse(found []judge.Violation, ended int64, patience time.Duration) (
	left []judge.Violation, excused int,
) {
	left = slices.DeleteFunc(found, func(v judge.Violation) bool {
		from, to := ended-int64(patience), ended
		if v.At > 0 {
			from, to = v.At, v.At+int64(2*patience)
		}
		return v.Live && p.stopped(from, to)
	})
	return left, len(found) - len(left)
}
