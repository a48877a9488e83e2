package core

// Leaves that a node has refused. They are sent again after a pause, or when
// Close begins. Close reports those that are refused again.

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
	refused map[*peers.Node]refused   // after end
	logged  map[*peers.Node]time.Time // when a refusal of the node was last logged
}

type paused struct {
	node  *peers.Node
	timer *time.Timer
}

// refused counts the leaves that a node has refused and that are not sent
// again.
type refused struct {
	leaves int
	err    error // the newest error
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
// calls it; after that no leave is sent again.
func (p *pauses) end() {
	p.mu.Lock()
	all := p.all
	p.all, p.ended = nil, true
	p.mu.Unlock()
	for c, w := range all {
		w.timer.Stop()
		w.node.Send(c)
	}
	p.sending.Wait()
}

// refuse logs a leave that a node has refused for good, or records it for Close
// after end.
func (p *pauses) refuse(n *peers.Node, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		if time.Since(p.logged[n]) < 10*time.Second { // a node may refuse the leaves of 100,000 claims
			return
		}
		if p.logged == nil {
			p.logged = map[*peers.Node]time.Time{}
		}
		p.logged[n] = time.Now()
		go n.Logger.Warn("quorate: node refused to release a name; the name stays locked there until its lease expires",
			"node", n.Addr, "error", err)
		return
	}
	if p.refused == nil {
		p.refused = map[*peers.Node]refused{}
	}
	p.refused[n] = refused{p.refused[n].leaves + 1, err}
}

// refusals returns an error for the leaves that nodes have refused after end,
// or nil.
// Invariant: Close does not report success if a claim stays on a node for the
// rest of its lease.
func (p *pauses) refusals() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	byIndex := func(a, b *peers.Node) int { return cmp.Compare(a.Index, b.Index) }
	for _, n := range slices.SortedFunc(maps.Keys(p.refused), byIndex) {
		err = errors.Join(err, fmt.Errorf("%s refused %s: %w", n.Addr, fault.Count(p.refused[n].leaves, "release"), p.refused[n].err))
	}
	return err
}
