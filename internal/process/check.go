package process

import (
	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/protocol"
)

// What must hold in this package after each event. Builds with the tag
// invariants check it.

// check panics if an event has broken an invariant of the local queue.
func (q *LocalQueue[C, H]) check() {
	var none H
	held := q.mode == Write || q.mode == Read
	invariant.Check(q.mode != Write || q.callers == 1, "a writer holds the value alone")
	invariant.Check(held == (q.callers > 0), "callers hold the value in some mode")
	invariant.Check(!held || q.claimMode == q.mode,
		"the claim has the weight of the mode in which the value is held")
	invariant.Check(!held || q.claim != none, "the value is held under a claim")
	invariant.Check(q.mode != getting || q.claim == none,
		"a claim that is neither held nor lingers has been left")
	invariant.Check(q.mode != idle || q.line.Len() == 0,
		"while callers wait, the value is held or its claim is under way")
}

// check panics if the outbox of an attempt is inconsistent.
func (o *outbox) check() {
	invariant.Check(o.merged&^o.flying == 0, "a repetition is merged only with a request in flight")
	invariant.Check(o.flying&^o.sent == 0, "only what was sent is in flight")
	if o.unsent == nil {
		return
	}
	for i, r := range o.unsent {
		invariant.Check(r == nil || r.Node == i && !r.Withdrawn,
			"a request waits at its node until it is withdrawn")
	}
}

// check panics if Behind would be wrong about a class.
func (b *Backlog[T]) check(k protocol.Class) {
	invariant.Check((b.queues[k].Len() > 0) == (b.wait.Load()&(1<<k) != 0),
		"a class waits while its queue has requests")
}
