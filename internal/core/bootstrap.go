package core

// This file owns Bootstrap: the recording of the set, whose steps
// protocol.Recording says, and the declaration that all nodes are ready.

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// Bootstrap declares every node ready, and has them record the set if no client
// uses them yet. It needs an answer of each node: with one of them still within
// its guard time, the operator would believe that all of them vote.
func (q *Quorum) Bootstrap(ctx context.Context) error { return q.bootstrap(ctx, recordsNew) }

// BootstrapSet has all nodes record the set of nodes, too, where clients use it
// already.
func (q *Quorum) BootstrapSet(ctx context.Context) error { return q.bootstrap(ctx, recordsAny) }

// BootstrapUnrecorded declares every node ready, and records nothing that is
// not recorded.
func (q *Quorum) BootstrapUnrecorded(ctx context.Context) error { return q.bootstrap(ctx, recordsNone) }

func (q *Quorum) bootstrap(ctx context.Context, which whichSets) error {
	if q.buckets == nil || q.isClosed() {
		return newBootstrap(q, which).run(ctx)
	}
	return q.buckets.each(func(_ int, bucket *Quorum) error { return newBootstrap(bucket, which).run(ctx) })
}

// whichSets is which sets a call of Bootstrap records.
type whichSets uint8

const (
	recordsNew  whichSets = iota // a set that no client uses, and one whose recording was begun
	recordsAny                   // one that is in use, too
	recordsNone                  // none
)

// bootstrap is one call of Bootstrap. It has the nodes asked, and decides
// nothing: protocol.Declaration and protocol.Recording do. Only its caller's
// goroutine uses it.
type bootstrap struct {
	q     *Quorum
	which whichSets
	d     protocol.Declaration
}

func newBootstrap(q *Quorum, which whichSets) *bootstrap {
	return &bootstrap{q: q, which: which, d: protocol.Declaration{Set: which == recordsAny, Rules: rules()}}
}

func (b *bootstrap) run(ctx context.Context) error {
	if b.q.isClosed() {
		return &Failure{Err: ErrClosed}
	}
	// A program that calls New and Bootstrap in one breath has no connection
	// yet. Without the wait it would fail at once with "node is down" for nodes
	// that are there.
	for _, n := range b.q.nodes.all() {
		n.tried(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*b.q.set.NodeTimeout)
	defer cancel()
	for {
		err := b.declare(ctx)
		if err == nil || !beingJudged(err) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// beingJudged reports whether all that is wrong is that nodes are connected to
// again because of their set. This client's own requests cause that while it
// records the set: the nodes refuse those that name none.
func beingJudged(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	for i := 0; ok && i < len(f.Nodes); i++ {
		ok = judgedAgain(f.Nodes[i].Err)
	}
	return ok && len(f.Nodes) > 0
}

// judgedAgain reports whether a node's error says that it is connected to again
// because of its set. None of these is an operator's to mend: they pass with
// the next handshake.
func judgedAgain(why error) bool {
	e, refused := errors.AsType[resp.Error](why) // of a connection that began meanwhile
	return errors.Is(why, errRejudged) || errors.Is(why, errMoving) || errors.Is(why, errOtherSet) || errors.Is(why, errSetPending) || refused && e.Code() == script.OtherSet
}

// declare records the set, and has each node ready. In that order: a node that
// votes before it has recorded its set serves clients of any list. A call that
// fails in between leaves nodes that have recorded the set and wait for their
// guard time.
//
// Only the first configuration is recorded. A set that has exchanged nodes has
// a later epoch, and the list of this client may name nodes that have left.
func (b *bootstrap) declare(ctx context.Context) error {
	if b.which == recordsNew && !b.d.Set {
		if err := b.judge(ctx); err != nil {
			return b.whole(err)
		}
	}
	if c := b.q.members.config.Load(); b.d.Set && c == nil || c != nil && c.Stamp.Epoch() == 1 {
		if err := b.record(ctx); err != nil {
			return b.whole(err)
		}
	}
	if err := b.ready(ctx); err != nil {
		return err
	}
	// The claims that wait ask the nodes again now. Otherwise each would learn
	// with its next beat that the nodes vote.
	b.q.driver.carryOut(b.q.driver.client.Bootstrapped(b.q.now()))
	return nil
}

// errUnfit says what to do about servers that cannot be nodes of a set that is
// to be recorded. It does not advise to go without a record: that would declare
// nodes ready, of which one is counted twice.
var errUnfit = fmt.Errorf("%w: the nodes record their set only when each server of the list can be one of them; do what the node's error says", ErrNoQuorum)

// errNotWhole says what to do about nodes that do not answer while a set is to
// be recorded.
var errNotWhole = fmt.Errorf("%w: the nodes record their set only when all of them answer; start those that do not, "+
	"or declare the others without a record by \"quorate bootstrap --record=false\" or Quorum.BootstrapUnrecorded", ErrNoQuorum)

// whole adds to an error of Bootstrap what the caller can do about nodes that
// do not answer. If a node has shown that the list is another one than the
// set's, the error is that.
func (b *bootstrap) whole(err error) error {
	if wrong, ok := errors.AsType[*SetError](err); ok {
		return &Failure{Err: wrong}
	}
	f, ok := errors.AsType[*Failure](err)
	if !ok || !errors.Is(f.Err, ErrNoQuorum) || b.which != recordsNew {
		return err
	}
	// A Failure is not changed once it is returned: the copy is.
	c := *f
	c.Err = errNotWhole
	if slices.ContainsFunc(f.Nodes, func(n NodeFailure) bool { return unfit(n.Err) }) {
		c.Err = errUnfit
	}
	return &c
}

// unfit reports whether a node's error is about which server it is.
func unfit(err error) bool {
	_, member := errors.AsType[*MemberError](err)
	_, duplicate := errors.AsType[*DuplicateError](err)
	return member || duplicate
}

// judge finds out whether a set that Bootstrap was called for is to be
// recorded. Nothing depends on what clients do between this and the record: to
// record a set that is in use is safe (docs/membership.md).
func (b *bootstrap) judge(ctx context.Context) error {
	if b.q.members.config.Load() != nil {
		b.d.Set = true
		return nil
	}
	ctx, known := context.WithCancel(ctx) // a node in use decides it, and one that hangs is waited for no longer
	defer known()
	list := b.q.nodes.all()
	errs, uses := make([]error, len(list)), make([]protocol.NodeUse, len(list))
	var all sync.WaitGroup
	for i, n := range list {
		if has := n.shown(); has != nil && has.Config != nil {
			uses[i] = protocol.UseBegun
			continue
		}
		all.Go(func() {
			m, err := n.markerWithin(ctx, b.q.members.markerKey())
			switch {
			case errors.Is(err, errForgetful): // a node without a marker is new
				uses[i] = protocol.UseNone
			case err != nil:
				errs[i] = err
			case m.caughtUp:
				uses[i] = protocol.UseMade
				if d := b.d; d.Judge([]protocol.NodeUse{protocol.UseMade, protocol.UseUnknown}) {
					known()
				}
			default:
				uses[i] = protocol.UseNone
			}
		})
	}
	all.Wait()
	begun := slices.Contains(uses, protocol.UseBegun)
	if !begun && slices.ContainsFunc(errs, func(err error) bool { return err != nil && judgedAgain(err) }) {
		return b.q.nodes.asked(errs, len(errs))
	}
	if !b.d.Judge(uses) {
		return b.q.nodes.asked(errs, len(errs))
	}
	if !b.d.Set && b.q.set.maySay(time.Now()) {
		b.q.set.Logger.Info("quorate: the set of nodes is not recorded, as clients use it already; " +
			"when all of them have the same list, call Quorum.RecordSet or run \"quorate bootstrap --record\"")
	}
	return nil
}

// ready declares each node ready.
func (b *bootstrap) ready(ctx context.Context) error {
	for {
		votes, incs, err := b.end(ctx, func(i int) string {
			switch of, any := b.d.Ends(i); {
			case any:
				return script.EndAny
			case of == 0:
				return script.EndNone
			default:
				return strconv.FormatUint(uint64(of), 10)
			}
		})
		if err != nil || b.d.Declared(votes, incs) {
			return err
		}
	}
}

// end ends the guard time of each node that is of an incarnation. It reports
// whether a node votes, and the incarnations.
func (b *bootstrap) end(ctx context.Context, of func(node int) string) (votes bool, incs []protocol.Incarnation, err error) {
	q := b.q
	var voting [maxNodes]atomic.Bool
	incs = make([]protocol.Incarnation, maxNodes)
	errs := b.ask(ctx, func(dst []byte, n *node) []byte {
		return script.AppendBootstrap(dst, q.members.markerKey(), newID(), cmp.Or(n.info().Run(), "-"), of(n.index), q.set.Guard, q.set.Retention)
	}, func(i int, v []resp.Value) error {
		inc, age, err := script.DecodeMarker(v)
		if err == nil {
			// The script makes a marker where there was none. Without show the
			// next answer would be of another incarnation than the connection
			// began with, and would not count.
			q.nodes.at(i).show(inc)
			incs[i] = inc
			voting[i].Store(age >= q.set.Guard)
		}
		return err
	})
	if err := q.nodes.asked(errs, len(errs)); err != nil {
		return false, nil, err
	}
	for _, n := range q.nodes.all() {
		if voting[n.index].Load() {
			votes = true
			// Only of the nodes that vote now: the log goes on to count one
			// whose guard time was kept.
			n.noteRecovering(protocol.Answer{Status: protocol.OK})
		}
	}
	return votes, incs, nil
}

// errMoving says that a member has no connection at this moment, as discovery
// has found its new address.
var errMoving = errors.New("is being connected to at another address")

// ask is nodes.ask, with an error for each member that was not asked.
//
// Invariant: a member that discovery moves has not answered. Without the rule
// the set would be recorded, and declared ready, with a member that was asked
// nothing.
func (b *bootstrap) ask(ctx context.Context, encode func(dst []byte, n *node) []byte, take func(i int, v []resp.Value) error) []error {
	errs := b.q.nodes.ask(ctx, encode, take)
	for i, err := range errs {
		if wanted, _ := b.q.members.wants(i); wanted && errors.Is(err, errDropped) {
			errs[i] = errMoving
		}
	}
	return errs
}

// record records the set of this client's list, or finds that it is recorded
// already.
func (b *bootstrap) record(ctx context.Context) error {
	if wrong := b.q.members.wrong.Load(); wrong != nil {
		return &Failure{Err: wrong}
	}
	// The ballot begins with the time, so that a later call is higher without
	// asking. A clock that is behind costs a round: errRecordingSuperseded
	// brings the highest ballot that a node has promised.
	ballot := protocol.NewBallot(b.q.wall.time(), chance(), "")
	for {
		c := &protocol.Configuration{Stamp: protocol.StampOf(1, ballot), Guard: b.q.set.Guard, Retention: b.q.set.Retention}
		// A round that was superseded draws other identities. They count only
		// where no node has accepted a configuration: what one has accepted is
		// proposed again (rule 4).
		for _, n := range b.q.nodes.all() {
			id := newID()
			c.Members = append(c.Members, protocol.Member{Identity: hex.EncodeToString(id[:8]), Addr: n.addr})
		}
		r := protocol.NewRecording(c, ballot, rules())
		last, err := b.carryOut(ctx, r)
		if err == nil {
			b.q.members.change(-1, func(m *protocol.Membership) { m.Recorded(r) })
		}
		if !errors.Is(err, errRecordingSuperseded) {
			return err
		}
		select {
		// By chance, or two callers that outran each other once would do so
		// again and again.
		case <-time.After(time.Duration(chance()%50+10) * time.Millisecond):
		case <-ctx.Done():
			return &Failure{Err: &cutShort{ErrNoQuorum, ContextError(ctx)}}
		}
		ballot = protocol.NewBallot(b.q.wall.time(), chance(), last)
	}
}

// errRecordingSuperseded says that another client records a set at the same
// moment.
var errRecordingSuperseded = errors.New("another client records the set at this moment")

// carryOut carries out a Recording. It returns the highest ballot that a node
// has promised. It may end half-way: nodes that have promised serve as before,
// and one that has accepted refuses all requests until the next recording of
// this list ends the matter (TestBootstrapEndsARecording).
func (b *bootstrap) carryOut(ctx context.Context, r *protocol.Recording) (last protocol.Ballot, err error) {
	if last, err = b.recordSteps(ctx, r); err != nil {
		return last, err
	}
	switch r.Outcome {
	case protocol.RecordDone, protocol.RecordAlready:
		return last, nil
	case protocol.RecordOther:
		return last, &Failure{Err: &SetError{List: b.q.members.list(), Set: r.Config.Addrs(), Since: r.Config.Stamp.Since()}}
	case protocol.RecordTwice:
		return last, &Failure{Err: fmt.Errorf("%w: node %s is the same server as %s; give each server once", ErrInvalid, b.q.addr(r.Node), b.q.addr(r.Other))}
	case protocol.RecordForgotten:
		return last, &Failure{Err: errSetForgotten}
	}
	return last, errRecordingSuperseded
}

// recordSteps asks the nodes what a Recording wants to be asked. It returns the
// highest ballot that a node has promised.
func (b *bootstrap) recordSteps(ctx context.Context, r *protocol.Recording) (last protocol.Ballot, err error) {
	for len(r.Out) > 0 {
		steps := make([]*protocol.RecordStep, maxNodes)
		for _, s := range r.Out {
			steps[s.Node] = &s
		}
		// All nodes are asked each step at once, and each must answer before
		// the next: the quorum of a first recording is all of them.
		r.Out = nil
		has := make([]protocol.NodeSet, maxNodes)
		errs := b.ask(ctx, func(dst []byte, n *node) []byte {
			if steps[n.index] == nil {
				return nil
			}
			return b.q.members.setStep(dst, n, *steps[n.index])
		}, func(i int, v []resp.Value) (err error) {
			has[i], err = script.DecodeSet(v)
			return err
		})
		if err := b.q.nodes.asked(errs, len(errs)); err != nil {
			return last, err
		}
		for i, s := range steps {
			if s != nil {
				last = max(last, has[i].Promised)
				r.Answer(*s, has[i])
			}
		}
	}
	return last, nil
}

func chance() uint32 {
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err) // documented never to happen
	}
	return binary.BigEndian.Uint32(b[:])
}
