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
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// ErrNoLeader ("no leader") says that the nodes have been asked and no process
// leads: none has campaigned yet, the last leader has resigned, or its lease
// has ended.
var ErrNoLeader = errors.New("no leader")

// Bounds, in bytes. Every node keeps both, and every observer gets them.
const (
	MaxID    = 1 << 10  // of a participant's id
	MaxValue = 64 << 10 // of a leader's value
)

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

// Campaign waits until this participant is the leader, behind the participants
// that asked before it, and until a majority of the nodes has recorded so, with
// the value: an address, say, for those that look for the leader.
// [Election.Lease] then is the term. A participant that leads already stays
// leader, and only the value is new. A goroutine that campaigns while another
// one does waits for that one.
//
// It fails with a [*quorate.Error]:
//
//   - when the context ends, one that matches the context's error and says what was missing: [quorate.ErrHeld], the turn, or [quorate.ErrNoQuorum], nodes;
//   - ErrNoQuorum at once when so many nodes refuse for good that waiting cannot help;
//   - [quorate.ErrClosed];
//   - [quorate.ErrInvalid], also while [Election.Run] runs, which campaigns by itself, and for a value longer than [MaxValue] or not UTF-8.
//
// The claim is then withdrawn from every node. The end of the context ends the
// waiting, not the term.
func (e *Election) Campaign(ctx context.Context, value string) error {
	e.usable()
	return core.WrapError("campaign", e.name, e.campaign(ctx, value))
}

func (e *Election) campaign(ctx context.Context, value string) error {
	if err := e.check(value); err != nil {
		return err
	}
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer func() { <-e.turn }()
	if t := e.current(); t != nil && t.lease.Lost() == nil {
		err := e.write(ctx, t, value)
		// The context may be that of another hold, and end as that is lost.
		if ctx.Err() != nil || !errors.Is(err, fault.ErrLost) && !errors.Is(err, fault.ErrNotHeld) {
			return err
		}
		_ = e.end(t)
	}
	e.become(nil)
	for again := (core.Retry{}); ; {
		t, err := e.win(ctx, value)
		switch {
		case err == nil:
			e.become(t)
			return nil
		case !errors.Is(err, fault.ErrLost), ctx.Err() != nil:
			return err
		}
		again.Wait(ctx, e.q, e.name, err)
	}
}

// enter waits until no other goroutine campaigns.
func (e *Election) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return &fault.Failure{Err: fault.ContextError(ctx)}
	}
	if err := e.notRunning(); err != nil {
		return err
	}
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return e.q.CutShort(ctx)
	case <-e.q.Over:
		return &fault.Failure{Err: fault.ErrClosed}
	}
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

// Proclaim replaces the value while this participant leads, and waits until a
// majority of the nodes has recorded it. The term stays. It fails with
// [quorate.ErrNotHeld] when this participant does not lead, with
// [quorate.ErrLost] or [quorate.ErrClosed] when the term ended by itself, and
// with [quorate.ErrInvalid] for a value longer than [MaxValue] or not UTF-8.
// When too few nodes have confirmed before the context ended, it fails with the
// context's error and [quorate.ErrNoQuorum]: which value holds is then unknown
// until the next Proclaim.
func (e *Election) Proclaim(ctx context.Context, value string) error {
	e.usable()
	return core.WrapError("proclaim", e.name, e.proclaim(ctx, value))
}

func (e *Election) proclaim(ctx context.Context, value string) error {
	if err := e.check(value); err != nil {
		return err
	}
	t := e.current()
	if t == nil {
		return &fault.Failure{Err: fault.ErrNotHeld}
	}
	return e.write(ctx, t, value)
}

// Resign ends the term, and waits until a majority of the nodes has confirmed
// it. The next in line does not wait for that: each node erases the record, and
// wakes the next, when the release arrives.
//
// It fails with [quorate.ErrNotHeld] when this participant does not lead (the
// context of a Campaign under way ends that), with [quorate.ErrLost] or
// [quorate.ErrClosed] when the term ended by itself, and with
// [quorate.ErrInvalid] while [Election.Run] runs. It fails with
// [quorate.ErrNoQuorum] when too few nodes confirmed within the node timeout or
// before the context ended. The participant has resigned all the same, and the
// term ends on the other nodes when they come back or when the lease ends.
func (e *Election) Resign(ctx context.Context) error {
	e.usable()
	return core.WrapError("resign", e.name, e.resign(ctx))
}

func (e *Election) resign(ctx context.Context) error {
	if e.err != nil {
		return e.err
	}
	if err := e.notRunning(); err != nil {
		return err
	}
	e.mu.Lock()
	t := e.term
	e.term = nil
	e.mu.Unlock()
	if t == nil {
		return &fault.Failure{Err: fault.ErrNotHeld}
	}
	if err := e.end(t); err != nil {
		return err
	}
	return t.lease.Hold().Released(ctx)
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
	expired := time.Since(t.ended())
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
