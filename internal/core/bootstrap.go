package core

// This file owns Bootstrap: the recording of the set, whose steps protocol.Recording says, and the declaration
// that all nodes are ready.

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// Bootstrap declares every node ready. It needs an answer of each node: with one of them
// still within its guard time, the operator would believe that all of them vote.
func (q *Quorum) Bootstrap(ctx context.Context) error { return q.bootstrap(ctx, false) }

// BootstrapSet has all nodes record the set of nodes as well. The set may be in use, so a guard time that runs is kept if any
// node votes.
func (q *Quorum) BootstrapSet(ctx context.Context) error { return q.bootstrap(ctx, true) }

func (q *Quorum) bootstrap(ctx context.Context, set bool) error {
	if q.buckets == nil || q.isClosed() {
		return (&bootstrap{q: q, set: set}).run(ctx)
	}
	return q.buckets.each(func(_ int, bucket *Quorum) error { return (&bootstrap{q: bucket, set: set}).run(ctx) })
}

// bootstrap is one call of Bootstrap. It has the nodes asked, and decides nothing: protocol.Recording
// does. Only its caller's goroutine uses it.
type bootstrap struct {
	q   *Quorum
	set bool // the set is to be recorded, too

	// The incarnation of each node when all had been asked and none voted; nil until then.
	idle []protocol.Incarnation
}

func (b *bootstrap) run(ctx context.Context) error {
	if b.q.isClosed() {
		return &Failure{Err: ErrClosed}
	}
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

// beingJudged reports whether all that is wrong is that nodes are connected to again because of their set. This
// client's own requests cause that while it records the set: the nodes refuse those that name none.
func beingJudged(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	for i := 0; ok && i < len(f.Nodes); i++ {
		why := f.Nodes[i].Err
		e, refused := errors.AsType[resp.Error](why) // of a connection that began meanwhile
		ok = errors.Is(why, errRejudged) || errors.Is(why, errOtherSet) || errors.Is(why, errSetPending) || refused && e.Code() == script.OtherSet
	}
	return ok && len(f.Nodes) > 0
}

// declare records the set, and has each node ready.
func (b *bootstrap) declare(ctx context.Context) error {
	if c := b.q.members.config.Load(); b.set && c == nil || c != nil && c.Stamp.Epoch() == 1 {
		if err := b.record(ctx); err != nil {
			return err
		}
	}
	if err := b.ready(ctx); err != nil {
		return err
	}
	b.q.driver.carryOut(b.q.driver.client.Bootstrapped(b.q.now()))
	return nil
}

// ready declares each node ready.
//
// Invariant: to record a set ends a guard time only if no node votes. Where one votes the set is in use, and a node within its
// guard time may have forgotten a lease. Without the rule a set that is recorded just after a node lost its data has that node vote
// beside the holders that it has forgotten.
//
// Invariant: what the nodes were before the first one was declared decides that, and it goes for those incarnations. Without
// that a call that could not declare one of the nodes finds the others voting when it tries again, and the one stays
// within its guard time. With a second node down there is no quorum then.
func (b *bootstrap) ready(ctx context.Context) error {
	if !b.set || !on(RuleKeepGuard) {
		_, _, err := b.end(ctx, func(int) string { return script.EndAny })
		return err
	}
	if b.idle == nil {
		votes, incs, err := b.end(ctx, func(int) string { return script.EndNone })
		if err != nil || votes {
			return err
		}
		b.idle = incs
	}
	_, _, err := b.end(ctx, func(i int) string { return strconv.FormatUint(uint64(b.idle[i]), 10) })
	return err
}

// end ends the guard time of each node that is of an incarnation. It reports whether a node votes, and the incarnations.
func (b *bootstrap) end(ctx context.Context, of func(node int) string) (votes bool, incs []protocol.Incarnation, err error) {
	q := b.q
	var voting [maxNodes]atomic.Bool
	incs = make([]protocol.Incarnation, maxNodes)
	errs := q.nodes.ask(ctx, func(dst []byte, n *node) []byte {
		return script.AppendBootstrap(dst, q.members.markerKey(), newID(), cmp.Or(n.info().Run(), "-"), of(n.index), q.set.Guard, q.set.Retention)
	}, func(i int, v []resp.Value) error {
		inc, age, err := script.DecodeMarker(v)
		if err == nil {
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
			n.noteRecovering(protocol.Answer{Status: protocol.OK})
		}
	}
	return votes, incs, nil
}

// record records the set of this client's list, or finds that it is recorded already.
func (b *bootstrap) record(ctx context.Context) error {
	if wrong := b.q.members.wrong.Load(); wrong != nil {
		return &Failure{Err: wrong}
	}
	ballot := protocol.NewBallot(b.q.wall.time(), chance(), "")
	for {
		c := &protocol.Configuration{Stamp: protocol.StampOf(1, ballot), Guard: b.q.set.Guard, Retention: b.q.set.Retention}
		for _, n := range b.q.nodes.all() {
			id := newID()
			c.Members = append(c.Members, protocol.Member{Identity: hex.EncodeToString(id[:8]), Addr: n.addr})
		}
		r := protocol.NewRecording(c, ballot, rules())
		last, err := b.carryOut(ctx, r)
		if err == nil {
			b.q.members.change(-1, func(m *protocol.Membership) { m.Recorded(r) })
		}
		if !errors.Is(err, errOutrun) {
			return err
		}
		select {
		case <-time.After(time.Duration(chance()%50+10) * time.Millisecond):
		case <-ctx.Done():
			return &Failure{Err: &cutShort{ErrNoQuorum, ContextError(ctx)}}
		}
		ballot = protocol.NewBallot(b.q.wall.time(), chance(), last)
	}
}

// errOutrun says that another client records a set at the same moment.
var errOutrun = errors.New("another client records the set at this moment")

// carryOut carries out a Recording. It returns the highest ballot that a node has promised.
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
		return last, &Failure{Err: fmt.Errorf("%w: node %s is the same server as another one of the list; give each server once", ErrInvalid, b.q.nodes.at(r.Node).addr)}
	case protocol.RecordForgotten:
		return last, &Failure{Err: errSetForgotten}
	}
	return last, errOutrun
}

// recordSteps asks the nodes what a Recording wants to be asked. It returns the highest ballot that a node
// has promised.
func (b *bootstrap) recordSteps(ctx context.Context, r *protocol.Recording) (last protocol.Ballot, err error) {
	for len(r.Out) > 0 {
		steps := make([]*protocol.RecordStep, maxNodes)
		for _, s := range r.Out {
			steps[s.Node] = &s
		}
		r.Out = nil
		has := make([]protocol.NodeSet, maxNodes)
		errs := b.q.nodes.ask(ctx, func(dst []byte, n *node) []byte {
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
