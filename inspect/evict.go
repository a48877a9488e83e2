package inspect

// Evicting a holder. The nodes store nothing about an eviction: see rule 10 of
// docs/internals/protocol.md.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/setup"
)

// Evict ends the hold with the given token so that the next claim gets in, and
// returns when the hold is over. The hold's contexts end first, with
// [quorate.ErrEvicted] as their cause. One message is enough if the holder
// receives it. If the holder is stopped, dead or cut off, it loses the name
// when its lease expires.
//
// The token comes from a [Claim] or a [quorate.Lease]. Everything that a
// process holds with that claim ends together: all its readers of an rwmutex,
// and the turn of whichever goroutine has the lock by then. Other holders of a
// semaphore are not affected. The process may claim the name again, behind the
// clients that are already waiting.
//
// Evict waits at most as long as the holder's lease. It returns
// [quorate.ErrNotHeld] if no claim holds the name with that token;
// [quorate.ErrNoQuorum] if fewer than a majority of the nodes can be reached;
// and [quorate.ErrHeld], including what each node said, if the holder continues
// because it has not received the message. If ctx is done, the error also
// matches ctx's error. Evict can also return [quorate.ErrInvalid] and
// [quorate.ErrClosed].
func Evict(ctx context.Context, q *quorate.Quorum, name string, token uint64) error {
	if err := setup.CheckName(name); err != nil {
		return core.WrapError("evict", name, err)
	}
	return core.WrapError("evict", name, evict(ctx, core.CoreOf(q).For(name).Onlooker(), name, token))
}

var (
	errDeaf = fmt.Errorf("%w: the holder is still renewing and has not received the eviction: end its "+
		"process, or make sure that it may subscribe to its channel and runs this version", fault.ErrHeld)
	errUnheard = errors.New("has the claim, but its holder is not subscribed there")
	errTold    = errors.New("has the claim, and has sent the eviction")
	errNoVote  = errors.New("has the claim, but does not vote for it")
)

// evict tells the nodes to end the hold, repeatedly, until it is over.
// Invariant: it returns nil only when a quorum of nodes that remember has no
// such claim, so the hold is also over in its process.
func evict(ctx context.Context, q core.Onlooker, name string, token uint64) error {
	until, pause, seen := time.Now().Add(patience), 10*time.Millisecond, false
	voted := uint32(0) // the nodes that have voted for it, at any time
	var v view
	for {
		late := time.Now().After(until)
		said, err := queues(ctx, q, name, 0, protocol.Ticket(token/core.MaxPasses), everyNode)
		if err != nil {
			return err
		}
		if v.nodes == nil || ctx.Err() == nil { // else some were not waited for
			v = said
		}
		gone, idle, left := uint32(0), uint32(0), time.Duration(0)
		for _, n := range v.nodes {
			switch e := n.queue.Evicted; {
			case n.Err != nil || n.queue.Memory == 0:
			case e.Left == 0:
				gone |= 1 << n.Index
			case e.Voted:
				voted |= 1 << n.Index
			default:
				idle |= 1 << n.Index
			}
			left = max(left, n.queue.Evicted.Left)
		}
		switch {
		case seen && v.sets.Met(gone):
			return nil
		// A claim that waits may have the votes of a few nodes.
		case v.sets.Met(gone|idle) && !v.sets.Met(voted):
			return &fault.Failure{Err: fmt.Errorf("%w: no process holds it with token %d", fault.ErrNotHeld, token)}
		case ctx.Err() != nil:
			return v.cutShort(ctx)
		case late && v.missing() != nil:
			return v.missing()
		case late:
			return &fault.Failure{Err: errDeaf, Nodes: v.said()}
		case !seen && left > 0:
			seen, until = true, time.Now().Add(left)
		}
		select {
		case <-ctx.Done():
			return v.cutShort(ctx)
		case <-time.After(pause):
		}
		pause = min(2*pause, 250*time.Millisecond)
	}
}

// cutShort is the error of an eviction whose context has ended.
func (v *view) cutShort(ctx context.Context) error {
	f := fault.CutShort(fault.ErrHeld, ctx)
	if v.missing() != nil {
		f = fault.CutShort(fault.ErrNoQuorum, ctx)
	}
	f.Nodes = v.said()
	return f
}

// said is what keeps each node from having lost the claim.
func (v *view) said() (nodes []fault.NodeFailure) {
	for _, n := range v.nodes {
		err := n.Err
		switch e := n.queue.Evicted; {
		case err != nil:
		case n.queue.Memory == 0:
			err = errForgetful
		case e.Heard > 0:
			err = errTold
		case e.Voted:
			err = errUnheard
		case e.Left > 0:
			err = errNoVote
		default:
			continue
		}
		nodes = append(nodes, fault.NodeFailure{Addr: n.Addr, Err: err})
	}
	return nodes
}
