package core

// This file owns the operations on the record of a name, as primitives see
// them: read, open, put, erase. Each is one protocol.RegisterOp that a
// registerCall (register_call.go) drives.
//
// Invariant: a value is returned as recorded only if a majority has it. A value
// that a minority has may be found by no later reader, so a caller that acted
// on it would have acted on nothing.

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

// Record is what the nodes keep of a name beside its claims, as a majority has
// it.
type Record struct {
	Exists bool          // something is recorded, and was not erased since
	Value  []byte        // what
	Token  uint64        // of the hold that recorded or erased it; 0 when none ever did
	Seq    uint64        // and which of that hold's writes it was
	Left   time.Duration // of that hold's lease, as a majority sees it; 0 when it has ended

	// Undecided: a minority has something, and a run has begun since that may
	// have found nothing. It will decide, or the next one. Exists is false.
	Undecided bool

	version protocol.Version
}

// Register is the record of one name. Its rules are in protocol/register.go.
// It has no state of its own, so it is safe for concurrent use.
type Register struct {
	q    *Quorum
	spec *Spec
}

// Register returns the record of s's name.
func (q *Quorum) Register(s *Spec) *Register { return &Register{q: q, spec: s} }

// record returns what a registerCall has found.
// Called when the registerCall is decided.
func (i *registerCall) record() Record {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.in.Newest()
	if i.in.Outcome() == protocol.Inconclusive || s.Version == (protocol.Version{}) {
		return Record{Undecided: i.in.Outcome() == protocol.Inconclusive}
	}
	left, _ := i.in.Left()
	return Record{
		Exists: !s.Erased, Value: s.Value, Token: uint64(s.Ticket) * MaxPasses, Seq: max(s.Seq, 1) - 1, Left: left, version: s.Version,
	}
}

// Read returns what a majority has agreed on. What only some of the nodes have
// is brought to the others first; where a run that came to nothing has left
// that open, one of our own decides, unless another client holds the name. It
// takes one round trip where a majority agrees, and writes nothing then.
func (r *Register) Read(ctx context.Context) (Record, error) {
	in := protocol.RegisterOp{Op: protocol.OpRead, Alive: true}
	rec, err := r.read(ctx, in, protocol.Terms{})
	if err == nil && rules().Decides(rec.Undecided, false) && r.decide(ctx) {
		return r.read(ctx, in, protocol.Terms{})
	}
	return rec, err
}

func (r *Register) read(ctx context.Context, in protocol.RegisterOp, watch protocol.Terms) (Record, error) {
	r.q.AwaitFirst(ctx)
	if r.q.isClosed() {
		return Record{}, &Failure{Err: ErrClosed}
	}
	if err := r.q.members.await(ctx, false); err != nil {
		return Record{}, err
	}
	i := r.start(&registerCall{terms: watch, in: in})
	if err := i.wait(ctx); err != nil {
		return Record{}, err
	}
	return i.record(), nil
}

// decide has a run of its own find out what the last one, which began and came
// to nothing, has left open: whether a minority's record stands. It reports
// whether it could; not while the name is held. A try, so it takes no place in
// a queue: a client that holds the name is deciding the same by its own work.
func (r *Register) decide(ctx context.Context) bool {
	q, s := r.q, r.spec.WithWeight(1)
	s.Capacity = 1
	ctx, cancel := context.WithTimeout(ctx, protocol.DecideWithin(s.Set.NodeTimeout, s.Set.TTL, q.driver.trip(0)))
	defer cancel()
	h, err := q.Acquire(ctx, s, true, nil)
	if err != nil {
		return false
	}
	defer h.Release()
	_, err = q.Register(s).Open(ctx, h)
	return err == nil
}

// version is the hold's seq-th write. Number 0 is what Open records again: what
// the hold itself records must be later than that.
func (h *Hold) version(seq uint64) protocol.Version {
	return protocol.Version{Ticket: h.claim.Ticket(), ID: h.claim.ID, Seq: seq + 1}
}

// Open begins a run under the hold: from here on no earlier hold can record
// anything. It returns what has been recorded before; a record on any node
// counts, and is recorded again. It fails with ErrLost when the hold ends
// before, or a later one has begun a run. The two steps are those of Paxos: the
// promise of a majority, then the newest value again under the new run's
// version. Without the second step a value that a minority has would be found
// by this run, and perhaps not by the next.
func (r *Register) Open(ctx context.Context, h *Hold) (Record, error) {
	if r.q.isClosed() {
		return Record{}, &Failure{Err: ErrClosed}
	}
	i := r.start(&registerCall{hold: h, in: protocol.RegisterOp{
		Op: protocol.OpOpen, Stored: protocol.Stored{Version: h.version(0)},
	}})
	if err := i.wait(ctx); err != nil {
		return Record{}, err
	}
	i.mu.Lock()
	adopted, few := i.in.Adopt()
	i.mu.Unlock()
	if few {
		if err := r.put(ctx, h, adopted); err != nil {
			return Record{}, err
		}
	}
	return i.record(), nil
}

// Put records value under the hold's ticket and waits until a majority has it.
// It tries for as long as ctx lasts, also when the hold is lost meanwhile; it
// fails with ErrLost when a later hold has begun a run, when no node can take
// it any more, or half an hour after the loss. Of one hold's writes the one
// with the highest seq stays. keep is how long the nodes remember; 0: without
// end.
func (r *Register) Put(ctx context.Context, h *Hold, seq uint64, value []byte, keep time.Duration) error {
	return r.put(ctx, h, protocol.Stored{Version: h.version(seq), Value: value, Keep: keep})
}

// PutFirst is Put of a run's first write where no Open came before. It fails
// with ErrLost also where too few nodes come to vote for the hold, and another
// one refuses it.
func (r *Register) PutFirst(ctx context.Context, h *Hold, value []byte) error {
	return r.begin(ctx, h, protocol.RegisterOp{Stored: protocol.Stored{Version: h.version(0), Value: value}, First: true})
}

// Erase is Put of nothing.
// What stays is the version: without it a write of an earlier hold that arrives
// late would be taken for new.
func (r *Register) Erase(ctx context.Context, h *Hold, seq uint64, keep time.Duration) error {
	return r.put(ctx, h, protocol.Stored{Version: h.version(seq), Erased: true, Keep: keep})
}

func (r *Register) put(ctx context.Context, h *Hold, s protocol.Stored) error {
	return r.begin(ctx, h, protocol.RegisterOp{Stored: s})
}

func (r *Register) begin(ctx context.Context, h *Hold, in protocol.RegisterOp) error {
	if r.q.isClosed() {
		return &Failure{Err: ErrClosed}
	}
	in.Op = protocol.OpPut
	return r.start(&registerCall{hold: h, in: in}).wait(ctx)
}

// Retire erases and releases the hold in one go, without waiting for the nodes:
// each of them erases before it gives the vote to the next, for the two go to
// it in this order on one connection. The put is given up at once, with the
// requests already queued: its caller has no use for the outcome. ClassOfRecord
// puts an erasure into the class of the leaves, so it is before the leave also
// where both wait for room.
func (r *Register) Retire(h *Hold, seq uint64, keep time.Duration) {
	if h.Valid() && !r.q.isClosed() {
		s := protocol.Stored{Version: h.version(seq), Erased: true, Keep: keep}
		r.start(&registerCall{in: protocol.RegisterOp{Op: protocol.OpPut, Stored: s}}).end(nil)
	}
	h.Release()
}
