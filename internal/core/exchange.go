package core

// This file owns the exchange of nodes as one caller carries it out: what it asks the nodes, and when.
// protocol.Exchange says what follows the configuration that counts, and protocol.Membership what each client does.

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// Exchange is a change of the nodes of a set.
type Exchange struct {
	Add      []string // as ParseNodes takes them; the new nodes are empty servers
	Remove   []string // addresses of members, or URLs that name them
	Undo     bool     // what is under way is given up; Add and Remove are empty
	Progress func(ExchangeProgress)
}

// ExchangeProgress is how far an exchange has come. It is reported when that changes.
type ExchangeProgress struct {
	Epoch uint64
	Stage string        // stable, learning or joint
	Await string        // what is waited for; empty: nothing
	Left  time.Duration // how long that takes at least
}

// ExchangeError is an exchange that was not carried out, and the state of the set.
type ExchangeError struct {
	Why   error
	State string
}

func (e *ExchangeError) Error() string { return e.Why.Error() + "; " + e.State }

// Unwrap returns why.
func (e *ExchangeError) Unwrap() error { return e.Why }

// exchange is one call of Exchange. Only its caller's goroutine uses it, but for looked.
type exchange struct {
	q       *Quorum
	ask     Exchange
	e       protocol.Exchange
	goal    protocol.Change
	counted *protocol.Configuration // that e knows
	shown   ExchangeProgress        // the last one
	gone    error                   // why the exchange is given up
}

// Exchange has other nodes be the set, while locks are held and waited for. It returns when a majority of the new set
// serves it. An exchange that another client has left half-way is finished first.
//
// When ctx ends, or a node that enters cannot be reached for a guard time, the exchange is undone if it is this
// call's and that is still possible. A call that dies leaves the set half-way, where it is safe: the next call goes on with it.
func (q *Quorum) Exchange(ctx context.Context, ask Exchange) error {
	switch {
	case q.isClosed():
		return &Failure{Err: ErrClosed}
	case q.buckets != nil:
		return &Failure{Err: fmt.Errorf("%w: a set with clusters cannot exchange its nodes", ErrInvalid)}
	}
	if err := q.Ready(ctx); err != nil {
		return err
	}
	x := &exchange{q: q, ask: ask}
	c := q.members.config.Load()
	if c == nil {
		return &Failure{Err: fmt.Errorf("%w: no set is recorded, so its nodes cannot be exchanged: record it first with \"quorate bootstrap --record\"", ErrInvalid)}
	}
	x.e = protocol.Exchange{Guard: c.Guard + c.Guard/50 + 2*q.set.Skew, Patience: max(c.Guard, 20*q.set.NodeTimeout), Undo: ask.Undo, Rules: rules()}
	if err := x.prepare(ctx, c); err != nil {
		return &Failure{Err: err}
	}
	x.e.Goal = x.goal
	if err := x.run(ctx); err != nil {
		return &Failure{Err: err}
	}
	return nil
}

// SetAddrs returns the addresses of the set's members, nil if no set is known.
func (q *Quorum) SetAddrs() []string {
	if c := q.members.config.Load(); c != nil {
		return c.Addrs()
	}
	return nil
}

// run goes round until the exchange is over, given up, or ctx ends.
func (x *exchange) run(ctx context.Context) error {
	q := x.q
	tick := time.NewTicker(max(q.set.NodeTimeout/2, time.Millisecond))
	defer tick.Stop()
	for {
		outcome, err := x.round(ctx)
		switch {
		case outcome == protocol.ExchangeDone:
			return nil
		case outcome == protocol.ExchangeUndone && x.ask.Undo:
			return nil
		case outcome == protocol.ExchangeUndone:
			return x.undone(x.gone)
		case outcome == protocol.ExchangeUnfit:
			return fmt.Errorf("%w: %s", ErrInvalid, x.unfit())
		case errors.Is(err, errSetFull):
			return &ExchangeError{fmt.Errorf("%w: this process has followed too many exchanges to go on; let another process go on", ErrInvalid), x.state()}
		case err != nil:
			q.set.Logger.Debug("quorate: a step of an exchange of nodes has failed and is taken again", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return x.abandon(ContextError(ctx))
		case <-q.closing:
			return &ExchangeError{ErrClosed, x.state()}
		}
	}
}

// undone is the error of an exchange that was given up, by this client or by another one.
func (x *exchange) undone(why error) error {
	if why == nil {
		why = fmt.Errorf("%w: another client has undone the exchange", ErrInvalid)
	}
	return &ExchangeError{why, "the set is as it was before"}
}

// abandon undoes what this call has begun, if that is possible, within a bound.
func (x *exchange) abandon(why error) error {
	if x.gone = why; x.e.Mine() && !x.ask.Undo {
		x.e.Undo = true
		ctx, cancel := context.WithTimeout(context.Background(), x.q.Rounds(&x.q.set, 8)+2*x.q.set.NodeTimeout)
		defer cancel()
		for ctx.Err() == nil && !x.q.isClosed() {
			switch outcome, _ := x.round(ctx); outcome {
			case protocol.ExchangeDone:
				return nil
			case protocol.ExchangeUndone:
				return x.undone(why)
			}
			select {
			case <-time.After(x.q.set.NodeTimeout / 4):
			case <-ctx.Done():
			}
		}
	}
	return &ExchangeError{why, x.state()}
}

// state says how far the set has come, for an error.
func (x *exchange) state() string {
	c := x.q.members.config.Load()
	if c == nil {
		return "no node of the list knows the set any more"
	}
	if c.Stage == protocol.Stable {
		return "the set is " + strings.Join(c.Addrs(), " ")
	}
	return "the exchange is under way (" + c.Stage.String() + "), which is safe: the next call finishes it, or undoes it"
}

// unfit says why the change makes no sense for the set.
func (x *exchange) unfit() string {
	c := x.counted
	for _, m := range x.goal.Add {
		if c.Place(m.Addr) >= 0 {
			return m.Addr + " is a node of the set already"
		}
	}
	for _, a := range x.goal.Remove {
		if c.Place(a) < 0 {
			return a + " is no node of the set, which is " + strings.Join(c.Addrs(), " ")
		}
	}
	return "no node of the set would be left, or there would be more than 31"
}

// round looks at the nodes once, and goes on with the exchange if it is time.
func (x *exchange) round(ctx context.Context) (protocol.ExchangeOutcome, error) {
	q := x.q
	c := q.members.config.Load()
	if c == nil {
		return protocol.ExchangeGoesOn, errors.New("every node of the list has lost its data")
	}
	if c != x.counted {
		x.e.Decided(q.now(), c)
		x.counted = c
	}
	left := x.look(ctx, c)
	next, ask := x.e.Propose(q.now(), protocol.NewBallot(q.wall.time(), chance(), ""))
	if k, silent := x.e.GaveUp(); k >= 0 && x.gone == nil {
		x.gone = fmt.Errorf("%w: %s is to be added and has not answered for %v", ErrNoQuorum, c.Members[k].Addr, silent.Round(time.Second))
	}
	if o := x.e.Outcome(); o != protocol.ExchangeGoesOn {
		return o, nil
	}
	x.report(c, next, left)
	if !ask {
		return protocol.ExchangeGoesOn, nil
	}
	return protocol.ExchangeGoesOn, x.decide(ctx, c, next)
}

// decide has what follows c decided, or read if next is nil, and counts on it.
func (x *exchange) decide(ctx context.Context, c, next *protocol.Configuration) error {
	decided, err := x.q.succeed(ctx, c, next)
	switch {
	case err != nil:
		return err
	case decided == nil:
		x.e.Read()
		return nil
	}
	x.q.members.change(-1, func(m *protocol.Membership) {
		if !m.Decide(decided) {
			err = errSetFull
		}
	})
	return err
}

// look asks each member how far it is. It returns the longest guard time that a node has left which enters.
func (x *exchange) look(ctx context.Context, c *protocol.Configuration) (left time.Duration) {
	q := x.q
	members := q.members.slots(c)
	looks := make([]protocol.RepairResult, len(members))
	var all sync.WaitGroup
	for k, i := range members {
		looks[k].Err = errNoAnswer
		if i < 0 || i >= q.nodes.size() {
			continue
		}
		all.Go(func() { looks[k] = q.nodes.at(i).lookAs(ctx, c.Stamp) })
	}
	all.Wait()
	now := q.now()
	for k, l := range looks {
		if l.Err != nil {
			x.e.Silent(now, k)
			continue
		}
		x.e.Moved(now, k)
		x.e.Looked(k, l.Wait == 0, l.CaughtUp)
		if c.Members[k].Role == protocol.Enters {
			left = max(left, l.Wait)
		}
	}
	return left
}

// slots returns which node each member is, -1 where this client has none.
func (s *members) slots(c *protocol.Configuration) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := make([]int, len(c.Members))
	for k := range slots {
		if slots[k] = -1; s.known.Config() == c {
			slots[k] = s.known.Node(k)
		}
	}
	return slots
}

// recorded returns the address by which the set knows the node that this client reaches at addr.
func (s *members) recorded(addr string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, n := range s.q.nodes.all() {
		if n.addr == addr {
			if k := s.known.Member(i); k >= 0 {
				return s.known.Config().Members[k].Addr
			}
		}
	}
	return addr
}

// lookAs reads a node's marker as one of a configuration. A node that does not serve that is an error.
func (n *node) lookAs(ctx context.Context, stamp protocol.Stamp) (res protocol.RepairResult) {
	n.tried(ctx)
	return n.lookAt(ctx, script.HomeOf(stamp).Marker(n.q.set.Prefix), true)
}

// report tells the caller how far the exchange is, if that has changed.
func (x *exchange) report(c, next *protocol.Configuration, left time.Duration) {
	p := ExchangeProgress{Epoch: c.Stamp.Epoch(), Stage: c.Stage.String()}
	var silent []string
	for k := range c.Members {
		if x.e.Awaits(k) {
			silent = append(silent, c.Members[k].Addr)
		}
	}
	switch {
	case next != nil:
	case len(silent) > 0:
		p.Await = strings.Join(silent, " ") + " to answer"
	case c.Stage == protocol.Learning:
		p.Await, p.Left = "the new nodes to take in what the others have", left
	case c.Stage == protocol.Jointly:
		p.Await, p.Left = "the leases to end that only the nodes of before know", x.e.Left(x.q.now())
	default:
		p.Await = "a majority of the nodes to serve the set"
	}
	was := x.shown
	if x.shown = p; was.Stage == p.Stage && was.Epoch == p.Epoch && was.Await == p.Await || x.ask.Progress == nil {
		return
	}
	x.ask.Progress(p)
}

// succeed has the nodes decide which configuration follows c: next, or what was decided before. With nil nothing is
// proposed, and nil is returned if nothing was decided.
//
// Invariant: the lock and the record of the register count the nodes that stay or leave. Without that an exchange whose
// new nodes cannot be reached could not be undone.
func (q *Quorum) succeed(ctx context.Context, c, next *protocol.Configuration) (*protocol.Configuration, error) {
	spec, err := q.NewSpec(Spec{Name: protocol.SuccessorName(c.Stamp), Weight: 1, Capacity: 1, Set: &q.set})
	if err != nil {
		return nil, err
	}
	spec.succession = true
	ctx, cancel := context.WithTimeout(ctx, 4*q.set.TTL)
	defer cancel()
	h, err := q.Acquire(ctx, spec, false, nil)
	if err != nil {
		return nil, err
	}
	defer h.Release()
	r := q.Register(spec)
	rec, err := r.Open(ctx, h)
	switch {
	case err != nil:
		return nil, err
	case rec.Exists:
		decided, ok := protocol.ParseConfiguration(string(rec.Value))
		if !ok {
			return nil, fmt.Errorf("the record of what follows %s makes no sense", c.Stamp)
		}
		return decided, nil
	case next == nil:
		return nil, nil
	}
	return next, r.Put(ctx, h, 1, []byte(next.String()), 0)
}

// prepare finds out what the change is, and that the new nodes can be added.
func (x *exchange) prepare(ctx context.Context, c *protocol.Configuration) error {
	removed, err := ParseNodes(x.ask.Remove)
	if err != nil {
		return err
	}
	for _, a := range removed { // a call that is repeated finds a node gone
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
	case x.ask.Undo && len(added)+len(removed) > 0:
		return fmt.Errorf("%w: an exchange is undone or begun, not both", ErrInvalid)
	case !x.ask.Undo && len(added)+len(removed) == 0:
		return fmt.Errorf("%w: no node is to be added or removed", ErrInvalid)
	}
	runs := map[string]string{} // address by run of the server
	for _, n := range x.q.nodes.live() {
		if run := n.info().RunID; run != "" {
			runs[run] = n.addr
		}
	}
	for _, a := range added {
		if a.failover != nil || a.cluster != nil {
			return fmt.Errorf("%w: a node that is added to a recorded set is a single server", ErrInvalid)
		}
		id := newID()
		m := protocol.Member{Identity: hex.EncodeToString(id[:8]), Addr: a.Addr}
		if k := c.Place(a.Addr); k >= 0 { // the call is repeated, or it is an error that Outcome finds
			m.Identity = c.Members[k].Identity
		} else if err := x.suits(ctx, a, c, runs); err != nil {
			return fmt.Errorf("%w: %s cannot be added: %w", ErrInvalid, a.Addr, err)
		}
		x.goal.Add = append(x.goal.Add, m)
	}
	if !x.q.members.room(x.goal.Add) {
		return fmt.Errorf("%w: this process has followed too many exchanges to add nodes; let another process exchange them", ErrInvalid)
	}
	return nil
}

// room reports whether this client has a number for each of these nodes.
func (s *members) room(added []protocol.Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known.Room(&protocol.Configuration{Members: added}) >= 0
}

var (
	errNotEmpty = errors.New("has the data of another set of nodes; empty it first (FLUSHALL, if nothing else is there)")
	errInUse    = errors.New("is in use by clients of another list of nodes; stop these, and empty it first (FLUSHALL, if nothing else is there)")
)

// suits reports why a server cannot be a new node of the set, nil if it can. It writes nothing there.
//
// Invariant: a node that enters is of no set, or of this one before. Without that a node that others use would get two sets' clients.
func (x *exchange) suits(ctx context.Context, a Address, c *protocol.Configuration, runs map[string]string) error {
	q := x.q
	x.q.nodes.offer(a)
	o, err := q.nodes.optionsAt(a.Addr)
	if err != nil {
		return err
	}
	o.MaxRetries, o.DialerRetries = -1, 1
	client := redis.NewClient(o)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, 10*q.set.NodeTimeout)
	defer cancel()
	conn, err := client.Options().Dialer(ctx, o.Network, o.Addr) // go-redis logs what it cannot dial
	if err != nil {
		return err
	}
	_ = conn.Close()
	info, err := client.Info(ctx).Result()
	if err != nil && !refusedByUser(err) {
		return err
	}
	run := ""
	for line := range strings.Lines(info) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ":"); key {
		case "run_id":
			run = value
		case "role":
			if value != "master" {
				return errReplica
			}
		}
	}
	if other := runs[run]; run != "" && other != "" {
		return &DuplicateError{other}
	}
	runs[run] = a.Addr
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
	case has.Config != nil:
		return nil
	}
	used, err := client.Exists(ctx, script.Home("").Marker(q.set.Prefix)).Result()
	if err == nil && used > 0 {
		err = errInUse
	}
	return err
}

// refusedByUser reports whether the server has answered that this user may not ask.
func refusedByUser(err error) bool {
	var e redis.Error
	return errors.As(err, &e) && slices.Contains([]string{"NOPERM", "ERR"}, resp.Error(e.Error()).Code())
}
