package quorate

import (
	"context"

	"github.com/quorate/quorate/internal/core"
)

// AddNodes adds nodes to the set, while locks are held and waited for. Each url
// is one that [Connect] takes, of a single server that is empty or was a node
// of this set. The nodes must have recorded their set ([Quorum.Bootstrap],
// [Quorum.RecordSet]).
//
// It returns when a majority of the new set serves it. That takes two guard
// times and moments more. In the first one the new nodes take in the claims of
// the others, and they are brought what was recorded. In the second one a lock
// needs a majority of both sets. Holders keep their holds, waiters their
// places, and tokens rise. Clients follow by themselves, also those with the
// list of before. Give the new list to each client before the next exchange: a
// client that starts needs a node of its list that is still a member, or was
// one and runs.
//
// One exchange is under way at a time. A call that finds another one finishes
// that first, also one that a process has left half-way. So of several
// operators each gets what was asked for, or an error. A call that is repeated
// finds its nodes added and returns nil.
//
// When ctx ends, or a new node has not answered for a guard time, the exchange
// is given up: the set is as before, as the error says. If it cannot be given
// up any more, or the process dies, the set is left half-way. That is safe for
// as long as it lasts, and locks work. The next call goes on with it, and
// [Quorum.UndoExchange] gives it up. [Quorum.Check] tells how far it is.
//
// It fails with [ErrInvalid], and changes nothing, when no set is recorded, a
// node is of another set, in use, a replica or a member already under another
// address, and when one of the nodes is a cluster; with [ErrNoQuorum] when a
// node cannot be reached; with the error of ctx, and with [ErrClosed]. It is
// safe for concurrent use, by several processes as well.
func (q *Quorum) AddNodes(ctx context.Context, urls ...string) error {
	return q.exchange(ctx, "add nodes", core.Exchange{Add: urls})
}

// RemoveNodes removes nodes from the set. Each is given by its address, as
// [Report] names it, or by a URL of that address. A node that is down for good
// is removed like any other one: nothing waits for it. A majority of the set of
// before and one of the rest must answer.
//
// It takes about two guard times: holders get their places at the nodes that
// stay first. Where a node of four leaves, or of two, it takes one. All else is
// as [Quorum.AddNodes] says.
//
// Stop the server once it is removed, or empty it. A client must not start with
// a list whose nodes have all been removed and emptied.
func (q *Quorum) RemoveNodes(ctx context.Context, addrs ...string) error {
	return q.exchange(ctx, "remove nodes", core.Exchange{Remove: addrs})
}

// ReplaceNode replaces one node of the set by another one, in one exchange. old
// is as for [Quorum.RemoveNodes], and may be down for good. url is as for
// [Quorum.AddNodes], which says all else. It takes about two guard times.
//
// A server that was emptied or got a new disk and keeps its address needs no
// call: it takes its place by itself.
func (q *Quorum) ReplaceNode(ctx context.Context, old, url string) error {
	return q.exchange(ctx, "replace node", core.Exchange{Add: []string{url}, Remove: []string{old}})
}

// UndoExchange gives up an exchange of nodes that a process has left half-way,
// or that another one waits for: the set is as before when it returns nil, also
// where there was no exchange to undo. It does not wait for nodes that were to
// be added. It takes moments.
//
// It fails with [ErrNoQuorum] when no majority of the nodes of before answers,
// with the error of ctx, and with [ErrClosed]. A call that was interrupted may
// be repeated.
func (q *Quorum) UndoExchange(ctx context.Context) error {
	return q.exchange(ctx, "undo exchange", core.Exchange{Undo: true})
}

func (q *Quorum) exchange(ctx context.Context, op string, x core.Exchange) error {
	return wrapError(op, "", q.mustCore().Exchange(ctx, x))
}
