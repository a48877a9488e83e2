package conformance

// This file owns the steps of a sequence that reach the server: each is carried
// out on the server and on the model at one time, and the two are compared.
//
// Invariant: the model gets the time that the server had. A step whose outcome
// depends on a millisecond more or less abandons the sequence (errNear), so a
// difference is never a matter of chance.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// exchange runs one command between two readings of the node's clock, and
// returns its reply and what it pushed. It leaves s.now at the first reading.
func (s *sequence) exchange(ctx context.Context, command []any) (*redis.Cmd, []*redis.Message, string, error) {
	pipe := s.cfg.Client.Pipeline()
	before := pipe.Time(ctx)
	cmd := pipe.Do(ctx, command...)
	plain := pipe.Get(ctx, s.keys.Plain())
	after := pipe.Time(ctx)
	s.pushes.mark(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each result carries its own error
	if err := errors.Join(before.Err(), after.Err()); err != nil {
		return nil, nil, "", err
	}
	if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
		return nil, nil, "", fmt.Errorf("%.12v…: %w", command, err)
	}
	msgs, err := s.pushes.untilMark(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	s.now = before.Val().UnixMilli()
	if s.cfg.Advance != nil {
		return cmd, msgs, plain.Val(), nil
	}
	// Redis itself takes the time of an expiry a little apart from TIME.
	s.slack = max(s.slack, after.Val().UnixMilli()-s.now+2)
	for _, edge := range s.node.Edges() {
		if d := edge - s.now; -2*s.slack <= d && d <= 2*s.slack {
			return nil, nil, "", errNear
		}
	}
	return cmd, msgs, plain.Val(), nil
}

// request puts one request to the node and to the model.
func (s *sequence) request(ctx context.Context, a *actor, r protocol.Request) error {
	if r.Op == protocol.OpLeave {
		return s.requestAs(ctx, &a.terms, a.owner, a.far, r, script.DecodeLeave)
	}
	return s.requestAs(ctx, &a.terms, a.owner, a.far, r, script.Decode)
}

func (s *sequence) requestAs(ctx context.Context, terms *protocol.Terms, owner string, far bool, r protocol.Request, decode func([]resp.Value) (protocol.Answer, error)) error {
	guard, kept := s.guard, retention
	if far {
		guard, kept = 2*guard, 2*kept
	}
	args, err := words(script.AppendCommand(nil, s.keys, terms, owner, guard, kept, r))
	if err != nil {
		return err
	}
	cmd, msgs, plain, err := s.exchange(ctx, args)
	if err != nil {
		return err
	}
	v, err := values(cmd)
	if err != nil {
		return err
	}
	got, err := decode(v)
	if err != nil {
		return fmt.Errorf("%w: %v", err, cmd.Val())
	}
	_, marked := s.node.Incarnation()
	if r.Op == protocol.OpLeave && !marked { // which makes a marker, and does not say so
		_, _ = fmt.Sscan(s.cfg.Client.Get(ctx, s.keys.Marker()).Val(), &got.Incarnation)
	}
	if !marked && s.incs[got.Incarnation] {
		return fmt.Errorf("incarnation %d again after the memory was lost", got.Incarnation)
	}
	s.incs[got.Incarnation] = true
	s.node.Show(guard, kept)
	want, outs := s.node.Handle(s.now, *terms, owner, r, got.Incarnation)
	if r.Op == protocol.OpLeave {
		got.Incarnation = 0
	} else if err := s.compareClock(got.Clock); err != nil {
		return err
	}
	got.Clock, want.Clock = 0, 0
	s.note("%d %v %v T=%d list=%t %+v cap=%d w=%d ttl=%v\n      got  %+v %+v\n      want %+v %+v %+v",
		s.now, r.Op, terms.ID, r.Ticket, r.List, r.Stored, terms.Capacity, terms.Weight, terms.TTL, got, got.Record, want, want.Record, outs)
	if got.Record != nil && want.Record != nil {
		if err := s.sameEntry(got.Record, want.Record); err != nil {
			return err
		}
	}
	if err := s.compareAnswer(got, want, terms.Capacity == 1 && !terms.Counting && !s.node.Bucketed); err != nil {
		return err
	}
	if err := s.comparePushes(msgs, outs); err != nil {
		return err
	}
	return s.comparePlain(plain)
}

// foreign is another Redlock client, or a human, at the redlock key.
func (s *sequence) foreign(ctx context.Context) error {
	if s.rng.IntN(2) == 0 {
		_, _, plain, err := s.exchange(ctx, []any{"DEL", s.keys.Plain()})
		if err != nil {
			return err
		}
		s.node.DelPlain(s.now, "")
		s.note("%d del plain", s.now)
		return s.comparePlain(plain)
	}
	ttl, args := time.Duration(0), []any{"SET", s.keys.Plain(), "foreign", "NX"}
	if s.rng.IntN(4) > 0 {
		ttl = 20 * time.Second
		if s.timed {
			ttl = time.Duration(30+s.rng.IntN(60)) * time.Millisecond
		}
		args = append(args, "PX", ttl.Milliseconds())
	}
	_, _, plain, err := s.exchange(ctx, args)
	if err != nil {
		return err
	}
	s.node.SetPlain(s.now, "foreign", ttl)
	s.note("%d set plain %v", s.now, ttl)
	return s.comparePlain(plain)
}

// forget takes the node's memory away.
func (s *sequence) forget(ctx context.Context) error {
	k := s.keys
	if s.cfg.Advance != nil {
		s.cfg.Advance(time.Millisecond) // no server comes back in the instant in which it was lost
	}
	_, _, _, err := s.exchange(ctx, []any{"DEL", k.Plain(), k.State(), k.Queue(), k.Claims(), k.Marker(), k.Record(), k.Watchers(), s.beside()})
	s.node.Forget()
	s.named = false
	s.note("%d forget", s.now)
	return err
}

// marker bootstraps the node, or reports a run whose newest writes may be lost.
func (s *sequence) marker(ctx context.Context, bootstrap bool) error {
	var random protocol.ID
	binary.BigEndian.PutUint64(random[:], s.rng.Uint64())
	was, _ := s.node.Incarnation()
	end := []string{script.EndAny, script.EndNone, strconv.FormatUint(uint64(was), 10), strconv.FormatUint(uint64(was)+1, 10)}[s.rng.IntN(4)]
	b := script.AppendMark(nil, s.keys.Marker(), random, random.String(), script.Lost, 0, s.guard, retention)
	if bootstrap {
		b = script.AppendBootstrap(nil, s.keys.Marker(), random, random.String(), end, s.guard, retention)
	}
	args, err := words(b)
	if err != nil {
		return err
	}
	cmd, _, _, err := s.exchange(ctx, args)
	if err != nil {
		return err
	}
	v, err := values(cmd)
	if err != nil {
		return err
	}
	inc, age, err := script.DecodeMarker(v)
	if err != nil {
		return err
	}
	s.incs[inc] = true
	s.node.Show(s.guard, retention)
	switch was, marked := s.node.Incarnation(); {
	case bootstrap:
		keep := end != script.EndAny && end != strconv.FormatUint(uint64(inc), 10)
		s.named = s.named || !marked || !keep || s.node.Recovering(s.now) == 0 // a marker that is kept keeps its run
		s.node.Bootstrap(s.now, inc, keep)
	case marked && was == inc && !s.named: // made by a script, in this very run
	default:
		s.node.Mark(s.now, inc)
	}
	s.named = s.named || !bootstrap
	s.note("%d marker bootstrap=%t: %d, %v old", s.now, bootstrap, inc, age)
	if now, _ := s.node.Incarnation(); now != inc {
		return fmt.Errorf("incarnation %d, want %d", inc, now)
	}
	return nil
}

func (s *sequence) pass(d time.Duration) error {
	if s.cfg.Advance != nil {
		s.cfg.Advance(d)
	} else {
		time.Sleep(d)
	}
	s.note("%v pass", d)
	return nil
}
