// Package shards divides work among the replicas of a service. Each of n shards
// runs in one replica at a time, and every replica gets its fair share.
//
//	s := shards.New(q, "mailboxes", 64)
//	err := s.Run(ctx, func(ctx context.Context, shard int, l quorate.Lease) error {
//		return serve(ctx, shard, l.Token())
//	})
//
// A shard, like a lock, is a lease on a majority of independent Redis masters.
//
// All types in this package are safe for concurrent use.
package shards

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/semaphore"
)

// Shards are n shards that all replicas share. They must be created with [New]
// and must not be copied.
//
// No two replicas hold a shard at the same time, as far as a lock can guarantee
// that. But a process can sleep through its lease, so fence each shard's writes
// with the token of its lease, which increases with every holder of the shard.
//
// Each replica gets n divided by the number of replicas, or one more. When a
// replica joins or leaves, few shards move besides its own share. When a
// replica's context ends, it hands over its shards immediately. When a replica
// dies, the next in line takes over its shards once the lease has expired. Up
// to n replicas take part, but no more than 100; the rest stand by.
//
// The shards use the claims of mutexes named name:0 to name:n-1 and of a
// semaphore named name:members. Do not use these names for other primitives.
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

// New returns n shards, from 1 to 10000, with the given name. All users of the
// name must agree on n. To change n, choose a different name.
//
// Options: [quorate.WithTTL], [quorate.WithNodeTimeout], [quorate.WithMaxHold],
// [quorate.WithoutRenewal] and [quorate.WithWarning]. The defaults are the
// settings of q. New panics if n or an option is invalid. If the name is
// invalid (empty, longer than 1016 bytes, or with braces), [Shards.Run] returns
// [quorate.ErrInvalid].
func New(q *quorate.Quorum, name string, n int, opts ...quorate.SharedOption) *Shards {
	if n < 1 || n > 10_000 {
		panic(fmt.Sprintf("quorate: shards.New: %d shards: choose 1 to 10000", n))
	}
	s := &Shards{q: q, name: name, set: core.Override(core.CoreOf(q), "shards.New", opts)}
	for i := range n {
		shard := fmt.Sprint(name, ":", i)
		c := core.CoreOf(q).For(shard)
		spec, err := c.NewSpec(core.Spec{Name: shard, Kind: "shards", Weight: 1, Capacity: 1, Notify: true,
			Set: core.Override(c, "shards.New", opts)})
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

// fatal reports whether an error would come again at each attempt.
func fatal(err error) bool {
	return errors.Is(err, quorate.ErrClosed) || errors.Is(err, quorate.ErrInvalid)
}

// look is how often a replica looks which others there are.
func (s *Shards) look() time.Duration { return s.set.TTL / 8 }

// pause waits, unless the context ends before.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
