package core

// This file carries out what protocol.Membership decides when a set exchanges
// its nodes: which nodes this client connects to and leaves, and what claims
// and operations count on.

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/transport"
)

// follow has all that is under way count on the configuration that counts now.
// If another goroutine does so already, that one goes on with it.
//
// Invariant: one goroutine at a time, without a lock. Two could give claims an
// earlier group after a later one, and a lock would be held in callbacks of the
// claims that end.
func (s *members) follow() {
	for s.followed() {
	}
}

// followed reports whether there was something to do. A set whose nodes were
// never exchanged changes nothing.
//
// Invariant: New has made the nodes of the list before. Without that their
// numbers would be taken here.
func (s *members) followed() bool {
	if c := s.config.Load(); c == nil || c.Stamp.Epoch() == 1 {
		return false
	}
	select {
	case <-s.q.built:
	case <-s.q.closing:
		return false
	}
	s.mu.Lock()
	c := s.known.Config()
	// counted is set before the work, not after it: what another goroutine
	// learns meanwhile is another configuration, and the loop of follow finds
	// it.
	if s.following || c == s.counted {
		s.mu.Unlock()
		return false
	}
	s.following, s.counted = true, c
	g := s.known.Group()
	var addrs []string
	for i := range g.Nodes {
		addrs = append(addrs, s.known.Addr(i))
	}
	s.mu.Unlock()
	// The nodes are made before the claims hear of them, and are connected to
	// after that. In the first order reversed a claim would send to an index
	// without a node. In the second one a vote could come for a claim that does
	// not count the node yet.
	entered := s.enter(addrs)
	defer func() { // also when a callback ends the goroutine
		for _, n := range entered {
			close(n.placed)
		}
		s.mu.Lock()
		s.following = false
		s.mu.Unlock()
	}()
	s.q.regroup(g)
	return true
}

// regroup has all that is under way count on other nodes.
//
// Invariant: an attempt is in q.attempts, and an operation in q.records, before
// it reads the Client's group. The Client gets the new group before they are
// listed here. So each counts on the new group, by its start or by this call.
func (q *Quorum) regroup(g protocol.Group) {
	q.driver.carryOut(q.driver.client.Regroup(q.now(), g))
	for _, a := range q.attempts.all() {
		a.event(func(c *protocol.Attempt, now protocol.Time) { c.Regroup(now, g) })
	}
	q.records.regroup(g)
	q.watches.signal()
}

// regroup has the operations under way count on other nodes. A node that has
// entered gets the request too, where the operation still needs answers.
func (r *records) regroup(g protocol.Group) {
	for _, i := range r.all() {
		i.mu.Lock()
		now := i.q.now()
		if !i.over {
			i.in.Regroup(now, g)
		}
		i.writeUnlock(now)
	}
}

// exclude has the operations under way hear which nodes are not known to be
// members, and which have become others. See members.change for why the last
// value follows that of the event.
func (r *records) exclude(s *members, outside, others uint32) {
	for _, i := range r.all() {
		i.mu.Lock()
		now := i.q.now()
		if !i.over {
			last := s.outside.Load()
			i.in.Exclude(now, outside|last, others)
			i.in.Exclude(now, last, 0)
		}
		i.writeUnlock(now)
	}
}

// enter makes the nodes that are new. Their connections begin when claims count
// on them.
//
// Invariant: each number that the Client knows is that of a node. One that
// cannot be connected to counts as down.
func (s *members) enter(addrs []string) (made []*node) {
	q := s.q
	// Numbers only grow, and follow runs in one goroutine, so nothing else
	// appends to the list.
	for i := q.nodes.size(); i < len(addrs); i++ {
		c, err := q.nodes.clientAt(addrs[i])
		if err != nil {
			q.set.Logger.Warn("quorate: a node has become a member of the set and cannot be connected to", "node", addrs[i], "error", err)
		}
		made = append(made, q.nodes.enter(q, i, addrs[i], c))
	}
	return made
}

// keep has a node be connected to while it is a member, and ends it when it is
// none any more.
//
// Invariant: it looks again after what it has done. Two events may have their
// actions carried out in either order. Without that a node that leaves the set
// and enters again at once stays dropped, and its vote is missing.
func (s *members) keep(i int) {
	q := s.q
	// Begin may be said of a number before follow has made the node. follow
	// connects what it makes, so nothing is lost.
	if i >= q.nodes.size() { // follow makes it
		return
	}
	wanted, addr := s.wants(i)
	switch {
	case wanted != q.nodes.at(i).dropped.Load():
		return
	case !wanted:
		q.nodes.drop(i)
		s.keep(i)
		return
	}
	// A task: connect waits until the node that had the index has ended, for a
	// node timeout, and the caller may be a reader.
	q.tasks.start(func() {
		c, err := q.nodes.clientAt(addr)
		if err == nil {
			if err = q.nodes.connect(q, i, c, true); err != nil {
				_ = c.Close() // Close has begun, or another call has connected it
			}
		}
		if err == nil {
			s.keep(i)
		}
	})
}

// wants reports whether a node is to be connected to, and where. Both under one
// lock: the address is that of the member that is wanted.
func (s *members) wants(i int) (is bool, addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.Wants(i), s.known.Addr(i)
}

// offer says with which credentials an address is to be connected to that may
// become a node. Without a URL they are those of the first node.
func (s *nodes) offer(a Address) {
	if a.plain {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offers == nil {
		s.offers = map[string]*redis.Options{}
	}
	s.offers[a.Addr] = a.Options
}

func (s *nodes) offered(addr string) *redis.Options {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offers[addr]
}

// clientAt returns a client of an address, with the options of the first node
// that is a single server, and with its credentials unless others were offered.
// A certificate is to be that of the address, unless the options name one for
// all nodes.
func (s *nodes) clientAt(addr string) (redis.UniversalClient, error) {
	o, err := s.optionsAt(addr)
	if err != nil {
		return nil, err
	}
	return redis.NewClient(o), nil
}

func (s *nodes) optionsAt(addr string) (*redis.Options, error) {
	for _, n := range s.all() {
		c, single := n.client.(*redis.Client)
		if !single || n.addr != c.Options().Addr {
			continue
		}
		o := *c.Options()
		// The options are those of a node that works: user, password, TLS,
		// timeouts. What belongs to the address of that node must not come
		// along: its dialer, its socket, its name in the certificate.
		o.Addr, o.Network, o.PushNotificationProcessor = addr, "tcp", nil
		if addr[:1] == "/" {
			o.Network = "unix"
		}
		if was, _, err := net.SplitHostPort(n.addr); o.TLSConfig != nil {
			o.TLSConfig, o.Dialer = o.TLSConfig.Clone(), nil
			if host, _, e := net.SplitHostPort(addr); err == nil && e == nil && o.TLSConfig.ServerName == was {
				o.TLSConfig.ServerName = host
			}
		}
		// What the URL of this very address says comes before what the first
		// node has: another user or another certificate there is the reason to
		// name it (TestDiscoveryNamesTheCredentialsOfANodeThatEnters).
		if a := s.offered(addr); a != nil {
			o.Network, o.Username, o.Password, o.DB, o.TLSConfig, o.Dialer = a.Network, a.Username, a.Password, a.DB, a.TLSConfig, nil
			o.CredentialsProvider, o.CredentialsProviderContext, o.StreamingCredentialsProvider = nil, a.CredentialsProviderContext, nil
		}
		return &o, nil
	}
	if a := s.offered(addr); a != nil {
		o := *a
		return &o, nil
	}
	return nil, fmt.Errorf("%w: no node of the list is a single server, whose options could be used", ErrInvalid)
}

// nowhere is the way to a node for which there is none: each command is
// refused. A member whose address this client cannot use gets one, so that its
// number is never without a node.
//
// Append answers in a goroutine: a Transport calls no Reply in Append, because
// the caller may hold the lock that Reply takes.
type nowhere struct{ err error }

func (w nowhere) Append(c transport.Command, _ transport.Urgency) transport.Fate {
	go c.Reply(nil, w.err)
	return transport.Refused
}

func (w nowhere) Flush() {}

func (w nowhere) State(time.Time) transport.State {
	return transport.State{Err: w.err, Info: &transport.Info{}}
}

func (w nowhere) Reconnect(error) {}

func (w nowhere) Close(context.Context) error { return nil }
