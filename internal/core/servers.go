package core

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// DuplicateError says that a node is the same server as another one, under another address.
type DuplicateError struct{ Addr string } // of the other

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("is the same server as %s, whose vote would count twice; give each server once", e.Addr)
}

// servers keeps one server from being several nodes. A connection that reaches
// the server of another address fails in its handshake, so it carries no request.
type servers struct {
	mu     sync.Mutex
	addrs  []string
	known  *protocol.Servers
	shared []*DuplicateError // per node: why it does not vote; nil: it may
}

// reach says that node i has reached the given run of a server, empty if that is unknown.
func (q *Quorum) reach(i int, run string) error {
	s := &q.servers
	s.mu.Lock()
	defer s.mu.Unlock()
	now := q.now()
	s.known.Down(now, i) // a new connection to i: the last one is over
	other := s.known.Connect(now, i, run)
	if other < 0 {
		s.shared[i] = nil
		return nil
	}
	return s.share(q, i, other)
}

// share notes that node i is the server of another one. It logs that once.
func (s *servers) share(q *Quorum, i, other int) *DuplicateError {
	if s.shared[i] == nil || s.shared[i].Addr != s.addrs[other] {
		s.shared[i] = &DuplicateError{s.addrs[other]}
		q.set.Logger.Warn("quorate: two nodes are the same server; the first keeps its vote, the second gets none: give each server once",
			"first", s.addrs[other], "second", s.addrs[i])
	}
	return s.shared[i]
}

// leave says that the connection to node i has ended.
func (s *servers) leave(now protocol.Time, i int) {
	s.mu.Lock()
	s.known.Down(now, i)
	s.mu.Unlock()
}

// duplicate returns why node i does not vote, nil if it may.
func (s *servers) duplicate(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.shared[i]; e != nil {
		return e
	}
	return nil
}

// duplicates returns an error if two nodes are known to be one server.
func (s *servers) duplicates() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range s.shared {
		if e != nil {
			return &Failure{Err: fmt.Errorf("%w: node %s %w", ErrInvalid, s.addrs[i], e)}
		}
	}
	return nil
}

// untwin finds out about a node that has another one's incarnation, once at a
// time. Either its memory is the other's, whose replica it was, and its own is
// lost; or both are one server. The runs of the servers tell, where INFO is
// allowed: one run under two addresses gets no second connection. Where it is
// not, a key that is written to the one and is there at the other tells.
func (q *Quorum) untwin(n *node) {
	known := &q.incs[n.index]
	inc := n.copy.Load()
	if !known.CompareAndSwap(copied, telling) {
		return
	}
	q.servers.mu.Lock()
	twin := q.servers.known.Twin(q.now(), n.index, protocol.Incarnation(inc))
	named := q.servers.known.Run(n.index) != ""
	one := twin >= 0 && (!named || q.servers.known.Run(twin) == "") // it may be
	made := twin < len(q.nodes)                                     // New may not have got so far
	q.servers.mu.Unlock()
	switch {
	case named && twin < 0: // no other address votes with it: only a memory of another run is lost
		q.remark(n, script.Lost)
		return
	case !one:
		// Two runs have one incarnation, or the other address has been down for a guard time.
		// What this node's memory is a copy of may have gone on without it. The marker need not
		// name another run: a replica's marker names none if a script has made it.
		q.remark(n, strconv.FormatUint(inc, 10))
		return
	case !made:
		known.CompareAndSwap(telling, copied)
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
		switch same, err := q.sameServer(ctx, n, q.nodes[twin]); {
		case err != nil: // the next answer asks again
			known.CompareAndSwap(telling, copied)
		case same:
			q.servers.mu.Lock()
			_ = q.servers.share(q, n.index, twin)
			q.servers.mu.Unlock()
			known.CompareAndSwap(telling, shared)
		default: // the marker does not know the run either, so the incarnation stands for it
			q.remark(n, strconv.FormatUint(inc, 10))
		}
	})
}

// twofold reports whether another address may vote for the server of a node that
// was found to be shared.
func (q *Quorum) twofold(n *node) bool {
	q.servers.mu.Lock()
	defer q.servers.mu.Unlock()
	return q.servers.known.Twin(q.now(), n.index, protocol.Incarnation(n.copy.Load())) >= 0
}

// remark has a node begin another incarnation.
func (q *Quorum) remark(n *node, lost string) {
	known := &q.incs[n.index]
	n.link.Send(&question{command: q.mark(n.link.Info(), lost), reply: func(v []resp.Value, err error) {
		if got, _, e := script.DecodeMarker(v); err == nil && e == nil {
			q.become(n, telling, got)
			q.heal(n)
		} else {
			known.CompareAndSwap(telling, copied)
		}
	}})
}

// sameServer writes a key to one node and looks for it at another one. The key
// ends in :heal, as no name does.
func (q *Quorum) sameServer(ctx context.Context, n, other *node) (bool, error) {
	key := q.set.Prefix + ":" + q.newID().String() + ":heal"
	if _, err := n.do(ctx, "SET", key, "1", "PX", strconv.FormatInt((10*q.set.NodeTimeout).Milliseconds(), 10)); err != nil {
		return false, err
	}
	v, err := other.do(ctx, "GET", key)
	n.link.Send(&question{command: resp.AppendCommand(nil, "DEL", key)})
	return err == nil && text(v, 0) == "1", err
}
