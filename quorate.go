package quorate

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/setup"
)

// A Quorum is a set of independent Redis masters and this process's connections
// to them. Make one per process and set of nodes with [New] or [Connect], and
// make every primitive from it: its claims share one ordered connection and one
// subscription per node. It is safe for concurrent use. The zero value has no
// nodes, and its methods panic.
type Quorum struct {
	core *core.Quorum
	owns []redis.UniversalClient
}

// New makes a Quorum of nodes that the caller has clients for: 1, 3, 5 …
// independent masters, never replicas of each other. A Sentinel set
// ([NewFailoverClient]) is one node: see docs/operate/sentinel.md. So is a Redis
// Cluster (redis.NewClusterClient): see docs/operate/cluster.md. An even number is
// accepted; its last node adds no tolerance.
//
// The clients stay the caller's: the Quorum opens connections of its own with
// the same options (address, password, TLS, database), and never closes the
// clients. Providers of credentials are asked for each connection, and a
// streaming one authenticates the connections that are in use. Hooks (AddHook)
// do not run: let Dialer connect, and an observer see what happens
// ([WithObserver]). What applies stands in docs/reference/security.md. New returns at
// once. Nodes that cannot be reached are tried again until [Quorum.Close].
//
// It fails with [ErrInvalid] when there are no nodes or more than 31, when a
// node is nil, given twice, neither a single master (a *redis.Client) nor a
// cluster (a *redis.ClusterClient, but none of redis.NewFailoverClusterClient),
// or has a Limiter or an OnConnect, and when an option is nil, wrong, or
// contradicts another.
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

// Connect makes a Quorum of the nodes at the given addresses, and waits until a
// majority of them has answered or the context ends. [Quorum.Close] closes what
// Connect opened.
//
// An address is host:port, or a URL that begins with redis://, rediss:// (TLS)
// or unix:// (the absolute path of a socket):
// redis://user:password@host:port/database. An element of urls may contain
// several addresses with commas between them and white space around each, so a
// configured list can be given as it is. Write %2C for a comma in a password. A
// Sentinel set is one node:
// redis://host:26379?master_name=NAME&addr=host2:26379, as
// redis.ParseFailoverURL takes it. So is a Redis Cluster:
// redis+cluster://host:6379?addr=host2:6379, and rediss+cluster:// with TLS.
// The nodes record which set they are, and the Quorum goes by what a majority
// of urls names (docs/operate/membership.md).
//
// It fails with [ErrInvalid] as [New] does, for an address that is empty or
// cannot be parsed, and for a list that is not that of its nodes. The error
// names the part and quotes nothing of it. It fails with [ErrNoQuorum], and
// each node's own error in it (a wrong password, a refused connection), when
// the context ended, which the error matches too, or when so many nodes refuse
// that waiting cannot help.
func Connect(ctx context.Context, urls []string, opts ...Option) (*Quorum, error) {
	set, err := settings(opts)
	if err != nil {
		return nil, err
	}
	all, err := setup.ParseNodes(urls)
	if err == nil {
		err = set.PrepareAll(all)
	}
	if err != nil {
		return nil, fmt.Errorf("quorate: %w", err)
	}
	q := &Quorum{}
	for _, o := range all {
		q.owns, set.Names = append(q.owns, o.Client()), append(set.Names, o.Name())
	}
	if q.core, err = core.New(q.owns, set); err != nil {
		q.closeOwn()
		return nil, fmt.Errorf("quorate: %w", err)
	}
	ready := false
	defer func() {
		if !ready { // a nil context panics
			_ = q.Close()
		}
	}()
	if err := q.core.Ready(ctx); err != nil {
		return nil, wrapError("connect", "", err)
	}
	ready = true
	return q, nil
}

// mustCore returns the core of a Quorum that New or Connect has made, and
// panics for any other one.
func (q *Quorum) mustCore() *core.Quorum {
	if q == nil || q.core == nil {
		panic("quorate: a nil or zero Quorum has no nodes; use quorate.New or quorate.Connect")
	}
	return q.core
}

func settings(opts []Option) (setup.Settings, error) {
	set := setup.Defaults()
	if err := setup.Change(&set, opts); err != nil {
		return set, fmt.Errorf("quorate: %w", err)
	}
	if set.Logger == nil {
		set.Logger = slog.New(slog.DiscardHandler)
	}
	if err := set.Check(); err != nil {
		return set, fmt.Errorf("quorate: %w: %w", ErrInvalid, err)
	}
	return set, nil
}

// Close releases all that is still held, ends every wait with [ErrClosed], and
// closes the connections. It waits for the nodes to acknowledge the releases,
// also those of an Unlock just before. It gives up a node that refuses them,
// one that acknowledges none for a node timeout, one that has begun to
// acknowledge after five of these, and every node after the ttl. Close then
// returns the error of that node, and what was held there ends with its lease.
// A second Close returns ErrClosed.
//
// Calls that cannot return an error and must not return without the lock, such
// as Lock, RLock and once.Do, do not return any more; the log says so. They do
// not panic: Close is part of an ordinary shutdown, and a panic would end the
// process before the nodes know of it. So to shut down end the goroutines
// first, by the context of LockContext, DoContext or Run; then close.
func (q *Quorum) Close() error {
	defer q.closeOwn()
	return q.mustCore().Close(context.Background())
}

func (q *Quorum) closeOwn() {
	for _, n := range q.owns {
		_ = n.Close()
	}
}

// Bootstrap is the operator's word that the nodes are brand-new: no client has
// ever used them. They record that they are the set of this list, and vote at
// once. It is for tests, CI, and a first deployment that does not want to wait.
// Production never needs it, so leave it out of what runs at each start: nodes
// that have all lost their data look brand-new, and would vote beside a holder
// that they have forgotten. Nodes that have recorded a set keep it: the call
// changes nothing, and the log says so.
//
// Without it brand-new nodes record their set by themselves, once all of them
// answer a client, and vote after the guard time. Any call on the Quorum has
// them do so. Without a call they do so a second after all have answered.
//
// It fails with [ErrNoQuorum] unless every node has answered before the context
// ended, within ten node timeouts at most; with [ErrInvalid] when a node is of
// another set, and for two addresses of one server; and with [ErrClosed]. Of
// two calls whose lists differ and have a common node, one fails. It is safe
// for concurrent use, by several processes as well.
func (q *Quorum) Bootstrap(ctx context.Context) error {
	return wrapError("bootstrap", "", q.mustCore().Bootstrap(ctx))
}
