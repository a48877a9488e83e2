// Package shards divides work among the replicas of a service: each of n shards
// runs in one replica at a time, and each replica has its fair share.
//
//	s := shards.New(q, "mailboxes", 64)
//	err := s.Run(ctx, func(ctx context.Context, shard int, l quorate.Lease) error {
//		return serve(ctx, shard, l.Token())
//	})
//
// A shard is a claim on a quorum of independent Redis masters, as a lock is.
package shards

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/semaphore"
)

// Shards are n shards that all replicas share. It must be made by [New] and
// must not be copied. The zero value has no quorum, and its methods panic. It
// is safe for concurrent use.
//
// It is guaranteed that no two holders have a shard at one time, as far as a
// lock guarantees that: a process may sleep through its lease. So fence what a
// shard writes to with the token of its lease, which rises with each holder of
// the shard.
//
// Replicas that run divide the shards: each has n divided by their number, or
// one more. A replica that joins or leaves moves little more than its own
// share. One that stops by its context hands its shards over at once. When one
// dies, the next in line of each of its shards has it after the lease and a
// round trip. At most as many replicas as there are shards take part, and 100
// at most; further ones stand by.
//
// The claims are those of mutexes with the names name:0 to name:n-1, and of a
// semaphore name:members. Do not use these for other primitives too.
type Shards struct {
	_       core.NoCopy
	q       *quorate.Quorum
	name    string
	set     *setup.Settings
	specs   []*core.Spec
	cores   []*core.Quorum // of a Redis Cluster, those of each shard's bucket
	members *semaphore.Weighted
	weight  int64 // the permits of a member
	err     error // of the name; every call tells it
}

// most is how many replicas take part: package inspect shows no more.
const most = 100

// New returns n shards of the given name. n is 1 to 10000, and the same for all
// users of the name: to change it, choose another name. Options are those of
// every primitive.
//
// A wrong n and a wrong or nil option are programmer's errors: New panics and
// names the remedy. An unusable name (empty, longer than 1016 bytes, or with
// braces) is reported by [Shards.Run], with [quorate.ErrInvalid].
func New(q *quorate.Quorum, name string, n int, opts ...quorate.SharedOption) *Shards {
	if n < 1 || n > 10_000 {
		panic(fmt.Sprintf("quorate: shards.New: %d shards; choose 1 to 10000", n))
	}
	s := &Shards{q: q, name: name, set: core.Override(core.CoreOf(q), "shards.New", opts)}
	for i := range n {
		shard := fmt.Sprint(name, ":", i)
		c := core.CoreOf(q).For(shard)
		spec, err := c.NewSpec(core.Spec{Name: shard, Kind: "shards", Weight: 1, Capacity: 1, Notify: true, Set: core.Override(c, "shards.New", opts)})
		s.err = errors.Join(s.err, err)
		s.specs, s.cores = append(s.specs, spec), append(s.cores, c)
		if err != nil {
			break
		}
	}
	if err := setup.CheckName(name); err != nil {
		s.err = err
	}
	permits, weight := room(n)
	s.members, s.weight = semaphore.NewWeighted(q, s.membersName(), permits, opts...), weight
	return s
}

// room returns how many permits the semaphore of the members has, and how
// many each of them takes.
// Invariant: no other n has as many. So users of another n are refused, and as
// many members find room as may take part.
func room(n int) (permits, weight int64) {
	const each = 100_000 // more than any n
	if n <= most {
		return int64(n), 1
	}
	return most*each + int64(n), each
}

func (s *Shards) membersName() string { return s.name + ":members" }

// Run takes part until ctx ends. For each shard that this replica has it calls
// f, in a goroutine of its own, with the number of the shard, from 0 on, and
// its lease. The context of f has the values of ctx. It ends when ctx does,
// when the shard is to be handed over, and when it is lost: [context.Cause]
// then is [quorate.ErrLost]. f must return soon then: the shard is not given up
// before.
//
// When f returns though its context has not ended, the shard is given up, and a
// second later this or another replica takes it. An error that f returns is
// logged. A panic of f ends the process, as that of any goroutine.
//
// Run waits through outages. It returns an error that matches the context's
// when that has ended, [quorate.ErrClosed], and [quorate.ErrInvalid] for a name
// that is unusable or is shared with users of another n. When it returns each
// call of f has returned, and all shards have been given up. Several calls of
// Run are several replicas.
func (s *Shards) Run(ctx context.Context, f func(ctx context.Context, shard int, l quorate.Lease) error) error {
	switch {
	case s == nil || s.q == nil:
		panic("quorate: the zero shards.Shards has no quorum; use shards.New")
	case f == nil:
		panic("quorate: shards.Run of a nil function")
	case s.err != nil:
		return core.WrapError("run", s.name, s.err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &replica{s: s, f: f, parts: make([]part, len(s.specs)), changed: make(chan struct{}), asking: make(chan struct{}, 1), end: cancel}
	for shard := range s.specs {
		r.all.Go(func() { r.serve(ctx, shard) })
	}
	r.member(ctx)
	r.all.Wait()
	switch err := context.Cause(ctx); {
	case errors.Is(err, quorate.ErrClosed):
		return core.WrapError("run", s.name, &fault.Failure{Err: fault.ErrClosed})
	case fatal(err):
		return core.WrapError("run", s.name, err)
	}
	return core.WrapError("run", s.name, &fault.Failure{Err: fault.ContextError(ctx)})
}

// fatal reports whether an error would come again at each attempt.
func fatal(err error) bool {
	return errors.Is(err, quorate.ErrClosed) || errors.Is(err, quorate.ErrInvalid)
}

// look is how often a replica looks which others there are.
func (s *Shards) look() time.Duration { return s.set.TTL / 8 }

// pause waits, unless the context ends before.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
