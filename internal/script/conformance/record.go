package conformance

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
)

// record does something to the name's record: as a claim that is here or was,
// as another client that repairs it, or as one that watches.
func (s *sequence) record(ctx context.Context, a *actor) error {
	terms, op := a.terms, protocol.OpRead+protocol.Op(s.rng.IntN(4))
	r := protocol.Request{Op: op}
	if op == protocol.OpRead {
		terms.TTL = 20 * time.Second
		switch s.rng.IntN(4) {
		case 0:
			terms.TTL = 0
		case 1:
			if s.timed {
				terms.TTL = time.Duration(40+s.rng.IntN(40)) * time.Millisecond
			}
		case 2:
			terms.ID = protocol.ID{} // does not watch
		}
	} else {
		v := protocol.Version{ID: a.terms.ID, Ticket: s.ticket(a), Seq: uint64(s.rng.IntN(3))}
		switch k := s.rng.IntN(8); {
		case k < 4: // its own ticket, if it has one
			for _, c := range s.data.Claims(s.now) {
				if c.ID == v.ID {
					v.Ticket = c.Ticket
				}
			}
		case k == 4:
			v = s.data.Recorded().Version
			v.Seq += uint64(s.rng.IntN(3))
		}
		if v.Ticket == 0 {
			v.ID, v.Ticket = a.terms.ID, s.ticket(a) // no client asks for that
		}
		r.Promise = new(protocol.Version)
		if op == protocol.OpRepair && s.rng.IntN(2) == 0 {
			r.Promise = &protocol.Version{ID: a.terms.ID, Ticket: s.ticket(a)}
			if s.rng.IntN(4) == 0 {
				v = protocol.Version{} // only the promise
			}
		}
		r.Stored = &protocol.Stored{Version: v, Erased: s.rng.IntN(4) == 0}
		if op != protocol.OpOpen { // an erasure may have a value, too
			r.Stored.Value = make([]byte, s.rng.IntN(3)*s.rng.IntN(20))
			for i := range r.Stored.Value {
				r.Stored.Value[i] = byte(s.rng.Uint32()) // any bytes
			}
		}
		switch s.rng.IntN(3) {
		case 0:
			r.Stored.Keep = 20 * time.Second
		case 1:
			if s.timed {
				r.Stored.Keep = time.Duration(40+s.rng.IntN(60)) * time.Millisecond
			}
		}
	}
	return s.requestAs(ctx, &terms, a.owner, r, script.DecodeRecord)
}

// forge is what a client with a wrong clock, or another writer, has left in
// place of the record.
func (s *sequence) forge(ctx context.Context) error {
	v := protocol.Version{ID: s.actors[0].terms.ID, Ticket: s.ahead(protocol.Ticket(s.now) * 1000)}
	promise := v
	if s.rng.IntN(3) == 0 {
		promise.Ticket = protocol.Ticket(s.now) * 1000
	}
	record := fmt.Sprintf("0 %d %v %d %v 0 0 0 forged", promise.Ticket, promise.ID, v.Ticket, v.ID)
	_, _, _, err := s.exchange(ctx, []any{"SET", s.keys.Record(), record})
	s.data.Forge(protocol.Stored{Version: v, Value: []byte("forged")}, promise)
	s.log.note("%d forged %v, promise %v", s.now, v, promise)
	return err
}

// complete says that the node is caught up, or says it of another incarnation.
func (s *sequence) complete(ctx context.Context) error {
	inc, _ := s.server.Model.Incarnation()
	if inc == 0 || s.rng.IntN(3) == 0 {
		inc++
	}
	b, err := s.both(ctx, script.AppendCaughtUp(nil, s.keys.Marker(), inc))
	if err != nil {
		return err
	}
	s.log.note("%d complete %d: %v, want %v", s.now, inc, b.got, b.want)
	if !reflect.DeepEqual(b.got, b.want) {
		return fmt.Errorf("caughtup: %v, want %v", b.got, b.want)
	}
	return s.compareMarker(ctx)
}

// resize is what a Resize leaves on the node.
func (s *sequence) resize(ctx context.Context) error {
	s.resizes++
	limit, at := uint64(1+s.rng.IntN(5)), protocol.Ticket(s.now)*1000+s.resizes
	if s.rng.IntN(8) == 0 {
		at = protocol.MaxTicket - 1<<20 + s.resizes // by a client whose clock was wrong
	}
	id := s.actors[0].terms.ID
	record := fmt.Sprintf("0 %d %v %d %v 0 0 0 %d", at, id, at, id, limit)
	if _, newest := s.data.Limit(); newest >= at {
		return nil
	}
	_, _, _, err := s.exchange(ctx, []any{"SET", s.beside(), record})
	s.data.Resize(limit, at)
	s.log.note("%d resize to %d", s.now, limit)
	return err
}
