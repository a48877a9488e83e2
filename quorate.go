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
// subscription per node. The zero value has no nodes, and its methods panic.
type Quorum struct {
	core *core.Quorum
	owns []redis.UniversalClient
}

// New makes a Quorum of nodes that the caller has clients for: 1, 3, 5 …
// independent masters, never replicas of each other. A Sentinel set
// ([NewFailoverClient]) is one node, see docs/operate/sentinel.md. A Redis
// Cluster (redis.NewClusterClient) is one node too, see
// docs/operate/cluster.md. An even number of nodes is accepted, but the last
// one adds no fault tolerance.
//
// Options: [WithTTL], [WithNodeTimeout], [WithMaxHold], [WithoutRenewal],
// [WithWarning], [WithLinger], [WithGuard], [WithSkew], [WithRetention],
// [WithPrefix], [WithOwner], [WithNodeNames], [WithLogger], [WithObserver],
// [WithTracer] and [ForDevelopment].
//
// The caller keeps ownership of the clients. The Quorum opens its own
// connections with the same options (address, password, TLS, database), and
// never closes the clients. Credentials providers are asked for each
// connection, and a streaming provider also reauthenticates open connections.
// Hooks (AddHook) do not run: customize the connection with Dialer, and watch
// events with an observer ([WithObserver]). docs/reference/security.md lists
// the options that apply. New returns at once. The Quorum retries nodes that
// cannot be reached until [Quorum.Close].
//
// New fails with [ErrInvalid] if there are no nodes or more than 31; if a node
// is nil, is given twice, is neither a single master (a *redis.Client) nor a
// cluster (a *redis.ClusterClient that redis.NewFailoverClusterClient did not
// make), or has a Limiter or an OnConnect; and if an option is nil, wrong, or
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
// majority of them has answered or the context ends. It takes the options of
// [New]. [Quorum.Close] closes what Connect opened.
//
// An address is host:port, or a URL that begins with redis://, rediss:// (TLS)
// or unix:// (the absolute path of a socket):
// redis://user:password@host:port/database. An element of urls may contain
// several addresses separated by commas, with white space around each, so you
// can pass a configured list as it is. Write %2C for a comma in a password. A
// Sentinel set is one node:
// redis://host:26379?master_name=NAME&addr=host2:26379, in the format of
// redis.ParseFailoverURL. A Redis Cluster is one node too:
// redis+cluster://host:6379?addr=host2:6379, or rediss+cluster:// with TLS. The
// nodes record which set they are, and the Quorum uses the set that a majority
// of urls names (docs/operate/membership.md).
//
// Connect fails with [ErrInvalid] as [New] does, and also if an address is
// empty or cannot be parsed, or if the list does not match the set that its
// nodes have recorded. The error says which part is wrong without quoting it.
// Connect fails with [ErrNoQuorum], including each node's own error (a wrong
// password, a refused connection), if so many nodes refuse that waiting cannot
// help, or if the context ended. In the latter case the error also matches the
// context's error.
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
	if err := setup.Apply(&set, opts); err != nil {
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

// Close releases everything that is still held, ends every wait with
// [ErrClosed], and closes the connections. It waits for the nodes to
// acknowledge the releases, including those of an Unlock just before. It gives
// up on a node that refuses them, on a node that acknowledges none for a node
// timeout, on a node that has begun to acknowledge after five node timeouts,
// and on every node after the TTL. Close then returns the error of that node,
// and what was held there ends with its lease. A second Close returns
// ErrClosed.
//
// Calls that cannot return an error and must not return without the lock, such
// as Lock, RLock and once.Do, never return after Close; the log says so. They
// do not panic: Close is part of an ordinary shutdown, and a panic would end
// the process before the nodes have received the releases. To shut down, first
// end the goroutines, using the context of LockContext, DoContext or Run, and
// then call Close.
func (q *Quorum) Close() error {
	defer q.closeOwn()
	return q.mustCore().Close(context.Background())
}

func (q *Quorum) closeOwn() {
	for _, n := range q.owns {
		_ = n.Close()
	}
}

// Bootstrap declares that the nodes are brand-new, that is, no client has ever
// used them. They record that they are the set of this list, and vote at once.
// Use it in tests, in CI, or for a first deployment when you do not want to wait.
// Production never needs it, so do not call it at every start: nodes that have
// all lost their data look brand-new, and would vote despite a holder that they
// have forgotten. Nodes that have recorded a set keep it: the call changes
// nothing, and the log says so.
//
// Without Bootstrap, brand-new nodes record their set on their own once all of
// them answer a client, and vote after the guard time. Any call on the Quorum
// triggers this. Without a call it happens one second after all nodes have
// answered.
//
// Bootstrap fails with [ErrNoQuorum] unless every node answers before the
// context ends, and within ten node timeouts at most. It fails with
// [ErrInvalid] if a node belongs to another set or if two addresses lead to one
// server, and with [ErrClosed] after Close. If two calls have different lists
// with a node in common, one of them fails. Several processes may call
// Bootstrap at the same time.
func (q *Quorum) Bootstrap(ctx context.Context) error {
	return wrapError("bootstrap", "", q.mustCore().Bootstrap(ctx))
}
