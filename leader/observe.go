package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/quorate/quorate/internal/core"
)

// Leader is who leads, as a majority of the nodes has it.
type Leader struct {
	ID    string        // as given to New
	Value string        // as given to Campaign, Run or Proclaim
	Term  uint64        // its fencing token: a later leader's is higher
	Host  string        // of the process
	PID   int           // of the process
	Since time.Time     // when it won, by the wall clock of its machine
	Left  time.Duration // of its lease, unless it is renewed, when the nodes were asked
}

// Leader asks the nodes who leads. It fails with ErrNoLeader when nobody does,
// with quorate.ErrNoQuorum when too few nodes answer before the context ends,
// and with quorate.ErrInvalid when what is recorded under the name is not a
// leader. The answer may be out of date when it arrives.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	e.usable()
	l, err := e.ask(ctx)
	return l, core.Dress("leader", e.name, err)
}

func (e *Election) ask(ctx context.Context) (Leader, error) {
	if e.err != nil {
		return Leader{}, e.err
	}
	rec, err := e.reg.Read(ctx)
	if err != nil {
		return Leader{}, err
	}
	return leaderOf(rec)
}

// leaderOf says whom a record makes the leader.
func leaderOf(rec core.Record) (Leader, error) {
	if !rec.Exists || rec.Left <= 0 {
		return Leader{}, ErrNoLeader
	}
	var r record
	if err := json.Unmarshal(rec.Value, &r); err != nil {
		return Leader{}, fmt.Errorf("%w: something else than a leader is recorded under this name: %w", core.ErrInvalid, err)
	}
	return Leader{ID: r.ID, Value: r.Value, Term: rec.Token, Host: r.Host, PID: r.PID, Since: r.Since, Left: rec.Left}, nil
}

// Observe yields who leads now, as soon as the nodes have said so, and then
// each change, as the nodes tell it: another leader, another value of the same one
// (the term tells them apart), nobody (an error that matches ErrNoLeader), and
// that too few nodes can be asked (quorate.ErrNoQuorum). With an error the
// Leader is zero, and the observation goes on; after quorate.ErrNoQuorum it
// yields what holds, changed or not, when the nodes can be asked again.
//
// Whoever is slow to ask for the next gets the newest there is: changes in
// between are left out, and an older one never comes after a newer. Waiting
// costs the nodes a question every third of the ttl.
//
// The sequence ends, without a last word, when the context ends or the Quorum
// is closed. For an unusable name it consists of one error. It may be ranged
// over more than once, and each time begins anew; leaving the range leaves
// nothing behind.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	e.usable()
	return func(yield func(Leader, error) bool) {
		if e.err != nil {
			yield(Leader{}, core.Dress("observe", e.name, e.err))
			return
		}
		w := e.reg.Watch()
		defer w.Close()
		var told sight
		for ctx.Err() == nil {
			if s, l, err := look(w); s != told {
				if errors.Is(err, core.ErrClosed) {
					return
				}
				if told = s; !yield(l, core.Dress("observe", e.name, err)) {
					return
				}
				continue // it may have taken long
			}
			select {
			case <-w.Changed():
			case <-ctx.Done():
			case <-e.q.Closing():
				return
			}
		}
	}
}

// sight is what an observer has been told. Two that are equal are one to it.
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
