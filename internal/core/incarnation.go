package core

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/redis/go-redis/v9"
)

// DuplicateError says that a node is the same server as another one, under another address.
type DuplicateError struct{ Addr string } // of the other

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("is the same server as %s, whose vote would count twice; give each server once", e.Addr)
}

// incarnations owns the state machine that decides which replies of a node count. This
// file passes it the events and does what it says. mu guards known. votes is a copy for
// readers without mu.
//
// Invariant: votes is written under mu after each event, before the actions of the event
// are carried out. A reply that is judged by an old value is judged as if it had come
// before the event.
type incarnations struct {
	mu    sync.Mutex
	known *protocol.Incarnations
	addrs []string
	votes []atomic.Uint64 // per node: known.Voting, so that replies are judged without a lock
}

func newIncarnations(clients []redis.UniversalClient, guard time.Duration) *incarnations {
	n := len(clients)
	in := &incarnations{
		known: protocol.NewIncarnations(n, guard, rules()),
		votes: make([]atomic.Uint64, n),
	}
	for _, c := range clients {
		in.addrs = append(in.addrs, c.(*redis.Client).Options().Addr)
	}
	return in
}

// life passes an event of node n to protocol.Incarnations, and does what it says then.
func (q *Quorum) life(n *node, event func(s *protocol.Incarnations, now protocol.Time)) {
	in := q.incarnations
	in.mu.Lock() // of two addresses that show one incarnation the second must find the first
	event(in.known, q.now())
	in.votes[n.index].Store(uint64(in.known.Voting(n.index)))
	todo := in.known.Out
	in.known.Out = nil
	in.mu.Unlock() // claims and observers hear of what follows
	for _, a := range todo {
		q.heed(n, a)
	}
}

// heed does what protocol.Incarnations says.
func (q *Quorum) heed(n *node, a protocol.NodeAction) {
	switch a.Kind {
	case protocol.NodeMet:
		q.judge(func(j *protocol.Clocks) { j.Met(n.index) })
	case protocol.NodeMark:
		lost := script.Lost
		if a.Inc != 0 {
			lost = strconv.FormatUint(uint64(a.Inc), 10)
		}
		n.send(&question{command: q.mark(*n.info(), lost), reply: func(v []resp.Value, err error) {
			inc, _, e := script.DecodeMarker(v)
			q.life(n, func(s *protocol.Incarnations, now protocol.Time) {
				s.Marked(now, n.index, a.Try, inc, err == nil && e == nil)
			})
		}})
	case protocol.NodeCompare:
		q.compare(n, a)
	case protocol.NodeDuplicate:
		q.set.Logger.Warn("quorate: two nodes are the same server; the first keeps its vote, the second gets none: give each server once",
			"first", q.incarnations.addrs[a.Other], "second", q.incarnations.addrs[n.index])
	case protocol.NodeReconnect:
		n.link.Reconnect(errStranger)
	case protocol.NodeAsk:
		q.recheck(n)
	case protocol.NodeRepair:
		q.repairs.look(n)
	}
}

// compare finds out whether two nodes with one incarnation are one server: a key that
// is written to the one is there at the other.
func (q *Quorum) compare(n *node, a protocol.NodeAction) {
	compared := func(same, ok bool) {
		q.life(n, func(s *protocol.Incarnations, _ protocol.Time) { s.Compared(n.index, a.Try, a.Other, same, ok) })
	}
	select {
	case <-q.built:
	default: // New has not got as far as the other node
		compared(false, false)
		return
	}
	q.records.mu.Lock()
	defer q.records.mu.Unlock()
	if q.isClosed() {
		return
	}
	q.records.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), q.Rounds(&q.set, 2))
		defer cancel()
		same, err := q.sameServer(ctx, n, q.nodes[a.Other])
		compared(same, err == nil)
	})
}

// duplicate returns why node i does not vote, nil if it may.
func (q *Quorum) duplicate(i int) error {
	in := q.incarnations
	in.mu.Lock()
	defer in.mu.Unlock()
	if other := in.known.Duplicate(i); other >= 0 {
		return &DuplicateError{in.addrs[other]}
	}
	return nil
}

// duplicates returns an error if two nodes are known to be one server.
func (q *Quorum) duplicates() error {
	for i, addr := range q.incarnations.addrs {
		if err := q.duplicate(i); err != nil {
			return &Failure{Err: fmt.Errorf("%w: node %s %w", ErrInvalid, addr, err)}
		}
	}
	return nil
}

var errStranger = errors.New("has lost its data, or got another node's, since the connection began")

// checkIncarnation says why a reply of that incarnation does not count.
func (q *Quorum) checkIncarnation(node int, inc protocol.Incarnation) error {
	if inc != 0 && q.incarnations.votes[node].Load() == uint64(inc) {
		return nil
	}
	counts := false
	q.life(q.nodes[node], func(s *protocol.Incarnations, now protocol.Time) { counts = s.Check(now, node, inc) })
	if counts {
		return nil
	}
	if err := q.duplicate(node); err != nil {
		return err
	}
	return errStranger
}

// sameServer writes a key to one node and looks for it at another one. The key
// ends in :heal, as no name does.
func (q *Quorum) sameServer(ctx context.Context, n, other *node) (bool, error) {
	key := q.set.Prefix + ":" + q.newID().String() + ":heal"
	if _, err := n.do(ctx, "SET", key, "1", "PX", strconv.FormatInt((10*q.set.NodeTimeout).Milliseconds(), 10)); err != nil {
		return false, err
	}
	v, err := other.do(ctx, "GET", key)
	n.send(&question{command: resp.AppendCommand(nil, "DEL", key)})
	return err == nil && text(v, 0) == "1", err
}
