package conformance

// The steps of a sequence that reach the server. Each runs on the server and on
// the model at the same time, and the two are compared.
// Invariant: the model gets the server's time. If the outcome of a step depends
// on a millisecond more or less, the sequence is abandoned (errNear), so a
// difference is never a coincidence.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/nodeset"
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
	get := pipe.Get(ctx, s.keys.Plain())
	after := pipe.Time(ctx)
	s.pushes.mark(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each result carries its own error
	if err := errors.Join(before.Err(), after.Err()); err != nil {
		return nil, nil, "", err
	}
	if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) && !otherSet(cmd) {
		return nil, nil, "", fmt.Errorf("%.12v…: %w", command, err)
	}
	msgs, err := s.pushes.untilMark(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	plain := get.Val()
	if get.Err() != nil && strings.HasPrefix(get.Err().Error(), "WRONGTYPE") {
		plain = otherType
	}
	s.now = before.Val().UnixMilli()
	if s.cfg.Advance != nil {
		return cmd, msgs, plain, nil
	}
	// Redis itself takes the time of an expiry a little apart from TIME.
	s.slack = max(s.slack, after.Val().UnixMilli()-s.now+2)
	for _, edge := range s.node.Edges() {
		if d := edge - s.now; -2*s.slack <= d && d <= 2*s.slack {
			return nil, nil, "", errNear
		}
	}
	return cmd, msgs, plain, nil
}

// otherSet reports whether the node has refused a request as of another set.
func otherSet(cmd *redis.Cmd) bool {
	return cmd.Err() != nil && strings.HasPrefix(cmd.Err().Error(), script.OtherSet)
}

func (s *sequence) request(ctx context.Context, a *actor, r protocol.Request) error {
	if r.Op == protocol.OpLeave {
		return s.requestAs(ctx, &a.terms, a.owner+a.note, r, script.DecodeLeave)
	}
	return s.requestAs(ctx, &a.terms, a.owner+a.note, r, script.Decode)
}

func (s *sequence) requestAs(ctx context.Context, terms *protocol.Terms, owner string, r protocol.Request, decode func([]resp.Value) (protocol.Answer, error)) error {
	args, err := words(script.AppendCommand(nil, s.keys, terms, owner, s.guard, retention, r))
	if err != nil {
		return err
	}
	cmd, msgs, plain, err := s.exchange(ctx, args)
	if err != nil {
		return err
	}
	var got protocol.Answer
	if got.Status = protocol.OtherSet; !otherSet(cmd) {
		v, err := values(cmd)
		if err != nil {
			return err
		}
		if got, err = decode(v); err != nil {
			return fmt.Errorf("%w: %v", err, cmd.Val())
		}
	}
	want, outs := s.node.Handle(s.now, *terms, owner, r)
	if r.Op != protocol.OpLeave && got.Status != protocol.OtherSet {
		if err := s.compareClock(got.Clock); err != nil {
			return err
		}
	}
	got.Clock, want.Clock = 0, 0
	s.note("%d %v %v T=%d list=%t patient=%t %+v cap=%d w=%d ttl=%v\n      got  %+v %+v\n      want %+v %+v %+v",
		s.now, r.Op, terms.ID, r.Ticket, r.List, r.Patient, r.Stored, terms.Capacity, terms.Weight, terms.TTL, got, got.Record, want, want.Record, outs)
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

// evict lets an operator evict the claim with some ticket.
func (s *sequence) evict(ctx context.Context) error {
	t := protocol.Ticket(1)
	if all := s.node.Claims(s.now); len(all) > 0 {
		t = all[s.rng.IntN(len(all))].Ticket
	}
	args, err := words(script.AppendInspect(nil, s.keys, 0, t))
	if err != nil {
		return err
	}
	cmd, msgs, _, err := s.exchange(ctx, args)
	if err != nil || otherSet(cmd) {
		return err
	}
	v, err := values(cmd)
	if err != nil {
		return err
	}
	got, err := script.DecodeInspect(v)
	if err != nil {
		return fmt.Errorf("%w: %v", err, cmd.Val())
	}
	left, outs := s.node.Evict(s.now, t)
	s.note("%d evict T=%d %+v, want %v %+v", s.now, t, got.Evicted, left, outs)
	if (got.Evicted.Left > 0) != (left > 0) || got.Evicted.Voted != (len(outs) > 0) {
		return fmt.Errorf("evicted %+v, want %v %+v", got.Evicted, left, outs)
	}
	return s.comparePushes(msgs, outs)
}

// otherType stands for a redlock key that is no string, and ends.
const (
	otherType    = "a key of another type"
	addOtherType = `if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
		redis.call('ZADD', KEYS[1], 1, 'x')
		return redis.call('PEXPIRE', KEYS[1], ARGV[1])`
)

// foreign lets another Redlock client, or a person, change the redlock key.
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
	value := "foreign"
	if s.rng.IntN(2) == 0 {
		value = s.actors[s.rng.IntN(len(s.actors))].terms.ID.String() + " and more"
	}
	ttl, args := time.Duration(0), []any{"SET", s.keys.Plain(), value, "NX"}
	if s.rng.IntN(4) > 0 {
		ttl = 20 * time.Second
		if s.timed {
			ttl = time.Duration(30+s.rng.IntN(60)) * time.Millisecond
		}
		args = append(args, "PX", ttl.Milliseconds())
		if s.rng.IntN(3) == 0 { // symfony/lock keeps a sorted set there
			value, args = otherType, []any{"EVAL", addOtherType, 1, s.keys.Plain(), ttl.Milliseconds()}
		}
	}
	_, _, plain, err := s.exchange(ctx, args)
	if err != nil {
		return err
	}
	s.node.SetPlain(s.now, value, ttl)
	s.note("%d set plain %q %v", s.now, value, ttl)
	return s.comparePlain(plain)
}

// forget deletes the node's data.
func (s *sequence) forget(ctx context.Context) error {
	k := s.keys
	if s.cfg.Advance != nil {
		s.cfg.Advance(time.Millisecond) // no server comes back in the instant in which it was lost
	}
	_, _, _, err := s.exchange(ctx, s.del(k.Plain(), k.State(), k.Queue(), k.Claims()))
	s.node.Forget()
	s.note("%d forget", s.now)
	return err
}

// del deletes these keys and everything else that the node stores.
func (s *sequence) del(keys ...string) []any {
	command := []any{"DEL", s.keys.Marker(), s.keys.Record(), s.keys.Watchers(), s.beside(), script.SetKey(s.prefix)}
	for _, k := range keys {
		command = append(command, k)
	}
	return command
}

// found makes the node record its set. With ready it votes at once.
func (s *sequence) found(ctx context.Context, ready bool) error {
	for _, kind := range []nodeset.RecordKind{nodeset.SetPromise, nodeset.SetAccept, nodeset.SetCommit} {
		step := nodeset.RecordStep{Kind: kind, Ballot: "1", Identity: s.set.Members[0].Identity, Config: s.set, Ready: ready}
		args, err := words(script.AppendSet(nil, s.prefix, step, s.random(), "run"))
		if err != nil {
			return err
		}
		if _, _, _, err := s.exchange(ctx, args); err != nil {
			return err
		}
		var inc protocol.Incarnation
		_, _ = fmt.Sscan(s.cfg.Client.Get(ctx, s.keys.Marker()).Val(), &inc)
		s.node.Step(s.now, step, inc)
	}
	s.runs = "run"
	s.node.Count(s.set.Stamp)
	s.note("%d found ready=%t", s.now, ready)
	return s.compareMarker(ctx)
}

// compareMarker checks that the node has the model's incarnation, and a new one
// in each life.
func (s *sequence) compareMarker(ctx context.Context) error {
	var got protocol.Incarnation
	_, _ = fmt.Sscan(s.cfg.Client.Get(ctx, s.keys.Marker()).Val(), &got)
	if want, _ := s.node.Incarnation(); got != want {
		return fmt.Errorf("incarnation %d, want %d", got, want)
	}
	return nil
}

// random returns the value from which the node makes a new incarnation.
func (s *sequence) random() (id protocol.ID) {
	binary.BigEndian.PutUint64(id[:], s.rng.Uint64())
	return id
}

// age makes the node look as if it had served for a long time.
func (s *sequence) age(ctx context.Context) error {
	inc, _ := s.node.Incarnation()
	_, _, _, err := s.exchange(ctx, []any{"SET", s.keys.Marker(), fmt.Sprintf("%d 0 run %d w", inc, s.guard.Milliseconds())})
	s.runs = "run"
	s.node.Bootstrap(s.now, inc)
	s.note("%d age", s.now)
	return err
}

// mark reports a run whose newest writes may be lost, or a clock that jumped.
func (s *sequence) mark(ctx context.Context) error {
	was, _ := s.node.Incarnation()
	run, jumped := "run", []string{"", strconv.FormatUint(uint64(was), 10), strconv.FormatUint(uint64(was)+1, 10)}[s.rng.IntN(3)]
	if s.rng.IntN(4) == 0 {
		run = s.random().String()
	}
	args, err := words(script.AppendMark(nil, s.keys.Marker(), s.random(), run, jumped))
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
	s.note("%d mark %s %s: %d, %v old", s.now, run, jumped, inc, age)
	begins := run != s.runs || jumped == strconv.FormatUint(uint64(was), 10)
	if begins != (inc != was) {
		return fmt.Errorf("incarnation %d after %d", inc, was)
	}
	if begins {
		s.runs = run
		s.node.Mark(s.now, inc)
	}
	return s.compareMarker(ctx)
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

// hang stops the node for longer than a short lease lasts. Then some of its
// claims come back, each to its place, because clients send patient requests.
func (s *sequence) hang(ctx context.Context) error {
	claims := s.node.Claims(s.now)
	if err := s.pass(time.Duration(60+s.rng.IntN(60)) * time.Millisecond); err != nil {
		return err
	}
	s.rng.Shuffle(len(claims), func(i, j int) { claims[i], claims[j] = claims[j], claims[i] })
	for _, c := range claims[:min(len(claims), 2)] {
		for _, a := range s.actors {
			if a.terms.ID != c.ID {
				continue
			}
			r := protocol.Request{Op: protocol.OpBeat, Patient: s.rng.IntN(4) > 0}
			if s.rng.IntN(2) == 0 {
				r.Op, r.Ticket = protocol.OpSettle, c.Ticket
			}
			if err := s.request(ctx, a, r); err != nil {
				return err
			}
		}
	}
	return nil
}
