package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/fault"
)

// A Leader describes the current leader, as recorded by a majority of the
// nodes.
type Leader struct {
	ID    string        // see WithID
	Value string        // see WithValue, Campaign and Proclaim
	Term  uint64        // its term, which is its fencing token: lower than that of any later leader
	Host  string        // the process's host
	PID   int           // the process's ID on that host
	Since time.Time     // when it won, by its machine's wall clock
	Left  time.Duration // time left on its lease when the nodes were asked
}

// Leader asks the nodes who the leader is. It returns [ErrNoLeader] if there is
// none, and [quorate.ErrInvalid] if the name holds some other kind of record.
// The answer may be out of date by the time it arrives.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	e.usable()
	var l Leader
	err := e.err
	if err == nil {
		var rec core.Record
		if rec, err = e.reg.Read(ctx); err == nil {
			l, err = leaderOf(rec)
		}
	}
	return l, core.WrapError("leader", e.name, err)
}

// Holder asks the nodes which process holds the election's claim: the leader,
// even before its ID and Value are recorded, or for a moment a candidate that
// then steps back for the one that [Election.TransferTo] chose. It returns [quorate.ErrNotHeld] if
// no process does. The answer may be out of date by the time it arrives.
func (e *Election) Holder(ctx context.Context) (quorate.Holder, error) {
	e.usable()
	if e.err != nil {
		return quorate.Holder{}, core.WrapError("holder", e.name, e.err)
	}
	h, err := e.q.Onlooker().Holder(ctx, e.spec)
	return quorate.Holder(h), core.WrapError("holder", e.name, err)
}

func leaderOf(rec core.Record) (Leader, error) {
	if !rec.Exists || rec.Left <= 0 {
		return Leader{}, ErrNoLeader
	}
	var r record
	if err := json.Unmarshal(rec.Value, &r); err != nil || r.ID == "" { // a leader has one
		return Leader{}, fmt.Errorf("%w: this name is in use by another primitive, or by a newer version",
			fault.ErrInvalid)
	}
	return Leader{ID: r.ID, Value: r.Value, Term: rec.Token, Host: r.Host, PID: r.PID, Since: r.Since,
		Left: rec.Left}, nil
}

// Observe yields the current leader, and then every change as the nodes push
// it:
//
//   - a [Leader]: there is a new leader, or the same leader has a new value (the
//     term tells you which);
//   - an error that matches [ErrNoLeader]: there is no leader;
//   - an error that matches [quorate.ErrNoQuorum]: too few nodes are answering.
//
// Observe continues after an error. After ErrNoQuorum, it yields the state
// again as soon as the nodes answer, whether or not it has changed.
//
// If the loop body is slow, it skips intermediate changes and gets the newest
// state. It never gets an older state after a newer one. Observing costs each
// node one request every TTL/3.
//
// The sequence ends when ctx is done or the Quorum is closed. If the name is
// invalid, it yields a single error. You may range over the sequence more than
// once, even concurrently.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	e.usable()
	return func(yield func(Leader, error) bool) {
		if e.err != nil {
			yield(Leader{}, core.WrapError("observe", e.name, e.err))
			return
		}
		w := e.reg.Watch()
		defer w.Close()
		var reported sight
		for ctx.Err() == nil {
			if s, l, err := look(w); s != reported {
				if errors.Is(err, fault.ErrClosed) {
					return
				}
				if reported = s; !yield(l, core.WrapError("observe", e.name, err)) {
					return
				}
				continue // it may have taken long
			}
			select {
			case <-w.Changed():
			case <-ctx.Done():
			case <-e.q.Over:
				return
			}
		}
	}
}

// sight is the state that an observer has seen. Equal sights are reported once.
type sight struct {
	known, asked, led bool
	term, write       uint64
}

// look returns what a watch has to say; nothing, the zero sight, at first.
func look(w *core.Watch) (sight, Leader, error) {
	rec, known, err := w.Latest()
	switch {
	case err != nil:
		return sight{known: true}, Leader{}, err
	case !known:
		return sight{}, Leader{}, nil
	}
	l, err := leaderOf(rec)
	if errors.Is(err, ErrNoLeader) {
		return sight{known: true, asked: true}, l, err
	}
	return sight{known: true, asked: true, led: true, term: rec.Token, write: rec.Seq}, l, err
}
