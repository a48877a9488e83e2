package conformance

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// part is a request of one of the claims that are there.
type part struct {
	terms protocol.Terms
	owner string
	r     protocol.Request
}

// anything is a few requests that any of them may make.
func (s *sequence) anything() (parts []part) {
	for range 1 + s.rng.IntN(3) {
		a := s.actors[s.rng.IntN(len(s.actors))]
		if a.note != "" {
			continue
		}
		p := part{a.terms, a.owner, protocol.Request{Op: protocol.OpJoin, Ticket: s.ticket(a)}}
		if len(parts) > 0 && s.rng.IntN(3) == 0 {
			p.r.Ticket += 64
		}
		switch s.rng.IntN(7) {
		case 6:
			p.r.Ticket = s.ahead(protocol.Ticket(s.now) * 1000)
		case 0, 1:
			p.r = s.leave(p.terms.ID)
		case 2, 3:
			p.r.Op = protocol.OpBeat
			for _, c := range s.data.Claims(s.now) {
				if c.ID == p.terms.ID && s.rng.IntN(4) > 0 {
					p.r.Ticket = c.Ticket
				}
			}
		}
		parts = append(parts, p)
	}
	return parts
}

// succession has the claims that are there leave and others come, one after the
// other.
func (s *sequence) succession() (parts []part) {
	fence := s.data.Fence()
	for _, c := range s.data.Claims(s.now) {
		for _, a := range s.actors {
			if a.terms.ID == c.ID {
				parts = append(parts, part{a.terms, a.owner, s.leave(a.terms.ID)})
			}
		}
	}
	for range 1 + s.rng.IntN(3) {
		a := s.actors[s.rng.IntN(len(s.actors))]
		fence = a.terms.ID.Next(fence)
		parts = append(parts, part{a.terms, a.owner, protocol.Request{Op: protocol.OpJoin, Ticket: fence}})
		if s.rng.IntN(2) == 0 {
			parts = append(parts, part{a.terms, a.owner, protocol.Request{Op: protocol.OpBeat, Ticket: fence}})
		}
		if s.rng.IntN(3) > 0 {
			parts = append(parts, part{a.terms, a.owner, protocol.Request{Op: protocol.OpLeave, Ticket: fence}})
		}
	}
	return parts
}

// inBatches puts a few joins, beats and leaves to the node in one request, all
// of the one name. What the node does of them is what the model does; what it
// does not do is as if it had not been asked for.
func (s *sequence) inBatches(ctx context.Context) error {
	wanted := s.anything()
	if s.common != nil && s.rng.IntN(2) == 0 {
		wanted = s.succession()
	}
	var parts []part
	var keys, args []byte
	nKeys, nArgs := 0, 0
	var kind uint64
	var owner string
	for _, p := range wanted {
		k := script.Kind(&p.terms, p.r)
		if len(parts) == 0 {
			kind, owner = k, p.owner
		}
		if k == 0 || k != kind || p.owner != owner {
			continue // a semaphore's, or nothing that would be sent together
		}
		var nk, na int
		keys, args, nk, na = script.AppendItem(keys, args, s.keys, &p.terms, p.r)
		nKeys, nArgs, parts = nKeys+nk, nArgs+na, append(parts, p)
	}
	if len(parts) == 0 {
		return nil
	}
	command, err := words(script.AppendBatch(nil, s.keys.Marker(), s.guard, retention, owner,
		kind, keys, args, nKeys, nArgs))
	if err != nil {
		return err
	}
	cmd, msgs, plain, err := s.exchange(ctx, list(command))
	if err != nil {
		return err
	}
	v, err := values(cmd)
	if err != nil {
		return err
	}
	v = resp.Numbers(make([]resp.Value, script.BatchHead+len(parts)), v)
	if len(v) != script.BatchHead+len(parts) {
		return fmt.Errorf("%d parts: %v", len(parts), v)
	}
	var outs []model.Out
	claims := map[protocol.ID]bool{}
	for i, p := range parts {
		own := v[script.BatchHead+i].Int
		s.log.note("%d many: %v %v T=%d cap=%d w=%d ttl=%v: %d", s.now, p.r.Op, p.terms.ID, p.r.Ticket,
			p.terms.Capacity, p.terms.Weight, p.terms.TTL, own)
		if own == 0 {
			continue
		}
		s.done++
		claims[p.terms.ID] = true
		if err := s.shared(p.terms, p.owner, p.r,
			script.ReplyItem(nil, v[:script.BatchHead], own, p.r), &outs); err != nil {
			return err
		}
	}
	if len(claims) > 1 {
		s.mixed++
	}
	if err := s.comparePushes(msgs, outs); err != nil {
		return err
	}
	return s.comparePlain(plain)
}

// shared compares the answer to one part.
func (s *sequence) shared(terms protocol.Terms, owner string, r protocol.Request,
	v []resp.Value, outs *[]model.Out) error {
	decode := script.Decode
	if r.Op == protocol.OpLeave {
		decode = script.DecodeLeave
	}
	got, err := decode(v)
	if err != nil {
		return fmt.Errorf("%w: %v", err, v)
	}
	want, pushed := s.data.Handle(s.now, terms, owner, r)
	*outs = append(*outs, pushed...)
	if r.Op != protocol.OpLeave {
		if err := s.compareClock(got.Clock); err != nil {
			return err
		}
	}
	got.Clock, want.Clock = 0, 0
	return s.compareAnswer(got, want, terms.Capacity == 1 && !s.server.Model.Bucketed)
}
