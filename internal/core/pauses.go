package core

// Leaves that a node has refused. They are sent again after a pause, or when
// Close begins. Close reports those that were refused for good.

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/transport"
)

// pauses holds leaves that a node has refused, until they are sent to that node
// again. It is safe for concurrent use: mu guards the fields below it. A leave
// is sent by its timer or by end, whichever removes it from all.
//
// Note: A goroutine for each leave, which waits for the pause or for Over,
// would be wrong: a node may refuse the leaves of 100,000 claims.
type pauses struct {
	sending sync.WaitGroup // by timers

	mu      sync.Mutex
	ended   bool
	all     map[transport.Command]paused
	refused map[*peers.Node]refused
}

type paused struct {
	node  *peers.Node
	timer *time.Timer
}

// refused counts the leaves that a node has refused and that are not sent
// again.
type refused struct {
	leaves int
	err    error     // the newest error
	until  time.Time // when the last of their leases ends
	logged time.Time // when a refusal of the node was last logged
}

// put schedules a leave to be sent after a pause. It returns false if end has
// been called.
func (p *pauses) put(c transport.Command, n *peers.Node, pause time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	if p.all == nil {
		p.all = map[transport.Command]paused{}
	}
	p.all[c] = paused{n, time.AfterFunc(pause, func() { p.over(c, n) })}
	return true
}

// over sends a leave whose pause has passed, unless end has already sent it.
func (p *pauses) over(c transport.Command, n *peers.Node) {
	p.mu.Lock()
	_, waits := p.all[c]
	if waits {
		delete(p.all, c)
		p.sending.Add(1)
	}
	p.mu.Unlock()
	if waits {
		defer p.sending.Done()
		n.Send(c)
	}
}

// end sends all leaves now, and waits for timers that are sending one. Close
// calls it; after that no leave is sent again, and no refusal is logged.
func (p *pauses) end() {
	p.mu.Lock()
	all := p.all
	p.all, p.ended = nil, true
	now := time.Now()
	maps.DeleteFunc(p.refused, func(_ *peers.Node, r refused) bool { return r.until.Before(now) })
	p.mu.Unlock()
	for c, w := range all {
		w.timer.Stop()
		w.node.Send(c)
	}
	p.sending.Wait()
}

// refuse records for Close that a node has refused a leave for good, and logs it
// by calls. The lease that the leave should have ended lasts until until.
func (p *pauses) refuse(n *peers.Node, err error, until time.Time, calls *callbacks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, r := time.Now(), p.refused[n]
	if r.until.Before(now) {
		r.leaves = 0
	}
	r.leaves++
	r.err = err
	if r.until.Before(until) {
		r.until = until
	}
	if !p.ended && now.Sub(r.logged) >= 10*time.Second { // a node may refuse the leaves of 100,000 claims
		r.logged = now
		calls.start(func() {
			n.Logger.Warn("quorate: node refused to release a name; the name stays locked there until its lease "+
				"expires",
				"node", n.Addr, "error", err)
		})
	}
	if p.refused == nil {
		p.refused = map[*peers.Node]refused{}
	}
	p.refused[n] = r
}

// refusals returns an error for the leaves that nodes have refused, or nil. It
// leaves out nodes where all of these leases had ended before end was called.
// Invariant: Close does not report success if a claim stays on a node for the
// rest of its lease.
func (p *pauses) refusals() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	byIndex := func(a, b *peers.Node) int { return cmp.Compare(a.Index, b.Index) }
	for _, n := range slices.SortedFunc(maps.Keys(p.refused), byIndex) {
		err = errors.Join(err, fmt.Errorf("%s refused %s: %w", n.Addr,
			fault.Count(p.refused[n].leaves, "release"), p.refused[n].err))
	}
	return err
}
