package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/chaos/record"
	"github.com/quorate/quorate/once"
)

// roundTime is how long clients work on one round before they move to the next.
// The clock determines the round, so clients that were away take part again at
// once.
const roundTime = 500 * time.Millisecond

// onceWork does something once, round after round. Each call uses a new value,
// which knows nothing and must ask the nodes. Some calls are about a round that
// ended long ago. All clients of a round must learn of the same run.
type onceWork struct {
	q     *quorate.Quorum
	name  string
	epoch int64
}

func openOnce(e *Env, name string) work { return onceWork{e.Quorum, name, e.Epoch} }

var (
	errFails   = errors.New("the work has failed, as work does at times")
	errRefused = errors.New("the resource has refused the token")
)

func (w onceWork) do(ctx context.Context, t *turn) {
	number := (record.Now() - w.epoch) / int64(roundTime)
	if !t.calm && t.rand.IntN(looks) == 0 {
		number = t.rand.Int64N(number + 1)
	}
	round := fmt.Sprintf("%s-%d", w.name, number)
	if t.rand.IntN(looks) == 0 {
		w.look(ctx, t, round)
	}
	op := t.log.Call(record.Event{Kind: t.kind, Name: t.name, Round: round})
	ctx, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	value, err := once.ValueContext(w.q, round, func(ctx context.Context) (string, error) {
		run := *t
		run.name = round
		return run.carryOut(ctx, op)
	})(ctx)
	if err != nil {
		t.log.Fail(op, err)
		return
	}
	t.log.Write(record.Event{T: record.Now(), E: record.EvBegin, Op: op, Value: value})
}

// carryOut is the function to run once. It returns the name of its own
// operation.
func (t *turn) carryOut(ctx context.Context, of string) (string, error) {
	lease := once.Lease(ctx)
	op := t.log.Call(record.Event{Kind: record.Runs, Name: t.name, Weight: 1, After: of})
	t.begin(op, lease)
	q := record.Request{What: record.DoRead, Name: t.name, Token: lease.Token(), Alone: true, Op: op}
	value, ok := t.visit(q)
	t.stay(op, lease)
	// Half of the runs ignore the loss of their claim: tokens must protect
	// against them.
	if ctx.Err() != nil && t.rand.IntN(2) == 0 {
		t.ended(op, lease, false)
		return "", context.Cause(ctx)
	}
	if ok {
		q.What, q.Base = record.DoWrite, value
		_, ok = t.visit(q)
	}
	t.ended(op, lease, false)
	switch {
	case !ok:
		return "", errRefused
	case !t.calm && t.rand.IntN(tries) == 0:
		return "", errFails
	}
	t.log.Write(record.Event{T: record.Now(), E: record.EvDone, Op: op})
	return op, nil
}

// look asks for the status of the work, and logs the answer.
func (w onceWork) look(ctx context.Context, t *turn, round string) {
	ctx, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	from := record.Now()
	switch s, err := once.New(w.q, round).Status(ctx); {
	case err == nil:
		e := record.Event{T: record.Now(), E: record.EvTold, Kind: t.kind, Name: round, From: from,
			Value: fmt.Sprintf("%v since %v, token %d", s.State, s.When.Format(time.TimeOnly), s.Token)}
		if s.State == once.Done {
			e.Token = s.Token
		}
		t.log.Write(e)
	case !errors.Is(err, quorate.ErrNoQuorum) && ctx.Err() == nil:
		t.log.Trouble(fmt.Errorf("asking about %s: %w", round, err))
	}
}
