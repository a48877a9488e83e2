package core

// This file owns how a client learns that a node has another address: by a
// function of the user. Which node an address belongs to is decided by package
// protocol, from what the server there keeps.

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
)

// Discover returns the addresses of the nodes as they are now.
type Discover func(ctx context.Context) ([]string, error)

// The bounds of calls to the user's function. The function may ask a DNS server
// or a registry that fails with the node, so it is called the less often, the
// longer it does not help.
const (
	discoverTimeout = 10 * time.Second // of one call of the function
	discoverLongest = 30 * time.Second // the longest pause between two calls
)

// discovery asks the user's function while a node cannot be reached, and has
// nodes go on at the addresses where their members are found. Its methods are
// safe for concurrent use. One goroutine asks and moves, and another one is in
// the function.
//
// Invariant: nothing waits for the function but its own goroutine. It may hang,
// and it may ignore its context.
type discovery struct {
	q      *Quorum
	wake   chan struct{} // a node is down, or the list is refused. It has room for one
	busy   atomic.Bool   // the function has not returned
	failed atomic.Pointer[DiscoveryError]
	ctx    context.Context // ends when the Quorum closes
	cancel context.CancelFunc
}

// DiscoveryError says that the function of the user has failed.
type DiscoveryError struct{ Err error }

func (e *DiscoveryError) Error() string {
	return "where the nodes are is not known: " + passwords().ReplaceAllString(e.Err.Error(), "://***@")
}

// Unwrap returns the function's error.
func (e *DiscoveryError) Unwrap() error { return e.Err }

// passwords are those of URLs, which the parsers of Go quote in their errors.
var passwords = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://[^\s"'@]*@`) })

var (
	errNoAddresses   = errors.New("the function of WithDiscovery returns no address")
	errDiscoverHangs = errors.New("the function of WithDiscovery has not returned in time")
)

func (d *discovery) init(q *Quorum) {
	d.q, d.wake = q, make(chan struct{}, 1)
	d.ctx, d.cancel = context.WithCancel(context.Background())
}

// wanted has the function asked before long, if it still seems to help then. It
// never blocks, as its callers are readers and events of members. One wake-up
// that waits stands for all.
func (d *discovery) wanted() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// run is a task. It ends when the Quorum closes.
func (d *discovery) run() {
	// Invariant: the function is asked only while it may help, and with growing
	// pauses. All clients of a fleet notice a node that goes down at the same
	// moment. Without the pause each of them would ask the user's DNS server at
	// once, and again with each attempt to connect.
	first := 5 * d.q.set.NodeTimeout // most nodes that break a connection are back by then
	pause := first
	for {
		var due <-chan time.Time
		if d.helps() {
			due = time.After(pause)
		} else {
			pause = first
		}
		select {
		case <-d.wake:
			if due == nil {
				continue
			}
			// A node that breaks its connection again and again wakes this
			// goroutine each time.
			select { // the pause lasts, whatever wakes it
			case <-due:
			case <-d.ctx.Done():
				return
			}
		case <-due:
		case <-d.ctx.Done():
			return
		}
		if d.helps() {
			pause = min(2*pause, max(first, discoverLongest))
			d.look()
		}
	}
}

// helps reports whether a node may be at another address than this client
// knows. Without a recorded set nothing says which server is which node.
func (d *discovery) helps() bool {
	// A refused list helps as well: the client may have begun with addresses of
	// nodes that have left, and the function may know those of the set.
	s := d.q.members
	if s.config.Load() == nil {
		return false
	}
	return s.wrong.Load() != nil || slices.ContainsFunc(d.q.nodes.all(), func(n *node) bool { return !n.dropped.Load() && n.err() != nil })
}

// look asks the function, and moves the nodes that are found at new addresses.
func (d *discovery) look() {
	// Invariant: the function runs once at a time. One that hangs is left
	// alone, and its goroutine ends with it: a second call beside it would
	// leave a goroutine behind for each pause.
	if d.busy.Swap(true) {
		return // it has failed, which is known
	}
	all, err := d.q.set.discover(d.ctx, func() { d.busy.Store(false) })
	if err != nil {
		// It is logged when it begins to fail, not each time. Until it works
		// again each error of a node that is down says so, see because.
		if was := d.failed.Swap(&DiscoveryError{err}); was == nil && !d.q.isClosed() {
			d.q.set.Logger.Warn("quorate: a node cannot be reached, and the discovery of its address fails", "error", &DiscoveryError{err})
		}
		return
	}
	d.failed.Store(nil)
	var list []string
	found := map[string]Address{}
	for _, a := range all {
		list = append(list, a.Addr)
		found[a.Addr] = a
		d.q.nodes.offer(a)
	}
	// Invariant: an address is nothing but a hint. What is at it is read first,
	// and package protocol compares that with the set's record. A server with a
	// copy of a member's data, or an empty one, gets no vote by being named.
	for i, has := range d.probe(all) {
		if has != nil {
			d.move(list[i], *has, list)
		}
	}
	// A node that was met by another client's exchange was connected to with
	// the options of the first node, as no URL had named it. Now one does, and
	// it may have another password.
	for _, n := range d.q.nodes.live() {
		if a, named := found[n.addr]; named && !a.plain && n.err() != nil && n.beside(a) {
			d.reconnect(n, n.addr, func() {})
		}
	}
}

// beside reports whether a node beside the client's list was connected to with
// other credentials than those of its URL: with those of the first node, as its
// URL was not known.
func (n *node) beside(a Address) bool {
	c, is := n.client.(*redis.Client)
	if !is {
		return n.client == nil
	}
	o := c.Options()
	return n.own && (o.Username != a.Username || o.Password != a.Password || o.DB != a.DB || (o.TLSConfig == nil) != (a.TLSConfig == nil))
}

// discover calls the user's function in a goroutine of its own, which calls
// over when the function returns. Close does not wait for that goroutine: a
// function that ignores its context would keep a process from ending.
func (s *Settings) discover(ctx context.Context, over func()) ([]Address, error) {
	type answer struct {
		all []Address
		err error
	}
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	// It has room for the answer, so the goroutine ends although nothing waits
	// for it any more.
	done := make(chan answer, 1)
	go func() {
		defer over()
		all, err := s.addresses(ctx)
		done <- answer{all, err}
	}()
	select {
	case a := <-done:
		return a.all, a.err
	case <-ctx.Done():
		return nil, errDiscoverHangs
	}
}

// addresses calls the user's function, and judges its list as that of Connect
// is judged. One address that makes no sense spoils the list: to use the rest
// would move nodes by a list that its author did not mean.
func (s *Settings) addresses(ctx context.Context) ([]Address, error) {
	urls, err := s.Discover(ctx)
	if err != nil {
		return nil, err
	}
	if len(urls) == 0 {
		return nil, errNoAddresses
	}
	all, err := ParseNodes(urls)
	if err != nil {
		return nil, err
	}
	return all, s.PrepareAll(all)
}

// FirstAddresses returns what the user's function says at the start. If it
// fails they are urls.
func (s *Settings) FirstAddresses(ctx context.Context, urls []string) ([]Address, error) {
	// A failing function at the start is no error where there is a list: the
	// list was good enough before. Without one the call fails, and says whether
	// the input or the registry is to blame.
	all, err := s.discover(ctx, func() {})
	if err == nil {
		return all, nil
	}
	why := &DiscoveryError{err}
	switch {
	case len(urls) > 0:
		s.Logger.Warn("quorate: the discovery of the nodes' addresses fails, so the list of Connect is used", "error", why)
		if all, err = ParseNodes(urls); err == nil {
			err = s.PrepareAll(all)
		}
		return all, err
	case ctx.Err() != nil:
		return nil, &Failure{Err: &cutShort{ErrNoQuorum, ContextError(ctx)}}
	case errors.Is(err, ErrInvalid):
		return nil, &Failure{Err: why}
	}
	return nil, &Failure{Err: fmt.Errorf("%w: %w", ErrNoQuorum, why)}
}

// probe returns what the servers keep at the addresses that are no node's, nil
// if that cannot be found out.
func (d *discovery) probe(all []Address) []*protocol.NodeSet {
	ctx, cancel := context.WithTimeout(d.ctx, 5*d.q.set.NodeTimeout)
	defer cancel()
	known := d.q.nodes.all()
	shown := make([]*protocol.NodeSet, len(all))
	var asked sync.WaitGroup
	for i, a := range all {
		is := func(n *node) bool { return n.addr == a.Addr }
		if a.failover == nil && a.cluster == nil && !slices.ContainsFunc(known, is) {
			asked.Go(func() { shown[i] = d.keeps(ctx, a.Addr) })
		}
	}
	done := make(chan struct{})
	go func() { asked.Wait(); close(done) }() // a dial of TLS ends by its own timeout only
	select {
	case <-done:
		return shown
	case <-d.ctx.Done():
		return nil
	}
}

// keeps returns what the server at an address keeps, nil if that cannot be
// found out. It asks with a client of its own, and never as a node: a node
// would leave a marker there, and its guard time would begin at a server that
// may be any program's.
func (d *discovery) keeps(ctx context.Context, addr string) *protocol.NodeSet {
	// One command on one connection, with the options of the node's URL, or of
	// the first node. No retry: a server that does not answer is looked at
	// again after the pause.
	o, err := d.q.nodes.optionsAt(addr)
	if err != nil {
		return nil
	}
	o.Protocol, o.DisableIdentity, o.MaintNotificationsConfig = 2, true, &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.DialTimeout, o.MaxRetries, o.DialerRetries, o.PoolSize, o.ContextTimeoutEnabled = 5*d.q.set.NodeTimeout, -1, 1, 1, true
	c := redis.NewClient(o)
	defer c.Close()
	text, err := c.Get(ctx, script.SetKey(d.q.set.Prefix)).Result()
	if has, ok := protocol.ParseNodeSet(text); ok && err == nil {
		return &has
	}
	return nil
}

// move has a node go on at another address, if protocol.Membership finds one to
// be there.
func (d *discovery) move(addr string, has protocol.NodeSet, list []string) {
	s := d.q.members
	// The decision and the move are apart, as the old connection is dropped in
	// between, which takes other locks. One goroutine moves nodes, so the
	// member is moved by nothing else meanwhile. If it has left the set, Move
	// finds no place for it. Moves only looks, so no claim has to hear of it.
	s.mu.Lock()
	i := s.known.Moves(addr, has, list)
	s.mu.Unlock()
	if i < 0 {
		return
	}
	n := d.q.nodes.at(i)
	d.reconnect(n, addr, func() {
		s.change(-1, func(m *protocol.Membership) { m.Move(i, addr, has) })
		d.q.set.Logger.Info("quorate: a node has another address now", "node", n.addr, "now", addr)
	})
}

// reconnect has another connection take the place of a node's, which judges no
// server from then on. dropped is called in between.
func (d *discovery) reconnect(n *node, addr string, dropped func()) {
	c, err := d.q.nodes.clientAt(addr)
	if err != nil {
		return
	}
	// Invariant: the connection of before has ended before the member is at its
	// new address. Otherwise a late answer of the old server, which may be a
	// copy, would count as one of the member.
	d.q.nodes.drop(n.index)
	dropped()
	if d.q.nodes.connect(d.q, n.index, c, true) != nil {
		_ = c.Close() // q closes
	}
}

// because adds to an error of a node that is down why no other address of it is
// known.
func (n *node) because(err error) error {
	err = namesAge(err)
	if why := n.q.discovery.failed.Load(); why != nil && err != nil && n.err() != nil {
		return &undiscovered{err, err.Error() + "; " + why.Error()}
	}
	return err
}

// undiscovered is a node's error, and that of the function. What follows from
// it goes by the node's.
type undiscovered struct {
	error
	text string
}

func (e *undiscovered) Error() string { return e.text }

// Unwrap returns the node's error alone: the other one may be of any kind.
func (e *undiscovered) Unwrap() error { return e.error }
