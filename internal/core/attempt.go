package core

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/transport"
)

// attempt drives one protocol.Claim: it gives the claim the time and the
// events, and does what the claim says.
type attempt struct {
	q     *Quorum
	spec  *Spec
	owner Owner // nil: nobody is told

	// For whoever only looks: until when it is held, 0 if it is not, and in the
	// lowest bit, a nanosecond that is given up, whether somebody waits behind it.
	standing atomic.Int64

	mu    sync.Mutex
	claim protocol.Claim
	since protocol.Time // when whoever asked for it got it
	done  chan struct{} // receives at admission, or at the end of an attempt that was not admitted; nil when that has been seen
	ends  *time.Timer   // WithMaxHold
	errs  map[int]error // by node: the newest thing that it said against the claim
	waits *wait         // those who wait for something to be so

	alarms    alarms
	unsent    *[32]*call // by node: the request that waits for room there, see flow; nil while none has
	outbox    protocol.Outbox
	acks      uint32         // nodes that are known to be free of the claim after its end, a bit for each
	phase     protocol.Phase // as last seen by flush
	replies   uint8          // leaves that have been answered or given up
	claimed   bool           // somebody has the Hold, so a loss concerns him
	closing   bool           // its Quorum closes
	unflushed bool           // what is to be sent now is for a Flush, see Quorum.tick
	fresh     bool           // what is to be sent now must not be merged with what is under way
	met       bool           // a node knows of others at the name
	told      bool           // the owner has been told of those who wait
}

// note keeps the newest thing that a node said against the claim.
func (a *attempt) note(node int, err error) {
	switch {
	case err == nil:
		delete(a.errs, node)
	case a.errs == nil:
		a.errs = map[int]error{node: err}
	default:
		a.errs[node] = err
	}
}

// dones are spare channels for attempts: an attempt sends once, and one from
// which that has been received is empty, and nobody's.
var dones = sync.Pool{New: func() any { return make(chan struct{}, 1) }}

// start makes an attempt and sends its joins.
func (q *Quorum) start(s *Spec, try bool, o Owner) *attempt {
	id := q.newID()
	a := &attempt{q: q, spec: s, done: dones.Get().(chan struct{}), owner: o}
	unwell, busy, wall := uint32(0), 0, time.Now()
	for i, n := range q.nodes {
		state := n.link.State(wall)
		if state.Busy {
			busy++
		}
		if !state.Healthy(n.timeout(s.Set)) {
			unwell |= 1 << i
		}
	}
	a.claim = *protocol.NewClaim(protocol.Config{
		Terms:       protocol.Terms{ID: id, Weight: s.Weight, Capacity: s.Capacity, TTL: s.Set.TTL, Counting: s.Counting, Notify: s.Notify},
		Nodes:       len(q.nodes),
		NodeTimeout: q.patience(s.Set, unwell),
		Drift:       s.Set.Drift(),
		Try:         try,
		Window:      q.window,
		Rules:       rules(),
	})
	a.outbox.Rules = a.claim.Rules
	if s.Set.NoRenewal {
		a.claim.StopRenewal()
	}
	a.mu.Lock() // whoever finds a registered attempt finds it started
	q.register(id, a)
	now := q.now()
	if s.Set.Thrift {
		busy = len(q.nodes)
	}
	deferred, after := q.fanout.Defer(protocol.Start{
		Name: s.Name, ID: id, ShortHold: s.Brief, Contended: !s.quiet(), Renewed: !s.Set.NoRenewal,
		Unwell: unwell, Busy: busy, Timeout: s.Set.NodeTimeout,
	})
	a.claim.Start(now, q.ticket(s, id), deferred, after)
	for i, n := range q.nodes {
		if unwell&(1<<i) != 0 {
			a.note(i, n.err()) // a try may be over before the link has refused the join
			a.claim.Suspect(now, i)
		}
	}
	a.flushUnlock(now)
	return a
}

// event gives the claim an event and does what follows from it.
func (a *attempt) event(f func(c *protocol.Claim, now protocol.Time)) {
	a.mu.Lock()
	now := a.q.now()
	f(&a.claim, now)
	a.flushUnlock(now)
}

// together is for how many claims at most the scheduler collects what they have to say.
const together = 2 * transport.MaxBatch

// tick wakes those that are due. What many of them have to say, as a rule that
// they are still there, goes out together.
func (q *Quorum) tick(due []alarm) {
	for ; len(due) > together; due = due[together:] {
		q.tick(due[:together])
		runtime.Gosched()
	}
	for _, d := range due {
		d.a.touch()
	}
	for _, d := range due {
		d.a.tick(len(due) > 1)
	}
	if len(due) > 1 {
		q.flush(q.allNodes())
	}
}

// touch has the processor fetch what an attempt is made of. For many, one after
// the other and before anything is done with the first, it does that at the same
// time; else each would be waited for. What it returns is of no interest.
func (a *attempt) touch() bool {
	return a.spec.quiet() && a.standing.Load() > a.alarms[ticks].Load()
}

func (q *Quorum) allNodes() uint32 { return 1<<len(q.nodes) - 1 }

// flush writes what has been queued for the nodes, a bit for each.
func (q *Quorum) flush(nodes uint32) {
	for ; nodes != 0; nodes &= nodes - 1 {
		q.nodes[bits.TrailingZeros32(nodes)].link.Flush()
	}
}

// tick lets time pass. What there is to send may be left to a Flush.
func (a *attempt) tick(unflushed bool) {
	a.mu.Lock()
	a.unflushed = unflushed
	now := a.q.now()
	a.claim.Tick(now)
	a.flushUnlock(now)
}

// queue hands the claim's requests to the links, in order: it runs with a.mu
// held, so a leave cannot overtake its own join on its way to the link. They are
// written when a.mu is free again: the first answers come while the last requests
// are being written, and whoever takes them need not wait for that. It returns the
// nodes for which that is left to the caller, a bit for each.
func (a *attempt) queue() (nodes uint32) {
	for _, r := range a.claim.Out {
		if a.offer(r) {
			nodes |= 1 << r.Node
		}
	}
	a.claim.Sent()
	return nodes
}

// flushUnlock sends what the claim wants sent, draws the consequences of a
// change of phase, and unlocks a.mu before it calls anybody back.
func (a *attempt) flushUnlock(now protocol.Time) {
	phase, was := a.claim.Phase(), a.phase
	a.phase = phase
	standing := protocol.Time(0)
	if phase == protocol.Holding {
		if standing = a.claim.Deadline() &^ 1; a.claim.Waiters() {
			standing |= 1
		}
	}
	a.standing.Store(int64(standing)) // first: what is sent below may let the next one in
	var ended, why error
	waiters := false
	if was == protocol.Holding && a.claimed && a.owner != nil {
		switch {
		case phase == protocol.Lost:
			ended, why = ErrLost, a.lostWhy(now)
		case phase.Final() && a.closing:
			ended = ErrClosed
		}
	}
	// Note: Here is an incorrect order:
	//
	//	a.q.flush(a.queue())
	//	a.owner.Ended(ErrLost)
	//
	// A node that gets the leave gives its vote to the next at once, and the next
	// could have the lock before this holder has been told that it has lost it.
	var leaves []protocol.Request
	if ended != nil {
		if on(RuleEndFirst) {
			leaves, a.claim.Out = a.claim.Out, nil
		}
		a.q.telling.Add(1)
	}
	nodes := a.queue()
	unflushed := a.unflushed
	a.unflushed, a.fresh = false, false
	if phase != was && phase == protocol.Holding {
		if a.spec.Set.MaxHold > 0 {
			a.ends = time.AfterFunc(a.spec.Set.MaxHold, a.stopRenewal)
		}
		a.done <- struct{}{}
	}
	if phase.Final() && !was.Final() {
		for i := range a.q.nodes {
			if a.claim.Untouched(i) { // and is free of the claim without being asked
				a.acks |= 1 << i
				a.replies++
			}
		}
		a.q.forget(a)
		a.q.ticks.drop(a)
		if was == protocol.Holding {
			a.q.deadlines.drop(a)
			if a.ends != nil {
				a.ends.Stop()
			}
		} else {
			a.done <- struct{}{}
		}
	}
	if !phase.Final() {
		a.q.ticks.set(a, a.claim.Wake())
		if phase == protocol.Holding {
			a.q.deadlines.set(a, a.claim.Deadline())
		}
		if now := standing&1 != 0; a.claimed && now != a.told {
			a.told, waiters = now, now && a.owner != nil
			if now {
				a.spec.crowd(true)
			}
		}
	}
	a.wakeWaits()
	a.mu.Unlock()
	switch {
	case !unflushed:
		a.q.flush(nodes)
	case ended != nil || waiters: // what others have queued need not wait for whoever is told
		a.q.flush(a.q.allNodes())
	}
	if ended != nil {
		a.owner.Ended(ended)
		a.mu.Lock()
		a.claim.Out = leaves
		nodes = a.queue()
		a.mu.Unlock()
		a.q.flush(nodes)
		a.q.telling.Add(-1)
	}
	if ended == ErrLost {
		err := Dress("hold", a.spec.Name, why)
		a.q.set.Logger.Warn("quorate: a hold was lost; its context has ended, and another client may hold the name now",
			"name", a.spec.Name, "token", a.token(0), "error", err)
		a.q.observe(Event{Kind: EventLost, Name: a.spec.Name, Token: a.token(0), Took: now.Sub(a.since), Err: err})
	}
	if waiters {
		a.owner.Waiting()
	}
}

func (a *attempt) stopRenewal() {
	a.event(func(c *protocol.Claim, _ protocol.Time) { c.StopRenewal() })
}

// valid reports whether the claim is held now. Called with a.mu held.
func (a *attempt) valid(now protocol.Time) bool {
	return a.claim.Phase() == protocol.Holding && now < a.claim.Deadline()
}

// token is ticket * 2^10 + n.
func (a *attempt) token(n int) uint64 { return uint64(a.claim.Ticket())*MaxPasses + uint64(n) }

// leave withdraws the claim from every node. It does not wait, and reports
// whether there was a hold to end.
func (a *attempt) leave() bool {
	a.mu.Lock()
	now := a.q.now()
	held := a.valid(now)
	a.claim.Leave(now)
	a.flushUnlock(now)
	return held
}

// take looks at what became of the attempt; somebody is there to have the hold.
// It is called once, after done has received.
func (a *attempt) take() protocol.Phase {
	a.mu.Lock()
	now := a.q.now()
	a.claim.Tick(now) // the admission may have ended before its goroutine came to run
	phase := a.claim.Phase()
	if a.claimed = phase == protocol.Holding; a.claimed {
		a.since = now
	}
	dones.Put(a.done)
	a.done = nil
	a.flushUnlock(now)
	return phase
}
