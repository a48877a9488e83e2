package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/chaos/record"
)

// One in this many calls is a try, which does not wait.
const tries = 8

// One in this many operations also asks the nodes about the name.
const looks = 4

// unlock ends a hold. It does not wait for the nodes to confirm, because a
// majority may be unreachable, but it does report a release of a lock that is
// not held.
func unlock(f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := f(ctx)
	if errors.Is(err, quorate.ErrNotHeld) || errors.Is(err, quorate.ErrLost) {
		return err
	}
	return nil
}

// Patience is how long a client waits for a lock while there are faults.
const Patience = 10 * time.Second

// work is what a client does with one name of a primitive. All goroutines of
// the client share one value, as they would share a value of the library.
type work interface {
	// do carries out one operation: it acquires, holds for a while, releases,
	// and logs each step through t.
	do(ctx context.Context, t *turn)
}

// turn is one goroutine working on one name.
type turn struct {
	kind, name string
	log        *record.Oplog
	rand       *rand.Rand
	user       *record.User
	ttl        time.Duration
	patience   time.Duration
	hold       time.Duration // most are shorter
	most       time.Duration // no hold is longer, unless this is 0
	calm       bool          // all faults have ended: short holds, no tries
	after      string        // the operation whose hold the next operation takes over
	seen       int64         // when the hold was last seen valid
}

// ask calls lock, and reports whether it has acquired the lock.
func (t *turn) ask(ctx context.Context, weight int64, lock func(context.Context) error) (op string, ok bool) {
	op = t.log.Call(record.Event{Kind: t.kind, Name: t.name, Weight: weight, After: t.after})
	ctx, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	if err := lock(ctx); err != nil {
		t.log.Fail(op, err)
		return op, false
	}
	return op, true
}

// begin logs that the lock was acquired.
func (t *turn) begin(op string, l quorate.Lease) {
	t.seen = 0
	at := record.Now()
	until := record.Stamp(t.look(l))
	t.log.Write(record.Event{T: at, E: record.EvBegin, Op: op, Token: l.Token(), Until: until})
}

// look records the time if the hold is valid. A lost hold stays lost, so the
// hold was valid until that time, even if its validity is shortened later.
func (t *turn) look(l quorate.Lease) time.Time {
	at := record.Now()
	v := l.ValidUntil()
	if time.Until(v) > 0 {
		t.seen = at
	}
	return v
}

// end logs that the hold is about to end, and then ends it. The order matters,
// because the next holder may be admitted before release returns.
func (t *turn) end(op string, l quorate.Lease, release func() error) {
	t.ended(op, l, false)
	err := release()
	e := record.Event{T: record.Now(), E: record.EvLeft, Op: op}
	if err != nil {
		e.Err = err.Error()
	}
	t.log.Write(e)
	if err != nil && !errors.Is(err, quorate.ErrLost) {
		t.log.Trouble(fmt.Errorf("release of %s: %w", op, err))
	}
}

func (t *turn) ended(op string, l quorate.Lease, lost bool) {
	at := record.Now()
	t.log.Write(record.Event{T: at, E: record.EvEnd, Op: op, Until: record.Stamp(l.ValidUntil()),
		Seen: t.seen, Lost: lost})
}

// length returns how long to hold: mostly a moment, sometimes long enough for
// renewals, and often enough longer than the ttl. A fault reveals nothing while
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

// stay spends the time of a hold. It logs changes of the validity, which the
// judge relies on if the process is killed or stopped, and notices a loss.
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
				t.log.Write(record.Event{T: record.Now(), E: record.EvUntil, Op: op, Until: record.Stamp(v)})
			}
		}
	}
}

// use holds the lock and uses the resource under it: it reads the number and,
// if the hold is exclusive, writes it back increased. Like a real program in
// the middle of its work, it does not check the context before it writes.
// Tokens are there for that case.
func (t *turn) use(op string, l quorate.Lease, alone bool) {
	q := record.Request{What: record.DoRead, Name: t.name, Token: l.Token(), Alone: alone, Op: op}
	value, ok := t.visit(q)
	t.stay(op, l)
	if !ok {
		return
	}
	if alone {
		q.What, q.Base = record.DoWrite, value
	}
	t.visit(q)
}

// visit sends one request to the resource. It fails when the harness ends and
// closes the resource.
func (t *turn) visit(q record.Request) (int64, bool) {
	value, ok, err := t.user.Ask(q)
	if err != nil {
		t.log.Trouble(fmt.Errorf("%s of the resource: %w", q.What, err))
		return 0, false
	}
	return value, ok
}

// pause waits between two operations, on average for 1/rate.
func (t *turn) pause(ctx context.Context, rate float64) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(min(t.rand.ExpFloat64(), 5) / rate * float64(time.Second))):
	}
}
