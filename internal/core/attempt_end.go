package core

import (
	"time"

	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
)

// This file owns the end of an event: what follows for the caller, the timers,
// the nodes and the observer, in which order.

func (a *attempt) stepUnlock(now protocol.Time) { a.endUnlock(now, ordinary) }

// endUnlock queues the claim's requests, does what follows from a change of
// phase, unlocks a.mu, writes the requests, then calls owner and observer.
// Invariant: the holder's context ends before a node can get the leave, see
// below.
func (a *attempt) endUnlock(now protocol.Time, how ending) {
	news := a.claim.News(a.spec.shared)
	a.publish(news) // first: what is sent below may let the next one in
	var ended, why error
	waiters := news.Waiting && a.owner != nil
	switch {
	case !news.Taken || !news.Over() || a.owner == nil:
	case news.Lost():
		ended, why = ErrLost, a.lostWhy(now)
	case how == closing:
		ended = ErrClosed
	}
	// Note: Here is an incorrect order:
	//
	//	a.q.nodes.flush(a.queue())
	//	a.owner.Ended(ErrLost)
	var leaves []protocol.Request
	if ended != nil {
		if on(RuleEndFirst) {
			leaves, a.claim.Out = a.claim.Out, nil
		}
		// Close waits for it. Its leaves follow the owner's callback.
		a.q.telling.Add(1)
	}
	nodes := a.queue()
	if a.place && !a.claim.Underway() {
		a.place = false
		a.q.intake.leave()
	}
	a.follow(news)
	a.wakeWaits()
	a.mu.Unlock()
	switch {
	case how != unflushed:
		a.q.nodes.flush(nodes)
	// A tick handles many claims and writes to the nodes once, at its end.
	case ended != nil || waiters: // requests of other attempts must not wait for the owner's callback
		a.q.nodes.flush(a.q.nodes.mask())
	}
	if ended != nil {
		a.owner.Ended(ended)
		a.mu.Lock()
		a.claim.Out = leaves
		nodes = a.queue()
		a.mu.Unlock()
		a.q.nodes.flush(nodes)
		a.q.telling.Add(-1)
	}
	// The log and the observer come last: the contexts have ended, and the
	// leaves are sent. They get a goroutine of their own, as they may block, or
	// end it (TestLoggerThatBlocksAtALoss).
	if ended == ErrLost {
		go a.reportLoss(now, why)
	}
	if waiters {
		a.owner.Waiting()
	}
}

// publish has those that hold no lock see until when the claim holds, and
// whether others wait for it. Called with a.mu held.
func (a *attempt) publish(news process.News) {
	standing := protocol.Time(0)
	if news.Phase == lease.Holding {
		if standing = a.claim.Deadline() &^ 1; a.claim.Waiters() {
			standing |= 1
		}
	}
	a.standing.Store(int64(standing))
}

// follow sets the timers for the phase that the claim is in now, and wakes the
// caller that waits for it. Called with a.mu held.
// Invariant: an attempt sends on done once: at its admission, or at its end if
// it was never admitted.
func (a *attempt) follow(news process.News) {
	if news.Changed() && news.Phase == lease.Holding {
		// The time of WithMaxHold begins when the caller gets the lock.
		if a.spec.Set.MaxHold > 0 {
			a.ends = time.AfterFunc(a.spec.Set.MaxHold, a.stopRenewal)
		}
		a.done <- struct{}{}
	}
	if news.Over() {
		a.q.attempts.drop(a)
		a.q.ticks.Drop(&a.alarms)
		if news.Was == lease.Holding {
			a.q.deadlines.Drop(&a.alarms)
			if a.ends != nil {
				a.ends.Stop()
			}
		} else {
			a.done <- struct{}{}
		}
	}
	if !news.Phase.Final() {
		a.q.ticks.Set(&a.alarms, a.claim.Wake())
		if news.Phase == lease.Holding {
			a.q.deadlines.Set(&a.alarms, a.claim.Deadline())
		}
	}
}

// noteLate tells the observer once when less than half of a lease is left: the
// answers of a quorum to the last renewal have not come in time. Called with
// a.mu held, as a renewal or its repetition is due.
func (a *attempt) noteLate(now protocol.Time) {
	left := a.claim.Deadline().Sub(now)
	late := a.claim.Phase() == lease.Holding && left < a.spec.Set.TTL/2 && !a.claim.Muted()
	if late && !a.late {
		err := WrapError("renew", a.spec.Name, a.failureAt(now, ErrNoQuorum))
		go a.q.observer.call(Event{Kind: EventRenewalLate, Name: a.spec.Name, Token: a.token(0), Took: left, Err: err})
	}
	a.late = late
}

func (a *attempt) reportLoss(now protocol.Time, why error) {
	err := WrapError("hold", a.spec.Name, why)
	a.q.set.Logger.Warn("quorate: a hold was lost; its context has ended, and another client may hold the name now",
		"name", a.spec.Name, "token", a.token(0), "error", err)
	a.q.observer.call(Event{Kind: EventLost, Name: a.spec.Name, Token: a.token(0), Took: now.Sub(a.since), Err: err})
}
