package core

// This file owns the commands by which the Client learns which data a server
// has: two addresses may be one server, and one address may get another
// server's data. What follows from the answers is in protocol/incarnation.go
// and servers.go.

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// DuplicateError says that a node is the same server as another one, under
// another address.
type DuplicateError struct{ Addr string } // of the other

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("is the same server as %s, whose vote would count twice; give each server once", e.Addr)
}

// beginIncarnation has a node begin another incarnation. a.Try comes back with
// the result, so that the Client knows an answer to an older question.
func (n *node) beginIncarnation(a *protocol.Action) {
	q := n.q
	lost, try := script.Lost, a.Try
	if a.Incarnation != 0 {
		lost = strconv.FormatUint(uint64(a.Incarnation), 10)
	}
	n.send(&adminRequest{command: n.mark(n.info(), n.info().Run(), lost), reply: func(v []resp.Value, err error) {
		inc, _, e := script.DecodeMarker(v)
		q.driver.carryOut(q.driver.client.Marked(q.now(), n.index, try, inc, err == nil && e == nil))
	}})
}

// compare finds out whether two nodes with one incarnation are one server: a
// key that is written to the one is there at the other. It needs answers of two
// nodes, so it runs in a task: a reader that waited here would wait for its own
// node.
func (n *node) compare(a protocol.Action) {
	q := n.q
	q.tasks.start(func() {
		ctx, cancel := context.WithTimeout(context.Background(), q.Rounds(&q.set, 2))
		defer cancel()
		same, err := q.driver.sameServer(ctx, n, q.nodes.at(a.Other))
		q.driver.carryOut(q.driver.client.Compared(q.now(), n.index, a.Try, a.Other, same, err == nil))
	})
}

// duplicate returns why node i does not vote, nil if it may. forGood takes it
// for final: the list is at fault. A claim that waited for such a node would
// wait without end.
func (d *driver) duplicate(i int) error {
	if other := d.client.Duplicate(i); other >= 0 {
		return &DuplicateError{d.q.addr(other)}
	}
	return nil
}

// addr is what node i is called. New knows the names of its list before the
// nodes are there.
func (q *Quorum) addr(i int) string {
	if i < q.nodes.size() {
		return q.nodes.at(i).addr
	}
	return q.addrs[i]
}

// twice reports whether two nodes are members, as far as is known. A set that
// has exchanged nodes may know one by another address than the list; then one
// of the two has no vote, and there is nothing to mend.
func (d *driver) twice(i, j int) bool {
	g := d.client.Group()
	return j >= 0 && g.Absent&(1<<i|1<<j) == 0
}

// duplicates returns an error if two nodes are known to be one server.
func (d *driver) duplicates() error {
	for i := range max(len(d.q.addrs), d.q.nodes.size()) {
		if err := d.duplicate(i); err != nil && d.twice(i, d.client.Duplicate(i)) {
			return &Failure{Err: fmt.Errorf("%w: node %s %w", ErrInvalid, d.q.addr(i), err)}
		}
	}
	return nil
}

var errOtherIncarnation = errors.New("has lost its data, or got another node's, since the connection began")

// checkIncarnation says why a reply of that incarnation does not count. It is
// for answers beside claims and records, such as a marker. The caller holds no
// lock: what follows may be an event of each claim.
func (d *driver) checkIncarnation(node int, inc protocol.Incarnation) error {
	why, do := d.client.Check(d.q.now(), node, inc)
	d.carryOut(do)
	return d.uncounted(node, why)
}

// uncounted returns why a reply of a node does not count, nil if it counts. A
// duplicate whose other address has left the server since the verdict is no
// duplicate any more. Its reply did not count all the same, so it gets the
// other error.
func (d *driver) uncounted(node int, why protocol.Why) error {
	switch why {
	case protocol.Counts:
		return nil
	case protocol.Parted:
		return errParted
	case protocol.Duplicate:
		if err := d.duplicate(node); err != nil {
			return err
		}
	}
	return errOtherIncarnation
}

// sameServer writes a key to one node and looks for it at another one. The key
// ends in :heal, as no name does. The key has a random id: what another client
// compares at the same time is another key. It ends by itself, in case the DEL
// is lost.
func (d *driver) sameServer(ctx context.Context, n, other *node) (bool, error) {
	key := d.q.set.Prefix + ":" + newID().String() + ":heal"
	if _, err := n.do(ctx, "SET", key, "1", "PX", strconv.FormatInt((10*d.q.set.NodeTimeout).Milliseconds(), 10)); err != nil {
		return false, err
	}
	v, err := other.do(ctx, "GET", key)
	n.send(&adminRequest{command: resp.AppendCommand(nil, "DEL", key)})
	return err == nil && text(v, 0) == "1", err
}
