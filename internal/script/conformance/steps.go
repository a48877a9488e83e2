package conformance

// The order of a sequence: which step comes next.

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/protocol"
)

func (s *sequence) run(ctx context.Context) error {
	defer func() {
		s.cfg.Client.Do(ctx, s.del(s.keys.Plain(), s.keys.State(), s.keys.Queue(), s.keys.Claims())...)
	}()
	if err := s.found(ctx, s.rng.IntN(20) > 0); err != nil {
		return err
	}
	if s.herd {
		if err := s.gather(ctx); err != nil {
			return err
		}
	}
	for range s.cfg.Steps {
		if err := s.step(ctx); err != nil {
			return err
		}
	}
	for _, a := range s.actors {
		if err := s.request(ctx, a, s.leave(a.terms.ID)); err != nil {
			return err
		}
	}
	return s.empty(ctx)
}

// gather lets all actors join and the first one leave again, which gives the
// next step much to do.
func (s *sequence) gather(ctx context.Context) error {
	if s.server.Model.Recovering(s.now) > 0 {
		return nil // it would not vote
	}
	for _, a := range s.actors {
		if err := s.request(ctx, a, protocol.Request{Op: protocol.OpJoin,
			Ticket: a.terms.ID.Next(s.data.Fence())}); err != nil {
			return err
		}
	}
	return s.request(ctx, s.actors[0], s.leave(s.actors[0].terms.ID))
}

func (s *sequence) step(ctx context.Context) error {
	a := s.actors[s.rng.IntN(len(s.actors))]
	list := s.rng.IntN(6) == 0
	switch _, marked := s.server.Model.Incarnation(); {
	case !marked && s.rng.IntN(3) == 0:
		return s.found(ctx, s.rng.IntN(2) == 0)
	case marked && !s.timed && s.server.Model.Recovering(s.now) > 0 && s.rng.IntN(4) == 0:
		return s.age(ctx) // no time will pass to end it
	}
	switch k := s.rng.IntN(100); {
	case k < 4:
		return s.look(ctx)
	case k < 12:
		return s.record(ctx, a)
	case k < 18:
		return s.inBatches(ctx)
	case k < 40:
		return s.request(ctx, a, protocol.Request{Op: protocol.OpJoin, Ticket: s.ticket(a), List: list})
	case k < 54:
		if a.terms.Weight > 1 && s.rng.IntN(4) == 0 {
			a.terms.Weight = 1 + s.rng.Uint64N(min(a.terms.Weight-1, 3)) // a holder gives back a part
		}
		return s.request(ctx, a, protocol.Request{Op: protocol.OpSettle, Ticket: s.ticket(a),
			List: list, Patient: s.rng.IntN(2) == 0})
	case k < 68:
		r := protocol.Request{Op: protocol.OpBeat, List: list, Patient: s.rng.IntN(2) == 0}
		if list && s.rng.IntN(2) == 0 {
			r.Ticket = s.ticket(a)
		}
		return s.request(ctx, a, r)
	case k < 82:
		err := s.request(ctx, a, s.leave(a.terms.ID))
		if s.rng.IntN(2) == 0 {
			s.renew(a)
		}
		return err
	case k < 90:
		if s.timed && s.rng.IntN(2) == 0 {
			return s.hang(ctx)
		}
		if s.timed {
			return s.pass(time.Duration(1+s.rng.IntN(90)) * time.Millisecond)
		}
		return nil
	case k < 94:
		if s.server.Model.Bucketed { // there is no such key
			return nil
		}
		return s.foreign(ctx)
	case k < 95:
		if s.count && s.rng.IntN(2) == 0 {
			return s.resize(ctx)
		}
		return s.complete(ctx)
	case k < 96:
		return s.forget(ctx)
	case k < 97:
		return s.forge(ctx)
	default:
		if _, marked := s.server.Model.Incarnation(); !marked {
			return nil
		}
		return s.mark(ctx)
	}
}
