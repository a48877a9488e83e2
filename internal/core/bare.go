package core

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/setup"
)

// bareHolds returns the holds that losing one more node would end although
// another node answers: see lease.State.Bare.
func (q *claims) bareHolds() (all []report.BareHold) {
	for _, a := range q.attempts.list() {
		a.mu.Lock()
		rests := a.claim.State.Bare(q.Now())
		a.mu.Unlock()
		if rests == 0 {
			continue
		}
		b := report.BareHold{Name: a.spec.Name, Token: Hold{a}.Token(0)}
		for i, n := range q.Nodes.All() {
			if rests&(1<<i) != 0 {
				b.Nodes = append(b.Nodes, n.Addr)
			}
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b report.BareHold) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Token, b.Token))
	})
	return all
}

// becomesBare reports whether the hold has begun to rest on a bare majority
// since its last beat. Called with a.mu held.
func (a *attempt) becomesBare(now protocol.Time) bool {
	was := a.bare
	a.bare = a.claim.State.Bare(now) != 0
	return a.bare && !was
}

// tellBare reports such a hold to the observer. Called with no lock held.
func (a *attempt) tellBare() {
	a.q.Observer.Call(setup.Event{Kind: setup.EventBareHold, Name: a.spec.Name, Token: Hold{a}.Token(0)})
}
