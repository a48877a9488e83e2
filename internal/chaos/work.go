package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate"
	"github.com/samber/lo"
)

// work is what a client does with one name of a primitive. A value serves all
// goroutines of the client, as a value of the library does.
type work interface {
	// do is one operation: it asks, holds for a while, releases, and lets t
	// write down each step.
	do(ctx context.Context, t *turn)
}

// primitive is all that the suite knows of a kind of work. A new one is a file
// with its work and an entry here; the checkers need nothing but the capacity,
// except for once.
type primitive struct {
	names    int   // how many are in use at a time
	capacity int64 // of each: holds that are valid together never weigh more
	open     func(e *clientEnv, name string) work
}

var primitives = map[string]primitive{
	"mutex":     {names: 4, capacity: 1, open: openMutex},
	"rwmutex":   {names: 2, capacity: exclusive, open: openRWMutex},
	"semaphore": {names: 3, capacity: permits, open: openSemaphore},
	"leader":    {names: 2, capacity: 1, open: openLeader},
	"once":      {names: 1, capacity: 1, open: openOnce},    // of each round's runs
	"redsync":   {names: 4, capacity: 1, open: openRedsync}, // for the control
	rival:       {capacity: 1, open: openRival},             // of the names of others
}

// workKinds are the kinds of work that can be asked for, in order.
func workKinds() []string {
	kinds := lo.Without(lo.Keys(primitives), rival)
	slices.Sort(kinds)
	return kinds
}

// capacity of each name of a kind.
func capacity(kind string) int64 { return primitives[kind].capacity }

// names of a primitive's kind, the same in all clients.
func names(kind string) []string {
	if kind == rival {
		return append(names("mutex"), names("leader")...)
	}
	var all []string
	for i := range primitives[kind].names {
		all = append(all, fmt.Sprintf("%s-%d", kind, i))
	}
	return all
}

// turn is one goroutine's way of working on one name.
type turn struct {
	kind, name string
	log        *oplog
	rand       *rand.Rand
	user       *user
	ttl        time.Duration
	patience   time.Duration
	hold       time.Duration // most are shorter
	most       time.Duration // none is longer, if not 0
	calm       bool          // all faults have ended: short holds, no tries
	after      string        // the operation whose hold the next one goes on with
	seen       int64         // when the hold was last seen to be valid
}

// ask calls lock, and reports whether it has been got.
func (t *turn) ask(ctx context.Context, weight int64, lock func(context.Context) error) (op string, ok bool) {
	op = t.log.call(event{Kind: t.kind, Name: t.name, Weight: weight, After: t.after})
	ctx, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	if err := lock(ctx); err != nil {
		t.log.fail(op, err)
		return op, false
	}
	return op, true
}

// begin writes down that it has been got.
func (t *turn) begin(op string, l quorate.Lease) {
	t.seen = 0
	at := now()
	until := stamp(t.look(l))
	t.log.write(event{T: at, E: evBegin, Op: op, Token: l.Token(), Until: until})
}

// look notes the time if the hold is valid. What is lost stays lost, so it was
// valid until then, even if its validity is taken back later.
func (t *turn) look(l quorate.Lease) time.Time {
	at := now()
	v := l.ValidUntil()
	if time.Until(v) > 0 {
		t.seen = at
	}
	return v
}

// end writes down that the hold is about to end, and then ends it. The order
// matters: the next one may be in before release returns.
func (t *turn) end(op string, l quorate.Lease, release func() error) {
	t.ended(op, l, false)
	err := release()
	e := event{T: now(), E: evLeft, Op: op}
	if err != nil {
		e.Err = err.Error()
	}
	t.log.write(e)
	if err != nil && !errors.Is(err, quorate.ErrLost) {
		t.log.trouble(fmt.Errorf("release of %s: %w", op, err))
	}
}

func (t *turn) ended(op string, l quorate.Lease, lost bool) {
	at := now()
	t.log.write(event{T: at, E: evEnd, Op: op, Until: stamp(l.ValidUntil()), Seen: t.seen, Lost: lost})
}

// length is how long to hold: mostly a moment, at times long enough to be
// renewed, and often enough longer than the ttl: a fault shows nothing where
// no client holds anything.
func (t *turn) length() (d time.Duration) {
	share := func(d time.Duration) time.Duration { return time.Duration(t.rand.Int64N(int64(d))) }
	switch n := t.rand.IntN(25); {
	case t.calm:
		d = share(5 * time.Millisecond)
	case n == 0:
		d = t.ttl + share(t.ttl)
	case n < 5:
		d = share(t.ttl / 2)
	default:
		d = share(t.hold)
	}
	if t.most > 0 {
		d = min(d, t.most)
	}
	return d
}

// stay is the time of a hold. It keeps the log of its validity, which is what
// counts should the process be killed or stopped, and notes the loss.
func (t *turn) stay(op string, l quorate.Lease) {
	over := time.NewTimer(t.length())
	defer over.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	last := l.ValidUntil()
	lost := l.Context().Done()
	for {
		select {
		case <-over.C:
			return
		case <-lost:
			t.ended(op, l, true)
			lost = nil
		case <-look.C:
			if v := t.look(l); !v.Equal(last) {
				last = v
				t.log.write(event{T: now(), E: evUntil, Op: op, Until: stamp(v)})
			}
		}
	}
}

// use holds, and meanwhile does to the resource what the lock is for: reads it
// and, if the hold is exclusive, writes it back increased. It does not ask its
// context before it writes, as a program in the middle of its work does not:
// that is what tokens are for.
func (t *turn) use(op string, l quorate.Lease, alone bool) {
	q := request{what: doRead, name: t.name, token: l.Token(), alone: alone, op: op}
	value, ok := t.visit(q)
	t.stay(op, l)
	if !ok {
		return
	}
	if alone {
		q.what, q.base = doWrite, value
	}
	t.visit(q)
}

// visit is one request to the resource. A harness that ends closes it.
func (t *turn) visit(q request) (int64, bool) {
	value, ok, err := t.user.ask(q)
	if err != nil {
		t.log.trouble(fmt.Errorf("%s of the resource: %w", q.what, err))
		return 0, false
	}
	return value, ok
}

// pause is the time between two operations: on average 1/rate.
func (t *turn) pause(ctx context.Context, rate float64) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(min(t.rand.ExpFloat64(), 5) / rate * float64(time.Second))):
	}
}
