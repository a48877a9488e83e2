package core

// The life of one attempt in the runtime: its start, the events that reach its
// claim, and its end. stepUnlock ends each event, and fixes the order in which
// the caller, the timers, the nodes and the observer learn of it. Events come
// from these goroutines:
//
//	the caller          start, take, leave, the renewal by Extend
//	a node's reader     answers and pushes of that node, see reply.go and peers/node.go
//	the ticks scheduler what the claim does at a given time: a beat, a repetition
//	one per deadline    the end of a hold
//	the pump of a flow  a request that has waited for room, see flow/flow.go

import (
	"cmp"
	"runtime"
	"time"

	"github.com/quorate/quorate/internal/flow"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/wake"
)

// start creates an attempt and sends its joins, without waiting for a node. The
// caller holds no lock, and has acquired startLimiter for the attempt unless
// the spec decides a successor. An unhealthy node gets a join too, but no
// decision waits for its answer.
func (q *claims) start(s *Spec, try bool, o Owner) *attempt {
	id := markKind(peers.NewID(), s.Kind)
	a := &attempt{q: q, spec: s, done: make(chan struct{}, 1), owner: o, counted: !s.decidesSuccessor}
	a.alarms.Init(a)
	if q.Set.Trace != nil {
		a.stats = new(traceStats)
	}
	a.mu.Lock() // once the attempt is listed a push can find it, and must find it started
	q.attempts.add(id, a)
	now, wall, client := q.Now(), time.Now(), q.Driver.Client
	// Read the configuration after add: from here on, the attempt learns of every
	// change.
	cfg := client.Config(s.decidesSuccessor)
	cfg.Terms = protocol.Terms{
		ID: id, Weight: s.Weight, Capacity: s.Capacity, TTL: s.Set.TTL, Counting: s.Counting,
		Notify: s.Notify,
	}
	cfg.Try, cfg.ShortHold, cfg.NoRenewal = try, s.ShortHold, s.Set.NoRenewal && !s.BoundLater
	cfg.NodeTimeout, cfg.Drift = s.Set.NodeTimeout, lease.Drift(s.Set.TTL)
	var links lease.Links
	busy := false
	for i, n := range q.Nodes.All() {
		state := n.Link.State(wall)
		links.Add(i, state.Err == nil && !state.NoVote, state.Waiting, n.Timeout(s.Set), state.Busy || s.Set.MinimalFanout)
		busy = busy || state.Busy
		if links.Unhealthy&(1<<i) != 0 {
			a.setNodeError(i, cmp.Or(state.Err, n.Unfit())) // a try may be over before the link has refused the join
		}
	}
	deferral := client.Fanout().Defer(&cfg, s.Name, s.shared.Contended(), links)
	client.Start(now, &a.claim, s.shared, cfg, links, deferral)
	if !busy {
		a.only = q.Nodes.Only(cfg.Sets.All())
	}
	a.stepUnlock(now, ordinary)
	return a
}

// event passes an event to the claim. It reads the clock under the lock, so
// time never goes back for a claim.
func (a *attempt) event(f func(c *process.Attempt, now protocol.Time)) {
	a.mu.Lock()
	now := a.q.Now()
	f(&a.claim, now)
	a.stepUnlock(now, ordinary)
}

// tick wakes the attempts that are due. Their requests, mostly renewals, are
// queued first and written together: with one write for each, renewing 100,000
// claims would spend most of its time in system calls. It runs on the goroutine
// of the ticks scheduler.
//
// Note: Here is an incorrect version:
//
//	for _, d := range due {
//		d.Sleeper().tick(ordinary)
//	}
func (q *claims) tick(due []wake.Alarm[attempt]) {
	for ; len(due) > flow.MaxUnflushed; due = due[flow.MaxUnflushed:] {
		q.tick(due[:flow.MaxUnflushed])
		// With few processors the goroutines that read the answers would
		// otherwise wait until all requests have been sent.
		runtime.Gosched()
	}
	for _, d := range due {
		d.Sleeper().touch()
	}
	for _, d := range due {
		if len(due) > 1 {
			d.Sleeper().tick(unflushed)
		} else {
			d.Sleeper().tick(ordinary)
		}
	}
	if len(due) > 1 {
		q.Nodes.Flush(q.Nodes.Mask())
	}
}

// tick tells the claim the time, and sends what is due. If how is unflushed,
// the caller flushes the links.
func (a *attempt) tick(how ending) {
	a.mu.Lock()
	now := a.q.Now()
	bare := a.becomesBare(now) // before the beat, judging by the answers to the last one
	a.claim.Tick(now)
	a.stepUnlock(now, how)
	if bare {
		a.tellBare()
	}
}

// enqueueAll hands requests to the links, and returns the nodes whose links
// need a Flush, one bit per node. Called with a.mu held.
// Invariant: the requests of one claim reach a link in the order of Step. If a
// leave arrived before the join of its claim, the join would keep the name
// taken for a whole lease with no holder.
func (a *attempt) enqueueAll(send []protocol.Request) (nodes uint32) {
	for i := range send {
		r := &send[i]
		a.stats.record(a.claim.State.Phase(), r.Node, nil)
		if a.enqueue(r) {
			nodes |= 1 << r.Node
		}
	}
	lease.Free(send)
	return nodes
}

// stopRenewal runs when the time of WithMaxHold is over. The hold then ends at
// its deadline, and is reported as lost.
func (a *attempt) stopRenewal() {
	a.event(func(c *process.Attempt, _ protocol.Time) { c.State.StopRenewal() })
}

// leave withdraws the claim from every node, without waiting. It decides under
// the lock whether a hold was lost or released, so the answer never changes.
func (a *attempt) leave() {
	a.event(func(c *process.Attempt, now protocol.Time) { c.Leave(now) })
}

// take gives the hold to the caller, if the attempt has one, and returns its
// phase. It is called once, after a receive from done.
func (a *attempt) take() lease.Phase {
	a.mu.Lock()
	now := a.q.Now()
	phase := a.claim.Take(now)
	if phase == lease.Holding {
		a.since = now
	}
	a.done = nil
	a.stepUnlock(now, ordinary)
	return phase
}

// stepUnlock ends an event. It enqueues what the claim wants sent, handles a
// change of the phase, unlocks a.mu, writes the requests, and then calls the
// owner and the observer.
// Invariant: the context of the holder ends before a node can get the leave,
// see below.
func (a *attempt) stepUnlock(now protocol.Time, how ending) {
	send, news := a.q.Driver.Client.Step(now, &a.claim, a.spec.shared)
	a.publish(news) // before the requests below are sent, because they may admit the next holder
	var why error
	waiters := (news.Waiting || news.Calm) && a.owner != nil
	ended := news.Taken && news.Over() && a.owner != nil && (news.Lost() || how == closing)
	if ended && news.Lost() {
		why = a.lostWhy(now)
	}
	// Note: Here is an incorrect order:
	//
	//	a.q.Nodes.Flush(a.enqueueAll(send))
	//	a.owner.Ended()
	var leaves []protocol.Request
	if ended {
		leaves, send = send, nil //mutant:EndFirst
		// Close waits for the callback. The leaves are sent after it.
		a.q.callbacks.running.Add(1)
	}
	nodes := a.enqueueAll(send)
	if a.counted && !a.claim.AwaitsFirstAnswers() {
		a.counted = false
		a.q.starts.release()
	}
	a.follow(news, now)
	a.wakeWaits()
	a.mu.Unlock()
	switch {
	case how != unflushed:
		a.q.Nodes.Flush(nodes)
	// claims.tick handles many claims and flushes once at the end, unless an
	// owner is called now: requests of other attempts must not wait for its
	// callback.
	case ended || waiters:
		a.q.Nodes.Flush(a.q.Nodes.Mask())
	}
	if ended {
		a.owner.Ended()
		a.mu.Lock()
		nodes = a.enqueueAll(leaves)
		a.mu.Unlock()
		a.q.Nodes.Flush(nodes)
		// The log and the observer come last: the contexts have ended, and the
		// leaves are sent. They get a goroutine of their own, because they may
		// block it (TestLoggerThatBlocksAtALoss).
		if why != nil {
			a.q.callbacks.start(func() { a.reportLoss(now, why) })
		}
		a.q.callbacks.running.Add(-1)
	}
	switch {
	case waiters && news.Waiting:
		a.owner.Waiting()
	case waiters:
		a.owner.Calm()
	}
}

// publish stores the claim's deadline, and whether others wait for it, for
// readers that take no lock. Called with a.mu held.
func (a *attempt) publish(news process.News) {
	s := packedState(0)
	switch {
	case news.Phase == lease.Holding:
		if s = packedState(a.claim.Deadline()) &^ packedBits; a.claim.State.Waiters() {
			s |= waited
		}
		if a.claim.State.Muted() {
			s |= unrenewed
		}
	case a.claim.State.Evicted():
		s = evicted
	case news.Phase == lease.Left && a.q.IsClosed():
		s = shut
	}
	a.packed.Store(int64(s))
}

// follow sets the timers for the current phase of the claim, and wakes the
// caller that waits for it. Called with a.mu held.
// Invariant: an attempt sends on done exactly once: at its admission, or at its
// end if it was never admitted.
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
			a.maxHoldTimer = time.AfterFunc(a.spec.Set.MaxHold, a.stopRenewal)
		}
		a.done <- struct{}{}
	}
	if news.Over() {
		a.q.attempts.drop(a.claim.State.ID)
		a.q.ticks.Drop(&a.alarms)
		if news.Was == lease.Holding {
			a.q.deadlines.Drop(&a.alarms)
			if a.maxHoldTimer != nil {
				a.maxHoldTimer.Stop()
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

// warn calls the application once when less of the lease is left than the
// application asked to be warned of. It returns when to check again. After an
// admission the first renewal gets time to arrive, because a push may have
// admitted the claim late in its lease. Called with a.mu held.
func (a *attempt) warn(now protocol.Time) protocol.Time {
	set := a.spec.Set
	at := max(a.claim.Deadline().Add(-set.WarnBefore), a.since.Add(set.NodeTimeout))
	if now < at {
		a.warned = false
		return at
	}
	if !a.warned {
		a.warned = true
		go a.owner.Warn(Hold{a}, set.Warn)
	}
	return protocol.Never
}

// reportLoss logs a loss and tells the observer.
func (a *attempt) reportLoss(now protocol.Time, why error) {
	err := WrapError("hold", a.spec.Name, why)
	a.q.Set.Logger.Warn("quorate: a hold was lost; its context has ended, and another client may hold the name now",
		"name", a.spec.Name, "token", Hold{a}.Token(0), "error", err)
	a.q.Observer.Call(setup.Event{
		Kind: setup.EventLost, Name: a.spec.Name, Token: Hold{a}.Token(0), Took: now.Sub(a.since), Err: err,
	})
}
