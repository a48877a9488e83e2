package quorate

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/setup"
)

// A Quorum is a set of independent Redis masters and this process's connections
// to them. Call [New] or [Connect] once per process and set of nodes, and
// create all primitives from the result: they share one ordered connection and
// one subscription per node. The zero value has no nodes, and its methods
// panic.
type Quorum struct {
	core *core.Quorum
	owns []redis.UniversalClient
}

// New returns a Quorum for the given clients, one per node. Use 1, 3 or 5
// independent masters, never replicas of each other. A Sentinel set
// ([NewFailoverClient]) counts as one node; see docs/operate/sentinel.md. So
// does a Redis Cluster (redis.NewClusterClient); see docs/operate/cluster.md.
// An even number of nodes is accepted, but the last one adds no fault
// tolerance.
//
// Options: [WithTTL], [WithNodeTimeout], [WithMaxHold], [WithoutRenewal],
// [WithWarning], [WithLinger], [WithGuard], [WithSkew], [WithRetention],
// [WithPrefix], [WithOwner], [WithNodeNames], [WithLogger], [WithObserver],
// [WithTracer] and [ForDevelopment].
//
// The caller keeps ownership of the clients. The Quorum opens its own
// connections with the same options (address, password, TLS, database), and
// never closes the clients. Credentials providers are called for each
// connection, and a streaming provider also reauthenticates open connections.
// Hooks (AddHook) do not run: use Dialer to customize the connections and
// [WithObserver] to watch events. docs/reference/security.md lists the options
// that are used. New does not wait for the nodes. The Quorum keeps trying to
// reach them until [Quorum.Close].
//
// New returns [ErrInvalid] if there are no nodes or more than 31; if a node is
// nil, is listed twice, has a different database number from the first one, is
// neither a single master (a *redis.Client) nor a cluster (a
// *redis.ClusterClient, but not from redis.NewFailoverClusterClient), or has a
// Limiter or an OnConnect; or if an option is nil, invalid, or conflicts with
// another.
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

// Connect returns a Quorum for the nodes at the given addresses. It waits until
// a majority of them has answered or ctx is done. It takes the same options as
// [New]. [Quorum.Close] closes what Connect opened.
//
// An address is host:port, or a URL that begins with redis://, rediss:// (TLS)
// or unix:// (the absolute path of a socket):
// redis://user:password@host:port/database. An element of urls may contain
// several addresses separated by commas, with optional white space, so you can
// pass a list from a configuration file as it is. Write %2C for a comma in a
// password. A Sentinel set is one node:
// redis://host:26379?master_name=NAME&addr=host2:26379, in the format of
// redis.ParseFailoverURL. So is a Redis Cluster:
// redis+cluster://host:6379?addr=host2:6379, or rediss+cluster:// with TLS. The
// nodes record the set they belong to, and the Quorum uses the set that a
// majority of the nodes in urls reports (docs/operate/membership.md).
//
// Connect returns [ErrInvalid] for the same reasons as [New], and also if an
// address is empty or cannot be parsed, or if the list does not match the set
// that its nodes have recorded. The error says which part is wrong without
// quoting it. Connect returns [ErrNoQuorum] if ctx is done first, or if so many
// nodes refuse that waiting is pointless. That error includes each node's own
// error (a wrong password, a refused connection) and, if ctx is done, matches
// ctx.Err().
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
	} else {
		set.Logger = slog.New(report.Isolate(set.Logger.Handler()))
	}
	if err := set.Check(); err != nil {
		return set, fmt.Errorf("quorate: %w: %w", ErrInvalid, err)
	}
	return set, nil
}

// Close releases everything that is still held, makes waiting calls fail with
// [ErrClosed], and closes the connections. It waits for the nodes to
// acknowledge all releases, including those from an Unlock just before. It
// gives up on a node that refuses a release, that acknowledges none within a
// node timeout, or that has started to acknowledge but is not done after five
// node timeouts, and on any node after the TTL. In that case Close returns the
// node's error, and whatever was held there lasts until its lease expires. It
// also returns releases that a node refused before, unless their leases have
// ended. A second Close returns ErrClosed.
//
// After Close, calls that have no way to return an error, such as Lock, RLock
// and once.Do, block forever; the log says so. They do not panic, because Close
// is part of an ordinary shutdown, and a panic would end the process before the
// nodes have received the releases. To shut down, first stop your goroutines by
// cancelling the context of LockContext, DoContext or Run, and then call Close.
func (q *Quorum) Close() error {
	defer q.closeOwn()
	return q.mustCore().Close(context.Background())
}

func (q *Quorum) closeOwn() {
	for _, n := range q.owns {
		_ = n.Close()
	}
}

// Bootstrap declares that the nodes are brand-new, meaning that no client has
// ever used them. They record this Quorum's list as their set and start voting
// immediately. Use it in tests, in CI, or for a first deployment when you do
// not want to wait. Production never needs it. Do not call it on every start:
// if all nodes have lost their data, they look brand-new, and would vote for a
// second holder because they have forgotten the first. If the nodes have
// already recorded a set, Bootstrap changes nothing, and the log says so.
//
// Without Bootstrap, brand-new nodes record their set once all of them have
// answered a client, and vote after the guard time. Any call on the Quorum
// triggers this; without a call, it happens one second after all nodes have
// answered. After a Bootstrap that failed, it needs a call.
//
// Bootstrap returns [ErrNoQuorum] unless every node answers before ctx is done
// and within 20 node timeouts, or longer if the nodes are far away. It returns [ErrInvalid] if a node belongs to
// another set or if two addresses lead to the same server, and [ErrClosed]
// after Close. If two calls have different lists with a node in common, one of
// them fails. Several processes may call Bootstrap at the same time.
func (q *Quorum) Bootstrap(ctx context.Context) error {
	return wrapError("bootstrap", "", q.mustCore().Bootstrap(ctx))
}
