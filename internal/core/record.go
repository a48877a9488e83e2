package core

// The operations on the record of a name, as primitives see them: read, open,
// put, erase. Each is one lease.RegisterOp that a registerCall
// (register_call.go) drives.
// Invariant: a value is returned as recorded only if a majority has it.

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/repair"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
)

// Record is what a majority of the nodes stores for a name in addition to its
// claims.
type Record struct {
	Exists bool          // something is recorded and has not been erased since
	Value  []byte        // what; after RetireWith the message
	Token  uint64        // of the hold that recorded or erased it; 0 when none ever did
	Seq    uint64        // the number of the write within that hold
	Left   time.Duration // time left of that hold's lease, as a majority sees it; 0 once it has ended

	// Undecided means that a minority has a value that a later run may not have
	// found. That run or the next one decides whether the value is recorded.
	// Exists is false.
	Undecided bool

	version protocol.Version
}

// record returns what was found. Called after the registerCall is decided.
func (i *registerCall) record() Record {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.op.Newest()
	if i.op.Outcome() == lease.Inconclusive || s.Version == (protocol.Version{}) {
		return Record{Undecided: i.op.Outcome() == lease.Inconclusive}
	}
	left, _ := i.op.Left()
	return Record{
		Exists: !s.Erased, Value: s.Value, Token: uint64(s.Ticket) * MaxPasses, Seq: max(s.Seq, 1) - 1,
		Left: left, version: s.Version,
	}
}

// Read returns the record that a majority agrees on. If only some of the nodes
// have the newest one, it is brought to the others first: see lease.Run.Read.
// If a majority agrees, Read takes one round trip and writes nothing.
func (r *Register) Read(ctx context.Context) (Record, error) {
	if err := r.q.Members.Await(ctx, false); err != nil {
		return Record{}, err
	}
	run := r.decision()
	return r.run(ctx, none, func(io lease.RunIO) bool {
		return run.Read(io, lease.RegisterOp{Op: protocol.OpRead, Alive: true})
	})
}

// Peek is like Read, but it decides nothing, and the hold that recorded the
// value may still be running.
func (r *Register) Peek(ctx context.Context) (Record, error) {
	return r.read(ctx, lease.RegisterOp{Op: protocol.OpRead}, protocol.Terms{})
}

// decide settles whether the value that the last run has left undecided is
// recorded, and reports whether it could.
func (r *Register) decide(ctx context.Context) bool {
	_, err := r.run(ctx, none, r.decision().Decide)
	return err == nil
}

// decision is a Run that decides what the last run has left undecided.
func (r *Register) decision() *lease.Run {
	within := repair.DecideWithin(r.spec.Set.NodeTimeout, r.spec.Set.TTL,
		r.q.Driver.Client.Fanout().QuorumTrip(r.q.Driver.Sets(), 0))
	return &lease.Run{Try: true, Within: within}
}

// runIO is the lease.RunIO of a Run. It serves one Run.
type runIO struct {
	r          *Register
	ctx        context.Context
	hold       Hold            // or none
	bound      context.Context // context of the questions that are asked under the hold
	releaseOwn func()          // releases the hold that Lock has acquired; nil if Lock was not called
	rec        Record          // what was read, or found by an open
	err        error           // error of the last question
}

func (io *runIO) Lock(try bool, within time.Duration) (v protocol.Version, held bool) {
	lock := io.r.spec.WithWeight(1)
	lock.Capacity = 1
	bound, cancel := context.WithTimeout(io.ctx, within)
	h, err := io.r.q.Acquire(bound, lock, try, nil)
	if io.err = err; err != nil {
		cancel()
		return v, false
	}
	io.hold, io.bound, io.releaseOwn = h, bound, func() {
		h.Release()
		cancel()
	}
	return h.version(0), true
}

func (io *runIO) Release() {
	if io.releaseOwn != nil {
		io.releaseOwn()
		io.hold, io.bound, io.releaseOwn = none, io.ctx, nil
	}
}

func (io *runIO) Do(op lease.RegisterOp) (found lease.RunResult, ok bool) {
	i := io.r.start(&registerCall{hold: io.hold, op: op})
	if io.err = i.wait(io.bound); io.err == nil && op.Op != protocol.OpPut {
		io.rec = i.record()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.op.Result(), io.err == nil
}

// run carries out a Run on the record, under h unless h is none. It returns the
// record that a read or an open found.
func (r *Register) run(ctx context.Context, h Hold, work func(io lease.RunIO) bool) (Record, error) {
	io := &runIO{r: r, ctx: ctx, hold: h, bound: ctx}
	if work(io) {
		io.err = nil
	}
	return io.rec, io.err
}

// read carries out one read, without a Run. If watch is not zero, the nodes
// also register the watch that it names.
func (r *Register) read(ctx context.Context, op lease.RegisterOp, watch protocol.Terms) (Record, error) {
	if err := r.q.Members.Await(ctx, false); err != nil {
		return Record{}, err
	}
	i := r.start(&registerCall{terms: watch, op: op})
	if err := i.wait(ctx); err != nil {
		return Record{}, err
	}
	return i.record(), nil
}

// version returns the version of the seq-th write of the hold. Version.Seq 0 is
// left for the value that Open records again (lease.RegisterOp.Adopt). What the
// hold itself records must be later, so its first write has Version.Seq 1.
func (h Hold) version(seq uint64) protocol.Version {
	return protocol.Version{Ticket: h.a.claim.State.Ticket(), ID: h.a.claim.State.ID, Seq: seq + 1}
}

// Open begins a run under the hold: from here on no earlier hold can record
// anything. It returns what was recorded before. Even a record on a single node
// counts, and is recorded again (lease.Run.Open). It fails with ErrLost if the
// hold ends first, or if a later hold has begun a run.
func (r *Register) Open(ctx context.Context, h Hold) (Record, error) {
	if r.q.IsClosed() {
		return Record{}, &fault.Failure{Err: fault.ErrClosed}
	}
	return r.run(ctx, h, func(io lease.RunIO) bool { return new(lease.Run).Open(io, h.version(0)) })
}

// Put records value under the hold and waits until a majority has it. Open or
// PutFirst must have begun the run. Put continues if the hold is lost, because it
// records what was done while the hold lasted, and a later run keeps it out. It
// gives up LatePut after the loss, with the hold's Cause. It fails with ErrLost if
// a later hold has begun a run, or if too few nodes for a majority can still take
// the value. If one hold writes several times, the write with the highest seq
// wins. keep is how long the nodes keep the value; 0 means permanently.
func (r *Register) Put(ctx context.Context, h Hold, seq uint64, value []byte, keep time.Duration) error {
	return r.begin(ctx, h, lease.RegisterOp{Stored: protocol.Stored{Version: h.version(seq),
		Value: value, Keep: keep}})
}

// PutFirst is like Put, for the first write of a run that was not opened. It
// also fails with ErrLost if too few nodes vote for the hold and another node
// refuses it.
func (r *Register) PutFirst(ctx context.Context, h Hold, value []byte) error {
	return r.begin(ctx, h, lease.RegisterOp{Stored: protocol.Stored{Version: h.version(0), Value: value},
		First: true})
}

// Erase is like Put, but records that there is no value.
func (r *Register) Erase(ctx context.Context, h Hold, seq uint64, keep time.Duration) error {
	return r.begin(ctx, h, lease.RegisterOp{Stored: protocol.Stored{Version: h.version(seq),
		Erased: true, Keep: keep}})
}

// begin starts a put or an erase and waits until it is decided.
func (r *Register) begin(ctx context.Context, h Hold, op lease.RegisterOp) error {
	if r.q.IsClosed() {
		return &fault.Failure{Err: fault.ErrClosed}
	}
	op.Op = protocol.OpPut
	return r.start(&registerCall{hold: h, op: op}).wait(ctx)
}

// Retire erases and releases the hold together, without waiting for the nodes.
// Each node erases before it gives the vote to the next claim, because both
// requests go to it in this order on one connection, even if they wait for room
// (ClassOfRecord).
func (r *Register) Retire(h Hold, seq uint64, keep time.Duration) {
	if i := r.retire(h, seq, keep, nil); i != nil {
		i.end(nil)
	}
	h.Release()
}

// RetireWith is like Retire, and leaves a message to the next holder, which Peek
// returns. So that no majority misses it, RetireWith waits until a majority has
// erased the record, or ctx ends, before it releases the hold: a node that does
// not vote for the hold refuses the erasure, but may vote for the next one.
func (r *Register) RetireWith(ctx context.Context, h Hold, seq uint64, keep time.Duration, message []byte) {
	if i := r.retire(h, seq, keep, message); i != nil {
		_ = i.wait(ctx)
	}
	h.Release()
}

// retire sends the last write of a hold, or returns nil if the hold has ended.
func (r *Register) retire(h Hold, seq uint64, keep time.Duration, message []byte) *registerCall {
	if !h.Valid() || r.q.IsClosed() {
		return nil
	}
	s := protocol.Stored{Version: h.version(seq), Erased: true, Keep: keep, Value: message}
	return r.start(&registerCall{op: lease.RegisterOp{Op: protocol.OpPut, Stored: s}})
}

// number returns the register that stores how many permits a semaphore has.
// NewSpec has already accepted the name.
func number(q *claims, name string, set *setup.Settings) *Register {
	lock, _ := q.NewSpec(Spec{Name: name, side: script.Number, Weight: 1, Capacity: 1, Set: set})
	return q.Register(lock)
}
