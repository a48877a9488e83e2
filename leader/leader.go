// Package leader elects one process of a fleet: a mutex claim on the nodes of a
// [quorate.Quorum], first come first served, and a record beside it that says
// which process has it.
//
//	e := leader.New(q, "scheduler") // the same line in every process
//	err := e.Run(ctx, leader.Callbacks{
//		OnStartedLeading: func(ctx context.Context, lease quorate.Lease) { schedule(ctx, lease.Token()) },
//	})
//
// A term is the time from winning an election to resigning or losing it. Its
// number is the fencing token of the claim: it rises with every term, over all
// processes. At most one process leads at a time, each judged by its own clock.
// Invariant: a process is reported as the leader only while a majority has
// recorded it, and the lease of the claim that recorded it runs. So a record
// that a dead leader has left behind means nothing.
//
// No election can stop a process that sleeps through its lease. When the
// process goes on, it acts as the leader until it looks at its context. So give
// the term to the resource that the leader writes to, and let the resource
// refuse a lower term than it has seen.
package leader

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// ErrNoLeader ("no leader") says that the nodes have been asked and no process
// leads: none has campaigned yet, the last leader has resigned, or its lease
// has ended.
var ErrNoLeader = errors.New("no leader")

// An Election is one participant of the election of its name: it can lead, wait
// to lead, and see which process leads. It must be made by [New] and must not
// be copied. The zero value has no quorum, and its methods panic. It is safe
// for concurrent use, and can be used again after it has resigned or lost.
//
// One value is one participant: goroutines that share it lead together. Two
// values of one name exclude each other as two processes do. So does a
// [mutex.Mutex] of that name: it is the same claim, and while the mutex is
// locked, no process leads.
//
// [mutex.Mutex]: https://pkg.go.dev/github.com/quorate/quorate/mutex#Mutex
type Election struct {
	_    core.NoCopy
	q    *core.Quorum
	spec *core.Spec
	reg  *core.Register
	name string
	set  settings
	err  error // of the name, the id or the value; every call tells it

	turn chan struct{} // full while a goroutine campaigns, or runs

	mu      sync.Mutex
	running bool
	term    *term // won, and neither resigned nor replaced since; it may be lost
}

// term is one time of leading.
type term struct {
	lease  *core.Lease
	since  time.Time
	writes atomic.Uint64 // under the hold: the next one's seq
}

// New returns a participant of the election of the given name. Options are
// those of every primitive ([quorate.SharedOption]), and [WithID], [WithValue]
// and [WithOneTerm].
//
// A wrong or nil option is a programmer's error: New panics and names the
// remedy. An unusable name (empty, longer than 1024 bytes, or with braces), id
// (longer than [MaxID], not UTF-8) or value (longer than [MaxValue], not UTF-8)
// is reported by every call, with [quorate.ErrInvalid].
func New(q *quorate.Quorum, name string, opts ...quorate.LeaderOption) *Election {
	c := core.CoreOf(q).For(name)
	set := apply(c, opts)
	e := &Election{q: c, name: name, set: set, turn: make(chan struct{}, 1)}
	e.err = set.check()
	spec, err := c.NewSpec(core.Spec{Name: name, Kind: "leader", Weight: 1, Capacity: 1, Set: set.Settings})
	if err != nil {
		e.err = err
		return e
	}
	e.spec, e.reg = spec, c.Register(spec)
	return e
}

// ID returns what others see as the ID of the [Leader] when this participant
// leads.
func (e *Election) ID() string {
	e.usable()
	return e.set.id
}

func (e *Election) usable() {
	if e == nil || e.q == nil {
		panic("quorate: the zero leader.Election has no quorum; use leader.New")
	}
}

func (e *Election) check(value string) error {
	if e.err != nil {
		return e.err
	}
	return checkValue(value)
}

// notRunning fails while Run has the election to itself.
func (e *Election) notRunning() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return fmt.Errorf("%w: Run is running: it campaigns, and resigns when OnStartedLeading returns", fault.ErrInvalid)
	}
	return nil
}

// Lease returns the term that this participant has won: the token is the term's
// number, and the context ends with it. It is nil when this participant has not
// won, or has resigned. After a loss it is the lost term, until Resign or the
// next Campaign.
func (e *Election) Lease() quorate.Lease {
	e.usable()
	if t := e.current(); t != nil {
		return t.lease
	}
	return nil
}

// HealthCheck is for a readiness probe. It fails with [quorate.ErrLost] when
// this participant still acts as a leader more than maxExpired after its lease
// has ended: under [Election.Run], when OnStartedLeading has not returned yet;
// after [Election.Campaign], when neither Resign nor Campaign has been called.
// It returns nil while the term runs and while this participant does not lead.
// It asks no node.
func (e *Election) HealthCheck(maxExpired time.Duration) error {
	e.usable()
	t := e.current()
	if t == nil {
		return nil
	}
	expired := time.Since(t.lease.ValidUntil())
	if expired <= max(0, maxExpired) {
		return nil
	}
	return core.WrapError("health check", e.name,
		fmt.Errorf("%w: the term ended %v ago, and what it started still runs", fault.ErrLost, expired.Round(time.Millisecond)))
}

func (e *Election) current() *term {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.term
}

func (e *Election) become(t *term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term = t
}
