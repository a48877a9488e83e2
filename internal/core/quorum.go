package core

// This file owns what all claims of a process share, and its end.
//
// A Quorum ties the parts of one process together: a node with its connection for
// each address, the attempts by their ids, the operations on records, two
// schedulers, the clocks, and the Client that decides. It decides nothing itself.
//
// Invariant: nodes does not change after built is closed. New opens one connection
// after the other, so the first may be up before the last exists. Without the wait
// for built in carryOut the first one's events would index a slice that still
// grows.

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
)

// Quorum is one client's connections to N nodes and the claims it has on them. It is
// safe for concurrent use: New sets its fields, and each part that changes later has a
// lock of its own, named at its type.
type Quorum struct {
	set     Settings
	nodes   []*node
	channel string // pushes to this client, on every node
	clock   *localClock
	waker   waker
	shards  [16]shard
	built   chan struct{} // closed when nodes is complete
	closing chan struct{}
	once    sync.Once

	ticks, deadlines *scheduler

	recovering  recovering
	records     records
	repairs     *repairer
	observing   atomic.Int32 // calls of the observer under way
	telling     atomic.Int32 // Ended callbacks under way, whose leaves are not sent yet
	client      *protocol.Client
	clientTimer clientTimer
	members     *members
	addrs       []string    // of the nodes
	buckets     *buckets    // nil: there are none, see bucket.go
	reached     atomic.Bool // of a bucket: see AwaitFirst
}

// shard is a part of the attempts by id, for pushes to find them. mu guards attempts,
// and is held for one access to the map only. Attempts that are under way or held are
// in it, and none that has ended.
// Lock order: attempt.mu, then shard.mu. A push finds its attempt first and locks
// it after shard.mu is free.
type shard struct {
	mu       sync.Mutex
	attempts map[protocol.ID]*attempt
}

// New connects to the nodes. It returns at once; nodes that cannot be reached
// are tried again until Close.
func New(clients []redis.UniversalClient, set Settings) (*Quorum, error) {
	if err := set.Check(); err != nil {
		return nil, err
	}
	if err := checkClients(clients); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(clients, isCluster) {
		return newBucketed(clients, set)
	}
	return open(clients, set)
}

// open makes a Quorum of nodes that New has checked.
func open(clients []redis.UniversalClient, set Settings) (*Quorum, error) {
	q := &Quorum{
		set: set, clock: newLocalClock(), waker: newWaker(),
		built: make(chan struct{}), closing: make(chan struct{}),
	}
	// The channel ends in random text. Hosts may share a name and processes a pid,
	// as in containers: with equal channels each would get the pushes of the other.
	q.channel = fmt.Sprintf("%s:push:%s:%d:%s", set.Prefix, hostname(), os.Getpid(), rand.Text()[:12])
	for i := range q.shards {
		// 16 shards: the readers of all nodes look up pushes here while callers
		// begin and end attempts. With one map all of them would meet at one lock.
		q.shards[i].attempts = map[protocol.ID]*attempt{}
	}
	q.records.calls = map[*registerCall]struct{}{}
	q.records.watches = map[protocol.ID]*Watch{}
	q.client = q.newClient(len(clients))
	q.repairs = newRepairer(q, len(clients))
	q.clientTimer.start(q.tickClient)
	q.recovering.until, q.recovering.empty = make([]time.Time, len(clients)), make([]bool, len(clients))
	q.ticks = newScheduler(ticks, q.now, q.tick) // which never blocks: what cannot be written at once is the link's to write
	// A goroutine for each deadline that has passed. What follows from one calls
	// the owner, and an owner that does not return must not keep other holds beyond
	// their ends.
	q.deadlines = newScheduler(deadlines, q.now, func(due []alarm) {
		for _, d := range due {
			go d.a.tick(ordinary)
		}
	})
	for i, c := range clients {
		// All names come before the first connection. Its handshake may find that
		// two addresses are one server, and its error names the other address.
		q.addrs = append(q.addrs, nameOf(c, i))
	}
	q.members = newMembers(q.addrs)
	q.members.home.Store(new(script.Home))
	for i, c := range clients {
		n, err := q.connect(i, c)
		if err != nil {
			q.Close(context.Background())
			return nil, err
		}
		q.nodes = append(q.nodes, n)
	}
	// From here on the Client's actions are carried out. Its first Tick sets the
	// timer; without that the clocks would not be polled until some event asked for
	// a timer.
	close(q.built)
	q.tickClient()
	q.records.tasks.Go(q.wakeUps)
	if n := len(clients); n%2 == 0 && (set.base == "" || set.Prefix == script.BucketPrefix(set.base, 0)) {
		set.Logger.Info("quorate: an even number of nodes: the last adds no tolerance", "nodes", n, "may_fail", (n-1)/2)
	}
	return q, nil
}

// checkClients refuses clients that cannot be a set of independent masters. Errors count
// the nodes from 1 on, as those of ParseNodes do.
// A ring client routes each key to another server that knows nothing of slots, so it is none.
func checkClients(clients []redis.UniversalClient) error {
	if len(clients) == 0 {
		return fmt.Errorf("%w: no nodes; give 1, 3 or 5 independent Redis masters", ErrInvalid)
	}
	// Sets of nodes are a uint32 in the whole protocol, a bit for each node.
	if len(clients) > 31 {
		return fmt.Errorf("%w: %d nodes; more than 31 make every lock slower and none safer", ErrInvalid, len(clients))
	}
	at := map[string]int{}
	for i, c := range clients {
		missing := true
		switch c := c.(type) {
		case *redis.Client:
			missing = c == nil
		case *redis.ClusterClient:
			missing = c == nil
		default:
			return fmt.Errorf("%w: node %d is a %T; each node must be one master, a *redis.Client, or a cluster, a *redis.ClusterClient", ErrInvalid, i+1, c)
		}
		if missing {
			return fmt.Errorf("%w: node %d is nil", ErrInvalid, i+1)
		}
		// Equal addresses are only the simplest duplicate. Two addresses of one
		// server show when both are connected: see protocol/servers.go.
		name := nameOf(c, i) // of two Sentinel sets the incarnations tell whether they are one
		if j, dup := at[name]; dup {
			return fmt.Errorf("%w: nodes %d and %d are the same server, %s: its vote would count twice", ErrInvalid, j+1, i+1, name)
		}
		at[name] = i
	}
	return nil
}

// hostname lets an operator find the process by PUBSUB CHANNELS, or by the queue of a name. It is this host's, fit to be part of a channel's name.
func hostname() string {
	h, err := os.Hostname()
	if err != nil || h == "" {
		return "unknown"
	}
	return strings.Map(func(r rune) rune {
		if r == ':' || r == ' ' {
			return '-'
		}
		return r
	}, h)
}

// Size returns N.
func (q *Quorum) Size() int { return len(q.addrs) }

// now is the time of the process's own monotonic clock, which deadlines are measured by.
func (q *Quorum) now() protocol.Time { return q.clock.now() }

func (q *Quorum) newID() protocol.ID {
	var id protocol.ID
	if _, err := rand.Read(id[:]); err != nil {
		panic(err) // documented never to happen
	}
	return id
}

// micros is the only use of the wall clock in the protocol: tickets are near it, so that they
// rise across restarts. No lease and no deadline depends on it. It is what the wall clock shows, in microseconds, as tickets count.
func (q *Quorum) micros() protocol.Ticket { return protocol.Ticket(q.wallTime().UnixMicro()) }

// shard is the shard of an attempt. Byte 2 of an id is random, so shards are even.
func (q *Quorum) shard(id protocol.ID) *shard { return &q.shards[id[2]%byte(len(q.shards))] }

// register lets pushes find the attempt. Called with a.mu held.
// Invariant: an attempt is registered before its first request is queued. A node
// may push the vote before the goroutine that began the attempt goes on. Without
// the entry that push is dropped, and the claim waits for its next beat with the
// lock free.
func (q *Quorum) register(id protocol.ID, a *attempt) {
	s := q.shard(id)
	s.mu.Lock()
	s.attempts[id] = a
	s.mu.Unlock()
}

// forget ends that. Called with a.mu held.
// A push that arrives later finds nothing and is dropped: no vote matters to a
// claim that has ended.
func (q *Quorum) forget(a *attempt) {
	s := q.shard(a.claim.ID)
	s.mu.Lock()
	delete(s.attempts, a.claim.ID)
	s.mu.Unlock()
}

// find returns the attempt with an id, nil if it has ended. The caller holds no lock.
func (q *Quorum) find(id protocol.ID) *attempt {
	s := q.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempts[id]
}

// all returns the attempts that are under way or held.
// It is a copy, so the caller locks the attempts with no shard locked. An attempt
// that begins meanwhile may be missing: it asks the nodes by itself, and when the
// Quorum closes, its Pending.Wait cancels it.
func (q *Quorum) all() []*attempt {
	var as []*attempt
	for i := range q.shards {
		s := &q.shards[i]
		s.mu.Lock()
		for _, a := range s.attempts {
			as = append(as, a)
		}
		s.mu.Unlock()
	}
	return as
}

// observe calls the observer, and counts the calls under way: see observes.
func (q *Quorum) observe(e Event) {
	if q.set.Observe != nil {
		q.observing.Add(1)
		defer q.observing.Add(-1) // also when it panics
		q.set.Observe(e)
	}
}

// observes reports whether this goroutine runs the observer. If another Quorum's
// observer runs here while this one's runs elsewhere, it reports that too.
// It reads the stack, since a goroutine has no identity to compare. That takes
// microseconds, so it is done only while the observer runs somewhere. A call that
// is more than 1024 frames up is not seen.
func (q *Quorum) observes() bool {
	if q.observing.Load() == 0 {
		return false
	}
	pcs := make([]uintptr, 1024)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "/core.(*Quorum).observe") {
			return true
		}
		if !more {
			return false
		}
	}
}

var errCloseInObserver = fmt.Errorf("%w: Close was called inside Observe, and would wait for the goroutine that called it; call it in a goroutine of its own", ErrInvalid)
