package core

// This file owns what is found out before an exchange begins: which change the
// caller means, and whether each server that is to be added can be a node of
// this set. Nothing is written to a server here.
//
// Invariant: a call that is repeated after it died finds the same change. It
// gives the members that it added before the identities that they have, and
// does not refuse to remove a node that is gone.

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// prepare finds out what the change is, and that the new nodes can be added. It
// runs once for each call, before the first round. Each of its errors is
// ErrInvalid, and the set's epoch is what it was: TestExchangeIsRefused.
func (x *exchange) prepare(ctx context.Context, c *protocol.Configuration) error {
	removed, err := ParseNodes(x.ask.Remove)
	if err != nil {
		return err
	}
	for _, a := range removed { // a call that is repeated finds a node gone
		// Invariant: an address to be removed is, or was, that of a member. To
		// protocol.Exchange a node that is no member has been removed already.
		// Without the check a typing error in the address would be reported as
		// done, and the node that was meant would stay in the set.
		addr := x.q.members.recorded(a.Addr)
		if c.Place(addr) < 0 && !slices.Contains(c.Former, addr) {
			return fmt.Errorf("%w: %s is no node of the set, which is %s", ErrInvalid, a.Addr, strings.Join(c.Addrs(), " "))
		}
		x.goal.Remove = append(x.goal.Remove, addr)
	}
	added, err := ParseNodes(x.ask.Add)
	if err == nil {
		err = x.q.set.PrepareAll(added)
	}
	if err != nil {
		return err
	}
	switch {
	// An Undo with a change would be two calls in one. If it failed, the error
	// could not say which of the two had been carried out.
	case x.ask.Undo && len(added)+len(removed) > 0:
		return fmt.Errorf("%w: an exchange is undone or begun, not both", ErrInvalid)
	case !x.ask.Undo && len(added)+len(removed) == 0:
		return fmt.Errorf("%w: no node is to be added or removed", ErrInvalid)
	}
	// A server is known by its run where it answers INFO: localhost and
	// 127.0.0.1 are one. Where it does not, the incarnations decide once it is
	// connected to (protocol/servers.go), and the exchange is given up then.
	runs := map[string]string{} // address by run of the server
	for _, n := range x.q.nodes.live() {
		if run := n.info().RunID; run != "" {
			runs[run] = n.addr
		}
	}
	for _, a := range added {
		// A configuration records one address for each member. A Sentinel set
		// has that of its master of the moment, and a cluster has several.
		if a.failover != nil || a.cluster != nil {
			return fmt.Errorf("%w: a node that is added to a recorded set is a single server", ErrInvalid)
		}
		// The identity is drawn here and written by the move to the next
		// configuration. If two operators add one server at the same time they
		// draw two; the register decides for one of them.
		id := newID()
		m := protocol.Member{Identity: hex.EncodeToString(id[:8]), Addr: a.Addr}
		if k := c.Place(a.Addr); k >= 0 { // the call is repeated, or it is an error that Outcome finds
			m.Identity = c.Members[k].Identity
		} else if err := x.suits(ctx, a, c, runs); err != nil {
			return fmt.Errorf("%w: %s cannot be added: %w", ErrInvalid, a.Addr, err)
		}
		x.goal.Add = append(x.goal.Add, m)
	}
	// The numbers are counted before anything is decided (docs/membership.md,
	// rule 20). A client without a number for a new node cannot follow its own
	// decision, so its exchange would stay half-way.
	if !x.q.members.room(x.goal.Add) {
		return fmt.Errorf("%w: this process has followed too many exchanges to add nodes; let another process exchange them", ErrInvalid)
	}
	return nil
}

var (
	// Both name FLUSHALL with its condition. A Redis server may hold other
	// programs' data beside Quorate's, and an operator copies the remedy.
	errNotEmpty = errors.New("has the data of another set of nodes; empty it first (FLUSHALL, if nothing else is there)")
	errInUse    = errors.New("is in use by clients of another list of nodes; stop these, and empty it first (FLUSHALL, if nothing else is there)")
)

// suits reports why a server cannot be a new node of the set, nil if it can. It
// writes nothing there.
//
// Invariant: a node that enters is of no set, or of this one before. Without
// that a node that others use would get two sets' clients.
func (x *exchange) suits(ctx context.Context, a Address, c *protocol.Configuration, runs map[string]string) error {
	q := x.q
	x.q.nodes.offer(a)
	o, err := q.nodes.optionsAt(a.Addr)
	if err != nil {
		return err
	}
	// The server is asked by a client of its own, not by a node: a node would
	// leave a marker there, and the server would look used to the next call.
	o.MaxRetries, o.DialerRetries = -1, 1
	client := redis.NewClient(o)
	defer func() { _ = client.Close() }()
	// Ten node timeouts are for the dials, a login and three commands together.
	// An operator waits for no longer if the address is mistyped and a firewall
	// there drops packets.
	ctx, cancel := context.WithTimeout(ctx, 10*q.set.NodeTimeout)
	defer cancel()
	conn, err := client.Options().Dialer(ctx, o.Network, o.Addr) // go-redis logs what it cannot dial
	if err != nil {
		return err
	}
	_ = conn.Close()
	// A user without the right to ask INFO adds nodes all the same. What is
	// unknown then is whether the server is a replica, or one of the others.
	// The handshake refuses both later.
	info, err := client.Info(ctx).Result()
	if err != nil && !refusedByUser(err) {
		return err
	}
	fields := infoFields(info)
	if role, known := fields["role"]; known && role != "master" {
		return errReplica
	}
	run := fields["run_id"]
	// runs has the nodes of the set, and each server that this call has looked
	// at. So of two new addresses that reach one server the second one is
	// refused.
	if other := runs[run]; run != "" && other != "" {
		return &DuplicateError{other}
	}
	runs[run] = a.Addr
	// The identity is compared, too. Where INFO is refused the run is unknown.
	// A member that is reached by a second address, or a copy of its data,
	// would pass otherwise.
	text, err := client.Get(ctx, script.SetKey(q.set.Prefix)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	has, ok := protocol.ParseNodeSet(text)
	switch {
	case !ok || has.Config != nil && !c.Kin(has.Config):
		return errNotEmpty
	case has.Config != nil && c.Member(has.Identity) >= 0:
		return fmt.Errorf("it is %s under another address, or it has a copy of that node's data; only if it is a server of its own, empty it first (FLUSHALL, if nothing else is there)",
			c.Members[c.Member(has.Identity)].Addr)
	case has.Config != nil && has.Config.Place(a.Addr) != has.Config.Member(has.Identity):
		// Membership would refuse it for that once it has begun to enter, and
		// the operator would learn only that it does not answer.
		return errors.New("it has the data of a node that was in this set at another address; if that data is not needed, empty it first (FLUSHALL, if nothing else is there)")
	case has.Config != nil:
		return nil
	}
	return x.unused(ctx, client)
}

// unused reports why a server without a set may be counted on by clients of
// another list, nil if it is not.
//
// Invariant: a server that votes for clients of another list is not taken from
// them. They would have one node less, and no operator would know why.
//
// A marker alone is no vote. A client marks each server of its list as it
// connects, and finds out afterwards that the others are of a set. So clients
// that are given the new list before the exchange mark the server that is to be
// added, and an operator could not add it while they run:
// TestExchangeTakesAMarkedServer.
func (x *exchange) unused(ctx context.Context, client *redis.Client) error {
	prefix := x.q.set.Prefix
	marker, err := client.Get(ctx, script.MarkerKey(prefix)).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return err
	}
	// The number of all keys, and not a search for those of the prefix: a
	// search would take long where other programs keep their data.
	keys, err := client.DBSize(ctx).Result()
	if m, ok := parseMarker(marker); err == nil && (keys > 1 || !ok || m.caughtUp) {
		err = errInUse
	}
	return err
}

// refusedByUser reports whether the server has answered that this user may not
// ask. ERR is the answer where the command was renamed or disabled: Redis then
// calls it unknown.
func refusedByUser(err error) bool {
	var e redis.Error
	return errors.As(err, &e) && slices.Contains([]string{"NOPERM", "ERR"}, resp.Error(e.Error()).Code())
}
