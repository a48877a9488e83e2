package operator

// What is found out before an exchange begins: which change the caller means,
// and whether each server to be added can be a node of this set. Nothing that
// concerns the set is written to a server here.
//
// Invariant: a call that is repeated after it died finds the same change.
// Members that the earlier call added get the identities that they already
// have. If that call has made the whole change, the error says so.

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/peers"
	"github.com/quorate/quorate/internal/report"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/transport"
)

// prepare finds out what the change is, and that the new nodes can be added. It
// runs once for each call, before the first round. Each of its errors is
// ErrInvalid, and the set's epoch is what it was: TestExchangeIsRefused.
func (x *exchange) prepare(ctx context.Context, c *nodeset.Configuration) error {
	removed, err := addresses(x.ask.Remove, c)
	if err != nil {
		return err
	}
	for _, a := range removed {
		// Invariant: an address to be removed is that of a member. To
		// change.Exchange a node that is no member has been removed already.
		// Without the check a typing error in the address would be reported as
		// done, and the node that was meant would stay in the set.
		if c.Place(a) < 0 {
			return x.removedBefore(a, c)
		}
		x.goal.Remove = append(x.goal.Remove, c.Members[c.Place(a)].Addr)
	}
	if err := x.prepareMoves(ctx, c); err != nil {
		return err
	}
	if err = x.prepareShared(c); err != nil {
		return err
	}
	added, err := x.nodes(x.ask.Add...)
	if err != nil {
		return err
	}
	switch {
	// An Undo with a change would be two calls in one. If it failed, the error
	// could not say which of the two had been carried out.
	case x.ask.Undo && (len(added) > 0 || !x.goal.Empty()):
		return fmt.Errorf("%w: one call can undo a change or make one, not both", fault.ErrInvalid)
	case !x.ask.Undo && len(added) == 0 && x.goal.Empty():
		return fmt.Errorf("%w: there is nothing to change", fault.ErrInvalid)
	}
	if len(c.Members) == 1 && c.Skew() == 0 && len(added) > len(x.goal.Remove) {
		return needsSkew(c)
	}
	runs := x.runs()
	for _, a := range added {
		if a.IsCluster() {
			return fmt.Errorf("%w: %s is a cluster, and a cluster cannot join an existing set", fault.ErrInvalid,
				a.Name())
		}
		// The identity is drawn here and written by the move to the next
		// configuration. If two operators add one server at the same time they
		// draw two; the register decides for one of them.
		m := nodeset.Member{Identity: peers.Identity(), Addr: a.Name()}
		if k := c.Place(m.Addr); k >= 0 { // the call is repeated, or it is an error that Outcome finds
			m.Identity = c.Members[k].Identity
		} else if err := x.suits(ctx, a, c, runs); err != nil {
			return fmt.Errorf("%w: %s cannot be added: %w", fault.ErrInvalid, m.Addr, err)
		}
		x.goal.Add = append(x.goal.Add, m)
	}
	return nil
}

// runs returns the address of each server by its run: localhost and 127.0.0.1
// are one.
func (x *exchange) runs() map[string]string {
	runs := map[string]string{}
	for _, n := range x.q.Nodes.Live() {
		if run := n.Info().RunID; run != "" {
			runs[run] = n.Addr
		}
	}
	return runs
}

// addresses returns the nodes' addresses, which are given as such or as URLs.
// The address of a Sentinel set is not a URL, and contains commas.
func addresses(given []string, c *nodeset.Configuration) (all []string, err error) {
	var others []string
	for _, a := range given {
		if c.Place(a) >= 0 {
			all = append(all, a)
		} else {
			others = append(others, a)
		}
	}
	nodes, err := setup.ParseNodes(others)
	for _, a := range nodes {
		all = append(all, a.Name())
	}
	return all, err
}

// nodes parses the addresses that the set is to record. It refuses those that
// are too long for the record, and those with another database than the set's.
func (x *exchange) nodes(given ...string) ([]setup.Address, error) {
	all, err := setup.ParseNodes(given)
	if err == nil {
		err = x.set.PrepareAll(all)
	}
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if n := len(a.Name()); n > nodeset.MaxAddr {
			return nil, fmt.Errorf("%w: the address %.60s… has %d bytes; at most %d are allowed",
				fault.ErrInvalid, a.Name(), n, nodeset.MaxAddr)
		}
		if err := x.q.Clients.CheckDatabase(a); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// prepareShared fills in the settings that are not to be changed. While they
// change the shorter guard time and the larger skew count. If these covered no
// ttl at all, the lock of the exchange's own register would have none either.
func (x *exchange) prepareShared(c *nodeset.Configuration) error {
	if x.ask.Shared == nil {
		return nil
	}
	s := *x.ask.Shared
	s.Guard, s.Skew = cmp.Or(s.Guard, c.Next.Guard), cmp.Or(s.Skew, c.Next.Skew)
	s.Retention = cmp.Or(s.Retention, max(c.Next.Retention, s.Guard))
	if err := bounded(s); err != nil {
		return fmt.Errorf("%w: %w", fault.ErrInvalid, err)
	}
	between := nodeset.Configuration{Now: c.Next, Next: s}
	if x.goal.Shared = &s; between.LongestTTL() == 0 {
		return fmt.Errorf("%w: while the settings change, a guard time of %v and a skew of %v apply, and no TTL "+
			"is short enough for them: choose a guard time above twice the skew", fault.ErrInvalid,
			min(c.Next.Guard, s.Guard), max(c.Next.Skew, s.Skew))
	}
	return nil
}

// bounded refuses what New refuses of the settings that all clients share.
func bounded(s nodeset.Shared) error {
	for _, d := range []time.Duration{s.Guard, s.Retention, s.Skew} {
		if d < 0 || d%time.Millisecond != 0 {
			return fmt.Errorf("%v: must be a whole number of milliseconds", d)
		}
	}
	switch {
	case s.Guard > setup.MostGuard || s.Skew > setup.MostSkew || s.Retention > setup.MostRetention:
		return fmt.Errorf("a guard time of %v, a skew of %v, a retention of %v: at most %v, %v and %v", s.Guard,
			s.Skew, s.Retention, setup.MostGuard, setup.MostSkew, setup.MostRetention)
	case s.Retention < s.Guard:
		return fmt.Errorf("a retention of %v is below the guard time of %v: choose at least the guard time",
			s.Retention, s.Guard)
	}
	return nil
}

// errNotEmpty names FLUSHALL with its condition. A Redis server may hold other
// programs' data beside Quorate's, and an operator copies the remedy.
var errNotEmpty = errors.New("has the data of another set of nodes; empty it first (FLUSHALL, if there is " +
	"nothing else on it)")

// suits returns why a server cannot be a new node of the set, or nil. It makes
// the server store a word, so a server that cannot be written to is rejected
// before anything is decided.
//
// Invariant: a node that enters belongs to no set, or has left this one.
func (x *exchange) suits(ctx context.Context, a setup.Address, c *nodeset.Configuration,
	runs map[string]string) error {
	has, run, err := x.keeps(ctx, a)
	switch {
	case err != nil:
		return err
	case runs[run] != "":
		return fmt.Errorf("it is the same server as %s", runs[run])
	case has.Config != nil && !c.Kin(has.Config):
		return errNotEmpty
	case has.Config != nil && c.Member(has.Identity) >= 0:
		return fmt.Errorf("it is the member %s, or has that member's data: to change the member's address, use "+
			"\"quorate members move\"",
			c.Members[c.Member(has.Identity)].Addr)
	}
	runs[run] = a.Name()
	return nil
}

// keeps returns what a server keeps of its set. It is asked by a client of its
// own, not by a node, and a blank one keeps the word of its life from then on.
// run is the server's.
//
// Invariant: this process connects to a server as the call says only once the
// server has accepted that. A wrong password would keep it from a server that
// another process adds meanwhile.
func (x *exchange) keeps(ctx context.Context, a setup.Address) (has nodeset.NodeSet, run string, err error) {
	c, own, err := x.q.Clients.For(a)
	if err != nil {
		return has, run, err
	}
	if own {
		defer func() { _ = c.Close() }()
	}
	client, single := setup.Single(c)
	if !single {
		return has, run, fmt.Errorf("%w: %s is a cluster", fault.ErrInvalid, a.Name())
	}
	// Ten node timeouts are for the dials, a login and three commands together.
	// An operator waits for no longer if the address is mistyped and a firewall
	// there drops packets.
	ctx, cancel := context.WithTimeout(ctx, 10*x.set.NodeTimeout)
	defer cancel()
	o := client.Options()
	conn, err := o.Dialer(ctx, o.Network, o.Addr) // go-redis logs what it cannot dial
	if err != nil {
		return has, run, err
	}
	_ = conn.Close()
	info, err := client.Info(ctx).Result()
	if err != nil {
		return has, run, transport.Safe(err, "INFO")
	}
	fields := report.InfoFields(info)
	if role := fields["role"]; role != "master" {
		return has, run, fault.ErrReplica
	}
	run = fields["run_id"]
	text, err := keepWord(ctx, client, x.set.Prefix)
	if err != nil {
		return has, run, err
	}
	has, ok := nodeset.ParseNodeSet(text)
	if !ok {
		return has, run, errNotEmpty
	}
	x.offers = append(x.offers, x.q.Clients.Offer(a))
	return has, run, nil
}

// keepWord has a blank server keep a word, and returns what the server keeps. A
// new server does not know the script yet. EVAL would do both at once, but
// clients need no right to EVAL otherwise.
func keepWord(ctx context.Context, client *redis.Client, prefix string) (text string, err error) {
	life, keys, args := script.Life(prefix, rand.Text())
	text, err = client.EvalSha(ctx, life.SHA, keys, args...).Text()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		if err = client.ScriptLoad(ctx, life.Source).Err(); err == nil {
			text, err = client.EvalSha(ctx, life.SHA, keys, args...).Text()
		}
	}
	return text, err
}
