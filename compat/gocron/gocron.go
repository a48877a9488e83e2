// Package quorategocron provides an Elector and a Locker for
// github.com/go-co-op/gocron/v2 on a quorum of independent Redis masters.
//
// The Locker records which periods have had their run. So even a job that takes
// only a millisecond runs just once, although another scheduler's clock may be
// slow.
package quorategocron

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/period"
)

var (
	// ErrNotDue means that this period has already had its run, or that a run is
	// in progress elsewhere.
	ErrNotDue = errors.New("quorate: this period has already had its run, or a run is in progress")
	// ErrNotLeader means that another scheduler is the leader, or that there is no
	// leader at the moment.
	ErrNotLeader = errors.New("quorate: this scheduler is not the leader")
)

// A Locker is a [gocron.Locker]: only one of the schedulers runs a job in each
// period. It is safe for concurrent use.
type Locker struct {
	q     *quorate.Quorum
	every time.Duration
	opts  []quorate.PeriodOption
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker for jobs that run once per period. Periods have
// the length every, as in [period.New]. NewLocker takes the options of
// period.New and panics if New would. Jobs are identified by their names. Use
// [gocron.WithDistributedJobLocker] to give each job a Locker with the job's
// interval, or give one Locker to the scheduler if all jobs have the same
// interval.
func NewLocker(q *quorate.Quorum, every time.Duration, opts ...quorate.PeriodOption) *Locker {
	period.New(q, "every", every, opts...) // panics if one is wrong
	return &Locker{q, every, opts}
}

// Lock starts the run for this period. It returns [ErrNotDue] or any error of
// [period.Period.Do]. It waits for nodes until ctx is done.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	began := make(chan struct{})
	r := &run{over: make(chan struct{}), ended: make(chan error, 1)}
	go func() {
		ran, err := period.New(l.q, key, l.every, l.opts...).Do(ctx, func(context.Context) error {
			close(began)
			<-r.over
			return nil
		})
		if !ran && err == nil {
			err = ErrNotDue
		}
		r.ended <- err
	}()
	select {
	case <-began:
		return r, nil
	case err := <-r.ended:
		return nil, err
	}
}

// run is a run under way.
type run struct {
	once  sync.Once
	over  chan struct{}
	ended chan error
	err   error
}

// Unlock ends the run. It returns an error that matches [quorate.ErrLost] if
// the claim was lost in the meantime, but gocron ignores it.
func (r *run) Unlock(context.Context) error {
	r.once.Do(func() {
		close(r.over)
		r.err = <-r.ended
	})
	return r.err
}

// An Elector is a [gocron.Elector]: only the leader among the schedulers runs
// jobs. It is safe for concurrent use.
type Elector struct {
	election *leader.Election
	term     atomic.Pointer[quorate.Lease]
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns a participant in the election with the given name. It
// takes part while [Elector.Run] is running. NewElector takes the options of
// [leader.New].
func NewElector(q *quorate.Quorum, name string, opts ...quorate.LeaderOption) *Elector {
	return &Elector{election: leader.New(q, name, opts...)}
}

// Run takes part until ctx is done. It returns what [leader.Election.Run]
// returns. Cancel ctx after the scheduler's Shutdown, because the next leader's
// jobs do not wait for jobs that are still running here.
func (e *Elector) Run(ctx context.Context) error {
	return e.election.Run(ctx, leader.Callbacks{OnStartedLeading: func(ctx context.Context, term quorate.Lease) {
		e.term.Store(&term)
		<-ctx.Done()
		e.term.Store(nil)
	}})
}

// IsLeader returns nil while this participant is the leader, and [ErrNotLeader]
// otherwise. It does not contact the nodes. Losing the leadership does not stop
// a job that is already running, so have the job watch the context of
// [Elector.Term].
func (e *Elector) IsLeader(context.Context) error {
	if e.Term() == nil {
		return ErrNotLeader
	}
	return nil
}

// Term returns the lease of this participant's term, including the fencing
// token, or nil while this participant is not the leader.
func (e *Elector) Term() quorate.Lease {
	if term := e.term.Load(); term != nil && (*term).Context().Err() == nil {
		return *term
	}
	return nil
}
