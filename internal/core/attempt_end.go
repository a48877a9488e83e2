package core

// This file owns the end of an event: what follows for the caller, the timers,
// the nodes and the observer, in which order; and the callers that wait for a
// change of an attempt that is not its end.

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/rule"
	"github.com/quorate/quorate/internal/setup"
)

func (a *attempt) stepUnlock(now protocol.Time) { a.endUnlock(now, ordinary) }

// endUnlock queues the claim's requests, does what follows from a change of
// phase, unlocks a.mu, writes the requests, then calls owner and observer.
// Invariant: the holder's context ends before a node can get the leave, see
// below.
func (a *attempt) endUnlock(now protocol.Time, how ending) {
	news := a.claim.News(a.spec.shared)
	a.publish(news) // first: what is sent below may let the next one in
	var why error
	waiters := (news.Waiting || news.Calm) && a.owner != nil
	ended := news.Taken && news.Over() && a.owner != nil && (news.Lost() || how == closing)
	if ended && news.Lost() {
		why = a.lostWhy(now)
	}
	// Note: Here is an incorrect order:
	//
	//	a.q.Nodes.Flush(a.queue())
	//	a.owner.Ended()
	var leaves []protocol.Request
	if ended {
		if rule.On(rule.EndFirst) {
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
	a.follow(news, now)
	a.wakeWaits()
	a.mu.Unlock()
	switch {
	case how != unflushed:
		a.q.Nodes.Flush(nodes)
	// A tick handles many claims and writes to the nodes once, at its end.
	case ended || waiters: // requests of other attempts must not wait for the owner's callback
		a.q.Nodes.Flush(a.q.Nodes.Mask())
	}
	if ended {
		a.owner.Ended()
		a.mu.Lock()
		a.claim.Out = leaves
		nodes = a.queue()
		a.mu.Unlock()
		a.q.Nodes.Flush(nodes)
		a.q.telling.Add(-1)
	}
	// The log and the observer come last: the contexts have ended, and the
	// leaves are sent. They get a goroutine of their own, as they may block, or
	// end it (TestLoggerThatBlocksAtALoss).
	if why != nil {
		go a.reportLoss(now, why)
	}
	switch {
	case waiters && news.Waiting:
		a.owner.Waiting()
	case waiters:
		a.owner.Calm()
	}
}

// publish has those that hold no lock see until when the claim holds, and
// whether others wait for it. Called with a.mu held.
func (a *attempt) publish(news process.News) {
	standing := protocol.Time(0)
	switch {
	case news.Phase == lease.Holding:
		if standing = a.claim.Deadline() &^ 3; a.claim.Waiters() {
			standing |= 1
		}
		if a.claim.Muted() {
			standing |= 2
		}
	case a.claim.Evicted():
		standing = evicted
	case news.Phase == lease.Left && a.q.IsClosed():
		standing = shut
	}
	a.standing.Store(int64(standing))
}

// follow sets the timers for the phase that the claim is in now, and wakes the
// caller that waits for it. Called with a.mu held.
// Invariant: an attempt sends on done once: at its admission, or at its end if
// it was never admitted.
func (a *attempt) follow(news process.News, now protocol.Time) {
	switch {
	case !news.Changed():
	case news.Phase == lease.Waiting:
		a.q.waiting.Add(1)
	case news.Was == lease.Waiting:
		a.q.waiting.Add(-1)
	}
	if news.Changed() && news.Phase == lease.Holding {
		// The time of WithMaxHold begins when the caller gets the lock.
		if a.spec.Set.MaxHold > 0 && !a.spec.BoundLater {
			a.ends = time.AfterFunc(a.spec.Set.MaxHold, a.stopRenewal)
		}
		a.done <- struct{}{}
	}
	if news.Over() {
		a.q.attempts.drop(a.claim.ID)
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
		wake := a.claim.Wake()
		if news.Phase == lease.Holding {
			a.q.deadlines.Set(&a.alarms, a.claim.Deadline())
			if a.spec.Set.Warn != nil && news.Taken && a.owner != nil {
				wake = min(wake, a.warn(now))
			}
		}
		a.q.ticks.Set(&a.alarms, wake)
	}
}

// warn calls the application once when less of a lease is left than it wants to
// be warned of. It returns when that may be. A claim that a push has admitted
// may have little left at first, so its first renewal is given time. Called
// with a.mu held.
func (a *attempt) warn(now protocol.Time) protocol.Time {
	set := a.spec.Set
	at := max(a.claim.Deadline().Add(-set.WarnBefore), a.since.Add(set.NodeTimeout))
	if now < at {
		a.warned = false
		return at
	}
	if !a.warned {
		a.warned = true
		go func() {
			if l := a.owner.Turn((*Hold)(a)); l != nil {
				set.Warn(l)
			}
		}()
	}
	return protocol.Never
}

// noteLate tells the observer once when less than half of a lease is left: the
// answers of a quorum to the last renewal have not come in time. Called with
// a.mu held, as a renewal or its repetition is due.
func (a *attempt) noteLate(now protocol.Time) {
	left := a.claim.Deadline().Sub(now)
	late := a.claim.Phase() == lease.Holding && left < a.spec.Set.TTL/2 && !a.claim.Muted()
	if late && !a.late {
		err := WrapError("renew", a.spec.Name, a.failureAt(now, fault.ErrNoQuorum))
		a.q.Observer.Call(setup.Event{Kind: setup.EventRenewalLate, Name: a.spec.Name, Token: (*Hold)(a).Token(0), Took: left, Err: err})
	}
	a.late = late
}

func (a *attempt) reportLoss(now protocol.Time, why error) {
	err := WrapError("hold", a.spec.Name, why)
	a.q.Set.Logger.Warn("quorate: a hold was lost; its context has ended, and another client may hold the name now",
		"name", a.spec.Name, "token", (*Hold)(a).Token(0), "error", err)
	a.q.Observer.Call(setup.Event{Kind: setup.EventLost, Name: a.spec.Name, Token: (*Hold)(a).Token(0), Took: now.Sub(a.since), Err: err})
}

// wait is a goroutine that waits until a condition of an attempt holds. A
// change that can make one hold calls wakeWaits before a.mu is free.
type wait struct {
	so    func() bool   // called with a.mu held
	woken chan struct{} // has room for one, so that waking it never blocks
}

// until waits until so holds, for at most d and for as long as the context
// lasts. It reports whether so held.
func (a *attempt) until(ctx context.Context, d time.Duration, so func() bool) bool {
	a.mu.Lock()
	if so() {
		a.mu.Unlock()
		return true
	}
	w := wait{so, make(chan struct{}, 1)}
	a.waits = append(a.waits, w)
	a.mu.Unlock()

	// Without a.mu: the answers that make the condition hold need it. What
	// wakes this goroutine has called so under a.mu.
	a.only.Read(w.woken)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.woken:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waits = slices.DeleteFunc(a.waits, func(o wait) bool { return o.woken == w.woken })
	return len(w.woken) > 0 // at the last moment
}

// wakeWaits wakes the goroutines whose conditions hold. Called with a.mu held.
// endUnlock calls it after each event, and Transmit when it gives a leave up: a
// release that waits for that leave would otherwise wait for its whole bound.
func (a *attempt) wakeWaits() {
	a.waits = slices.DeleteFunc(a.waits, func(w wait) bool {
		if w.so() {
			w.woken <- struct{}{}
			return true
		}
		return false
	})
}
