package core

// This file carries out what nodeset.Membership decides when another
// configuration begins to count: which nodes this client connects to and
// leaves, and what claims and operations count on.

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/process"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// follow has all that is under way count on the configuration that counts now.
// If another goroutine does so already, that one goes on with it.
// Invariant: one goroutine at a time, without a lock.
func (s *members) follow() {
	for s.followed() {
	}
}

// followed reports whether there was something to do.
func (s *members) followed() bool {
	if s.config.Load() == nil {
		return false
	}
	select {
	case <-s.q.built:
	case <-s.q.closing:
		return false
	}
	s.mu.Lock()
	c := s.known.Config()
	// Set before the work, not after it: what another goroutine learns
	// meanwhile is another configuration, which follow's loop finds.
	if s.following || c == nil || c == s.counted {
		s.mu.Unlock()
		return false
	}
	was := s.counted
	s.following, s.counted = true, c
	g := s.known.Group()
	s.mu.Unlock()
	defer func() { // also when a callback ends the goroutine
		s.mu.Lock()
		s.following = false
		s.mu.Unlock()
	}()
	if was == nil {
		s.noteList(c)
	} else {
		s.q.set.Logger.Info("quorate: the set of nodes has changed", "stage", c.Stage.String(), "epoch", c.Stamp.Epoch(), "from", was.Addrs(), "to", c.Addrs())
		go s.q.observer.call(Event{Kind: EventSetChanged}) // it may block
	}
	// Each number has a node before a claim hears of it. Its connection begins
	// when claims count on it, see keep.
	s.q.nodes.grow(s.q, g.Nodes)
	s.q.regroup(g)
	return true
}

// noteList logs which addresses of the list are no member's. They are not used.
func (s *members) noteList(c *nodeset.Configuration) {
	for _, addr := range s.list() {
		if c.Place(addr) < 0 {
			s.q.set.Logger.Info("quorate: a node of the list is no member of the set, and has no vote", "node", addr, "set", c.Addrs())
		}
	}
}

// regroup has all that is under way count on other nodes.
// Invariant: an attempt is in q.attempts, and an operation in q.records, before
// it reads the Client's group. The Client gets the new group before they are
// listed here. So each counts on the new group, by its start or by this call.
func (q *Quorum) regroup(g protocol.Group) {
	q.driver.carryOut(q.driver.client.Regroup(q.now(), g))
	for _, a := range q.attempts.all() {
		a.event(func(c *process.Attempt, now protocol.Time) { c.Regroup(now, g) })
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

// keep has a node be connected to while it is wanted, at the address that the
// set records, and ends it otherwise.
// Invariant: it looks again after what it has done. Two events may have their
// actions carried out in either order.
func (s *members) keep(i int) {
	q := s.q
	select {
	case <-q.built:
	default: // New makes the first nodes
		q.tasks.start(func() {
			select {
			case <-q.built:
				s.keep(i)
			case <-q.closing:
			}
		})
		return
	}
	wanted, addr := s.wants(i)
	n := q.node(i)
	live := n != nil && !n.dropped.Load()
	switch {
	case live && (!wanted || n.addr != addr):
		n.drop()
		s.keep(i)
		return
	case live == wanted:
		return
	}
	// A task: connect waits until the node that had the index has ended, for a
	// node timeout, and the caller may be a reader.
	q.tasks.start(func() {
		if !s.counts(i) {
			return
		}
		c, own, err := q.clientAt(addr)
		if err != nil {
			q.set.Logger.Warn("quorate: a member of the set cannot be connected to", "node", addr, "error", err)
			return
		}
		if err = q.pool(i).connect(q, i, addr, c, own); err == nil {
			s.keep(i)
		} else if own {
			_ = c.Close() // Close has begun, or another call has connected it
		}
	})
}

// counts waits until claims count on a number, and requests name the
// configuration that has it. The events of the node are for the Client, which
// must know the number by then, and its handshake reads the marker of that
// configuration. It returns false if the number is none any more, or the Quorum
// closes.
func (s *members) counts(i int) bool {
	for i < nodeset.Seed {
		c := s.config.Load()
		if c == nil || c.Numbered(i) == nil {
			return false // it is connected to when a configuration with it begins to count
		}
		if s.q.driver.client.Group().Nodes > i && s.home() == script.HomeOf(c.Stamp) {
			return true
		}
		select {
		case <-time.After(time.Millisecond):
		case <-s.q.closing:
			return false
		}
	}
	return true
}

// wants reports whether a node is to be connected to, and where. Both under one
// lock: the address is that of the member that is wanted.
func (s *members) wants(i int) (is bool, addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.Wants(i), s.known.Addr(i)
}

// offer says with which credentials an address is to be connected to. Without a
// URL they are those of the first node of the list.
func (q *Quorum) offer(a Address) {
	q.clientsMu.Lock()
	defer q.clientsMu.Unlock()
	if name := a.Name(); !a.plain && q.clients[name] == nil {
		q.clients[name] = a.Client()
		q.offered = append(q.offered, q.clients[name])
	}
}

// clientAt returns the client for an address: that of the list, if the list has
// the address, else a new one with the options of the first node of the list.
// own is true for a new one.
func (q *Quorum) clientAt(addr string) (c redis.UniversalClient, own bool, err error) {
	q.clientsMu.Lock()
	c = q.clients[addr]
	q.clientsMu.Unlock()
	if c != nil {
		return c, false, nil
	}
	if rest, is := strings.CutPrefix(addr, sentinelName); is {
		c, err = q.failoverAt(rest)
		return c, true, err
	}
	if rest, is := strings.CutPrefix(addr, clusterName); is {
		c, err = q.clusterAt(strings.Split(rest, ","))
		return c, true, err
	}
	o, err := q.optionsAt(addr)
	if err != nil {
		return nil, false, err
	}
	return redis.NewClient(o), true, nil
}

// clusterAt returns a client of a cluster with the options of the first one of
// the list. Another client may have named other nodes of it.
func (q *Quorum) clusterAt(addrs []string) (redis.UniversalClient, error) {
	q.clientsMu.Lock()
	defer q.clientsMu.Unlock()
	for _, name := range q.members.list() {
		if c, is := q.clients[name].(*redis.ClusterClient); is {
			o := *c.Options()
			o.Addrs = addrs
			return redis.NewClusterClient(&o), nil
		}
	}
	return nil, fmt.Errorf("%w: no node of the list is a cluster, whose options could be used", ErrInvalid)
}

// failoverAt returns a client of a Sentinel set by the name that it has in the
// record: MASTER@HOST:PORT,HOST:PORT.
func (q *Quorum) failoverAt(name string) (redis.UniversalClient, error) {
	at := strings.LastIndexByte(name, '@')
	if at < 1 {
		return nil, fmt.Errorf("%w: %q names no Sentinel set", ErrInvalid, name)
	}
	o, err := q.optionsAt("")
	if err != nil {
		return nil, err
	}
	return redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: name[:at], SentinelAddrs: strings.Split(name[at+1:], ","),
		Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig, MaxRetries: o.MaxRetries,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, DialerRetries: o.DialerRetries,
	}), nil
}

// optionsAt returns options for an address: those of the first node of the list
// that is a single server, with its user, password, TLS and timeouts. What
// belongs to the address of that node does not come along: its socket, its name
// in the certificate. A dialer does: it gets the address.
func (q *Quorum) optionsAt(addr string) (*redis.Options, error) {
	var first *redis.Client
	for _, name := range q.members.list() {
		q.clientsMu.Lock()
		c, single := q.clients[name].(*redis.Client)
		q.clientsMu.Unlock()
		if single && (first == nil || first.Options().Addr == transport.SentinelAddr) {
			first = c
		}
	}
	if first == nil {
		return nil, fmt.Errorf("%w: no node of the list is a single server, whose options could be used", ErrInvalid)
	}
	o := *first.Options()
	if o.Addr == transport.SentinelAddr || o.TLSConfig != nil {
		o.Dialer = nil // it asks the Sentinels, or names the address of before
	}
	was, _, err := net.SplitHostPort(o.Addr)
	o.Addr, o.Network, o.PushNotificationProcessor = addr, "tcp", nil
	if strings.HasPrefix(addr, "/") {
		o.Network = "unix"
	}
	if o.TLSConfig != nil {
		o.TLSConfig = o.TLSConfig.Clone()
		if host, _, e := net.SplitHostPort(addr); err == nil && e == nil && o.TLSConfig.ServerName == was {
			o.TLSConfig.ServerName = host
		}
	}
	return &o, nil
}
