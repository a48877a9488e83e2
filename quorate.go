package quorate

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/quorate/quorate/internal/core"
	"github.com/redis/go-redis/v9"
)

// Quorum is a set of independent Redis masters and this process's connections
// to them. Make one per process and set of nodes, and make every primitive from
// it: its claims share one ordered connection and one subscription per node.
// It is safe for concurrent use. The zero value cannot work: it has no nodes.
type Quorum struct {
	core *core.Quorum
	owns []redis.UniversalClient
}

// New makes a Quorum of nodes that the caller has clients for: 1, 3, 5 …
// independent masters, never replicas of each other. An even number is
// accepted; its last node adds no tolerance.
//
// The clients stay the caller's: the Quorum opens connections of its own with
// the same options (address, password, TLS, database), and never closes the
// clients. New returns at once; nodes that cannot be reached are tried again
// until Close. It fails, with ErrInvalid in the error, when there are no
// nodes, a node is nil, twice, or not a single master, and when a setting is
// wrong or contradicts another.
func New(nodes []redis.UniversalClient, opts ...Option) (*Quorum, error) {
	set, err := settings(opts)
	if err != nil {
		return nil, err
	}
	c, err := core.New(nodes, set)
	if err != nil {
		return nil, fmt.Errorf("quorate: %w", err)
	}
	return &Quorum{core: c}, nil
}

// Connect makes a Quorum of the nodes at the given redis:// and rediss:// URLs,
// and waits until a majority of them has answered or the context ends. In the
// latter case it fails with ErrNoQuorum, and each node's own error in it: a
// wrong password, a refused connection.
func Connect(ctx context.Context, urls []string, opts ...Option) (*Quorum, error) {
	set, err := settings(opts)
	if err != nil {
		return nil, err
	}
	nodes := make([]redis.UniversalClient, 0, len(urls))
	closeAll := func() {
		for _, n := range nodes {
			_ = n.Close()
		}
	}
	for i, u := range urls {
		o, err := core.ParseURL(u)
		if err != nil {
			closeAll()
			return nil, fmt.Errorf("quorate: %w: node %d: %w", ErrInvalid, i, err)
		}
		nodes = append(nodes, redis.NewClient(o))
	}
	c, err := core.New(nodes, set)
	if err != nil {
		closeAll()
		return nil, fmt.Errorf("quorate: %w", err)
	}
	q := &Quorum{core: c, owns: nodes}
	if err := c.Ready(ctx); err != nil {
		_ = q.Close()
		return nil, dress("connect", "", err)
	}
	return q, nil
}

// made returns the core of a Quorum that New or Connect has made.
func (q *Quorum) made() *core.Quorum {
	if q == nil || q.core == nil {
		panic("quorate: a nil or zero Quorum has no nodes; use quorate.New or quorate.Connect")
	}
	return q.core
}

// settings applies options to the defaults.
func settings(opts []Option) (core.Settings, error) {
	set := core.Defaults()
	for i, o := range opts {
		if o == nil {
			return set, fmt.Errorf("quorate: %w: option %d is nil; leave it out", ErrInvalid, i)
		}
		o(&set)
	}
	if set.Logger == nil {
		set.Logger = slog.New(slog.DiscardHandler)
	}
	if err := set.Check(); err != nil {
		return set, fmt.Errorf("quorate: %w: %w", ErrInvalid, err)
	}
	return set, nil
}

// Close releases whatever is still held, ends every wait with ErrClosed, and
// closes the connections. It takes at most the node timeout, and that only when
// a node does not answer: the error then tells so, and what was held there
// ends with its lease. A second Close returns ErrClosed.
//
// Calls that cannot return an error and must not return without the lock, such
// as Lock, RLock and once.Do, do not return any more, as on a lock that is
// never unlocked; the log says so. They do not panic: Close is part of an
// ordinary shutdown, and a panic would end the process before the nodes have
// heard of it. So to shut down end the goroutines first, by the context of
// LockContext, DoContext or Run; then close.
func (q *Quorum) Close() error {
	err := q.made().Close(context.Background())
	for _, n := range q.owns {
		_ = n.Close()
	}
	return err
}

// Bootstrap declares that the nodes are brand-new: that no lease was ever given
// on them, so that there is nothing to have forgotten, and they may vote at
// once. Call it when a set of nodes is first put to use, never after a failure:
// a node that lost its memory must sit out its guard time. It fails unless
// every node has confirmed.
func (q *Quorum) Bootstrap(ctx context.Context) error {
	return dress("bootstrap", "", q.made().Bootstrap(ctx))
}
