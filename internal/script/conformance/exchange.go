package conformance

// The steps of a sequence that reach the server. Each runs on the server and on
// the model at the same time, and the two are compared.
// Invariant: the model gets the server's time. If the outcome of a step depends
// on a millisecond more or less, the sequence is abandoned (errNear), so a
// difference is never a coincidence.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// exchange runs one command between two readings of the node's clock, and
// returns its reply and what it pushed. It leaves s.now at the first reading.
func (s *sequence) exchange(ctx context.Context,
	command []any) (*redis.Cmd, []*redis.Message, string, error) {
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
	s.slack = max(s.slack, slack(after.Val().UnixMilli()-s.now+2))
	for _, edge := range s.data.Edges() {
		if d := slack(edge - s.now); -2*s.slack <= d && d <= 2*s.slack {
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

// both is one command's outcome on the server and on the model.
type both struct {
	got, want []resp.Value // nil: refused as of another set
	msgs      []*redis.Message
	outs      []model.Out
	plain     string // the redlock key of the server
}

// both lets the server carry out a command, and the model behind the same
// bytes.
func (s *sequence) both(ctx context.Context, command []byte) (b both, err error) {
	w, err := words(command)
	if err != nil {
		return b, err
	}
	cmd, msgs, plain, err := s.exchange(ctx, list(w))
	if err != nil {
		return b, err
	}
	b.msgs, b.plain = msgs, plain
	if !otherSet(cmd) {
		if b.got, err = values(cmd); err != nil {
			return b, err
		}
	}
	s.outs = nil
	b.want, err = s.server.Do(s.now, w)
	b.outs = s.outs
	if (err != nil) != otherSet(cmd) {
		return b, fmt.Errorf("refused: %v, want %v", cmd.Err(), err)
	}
	return b, nil
}

// publish notes what the model pushes.
func (s *sequence) publish(channel, payload string) int64 {
	p, err := script.ParsePush(payload)
	if err != nil {
		panic(err) // internal/model/server wrote it
	}
	s.outs = append(s.outs, model.Out{Owner: channel, Push: p})
	return 1 // each owner listens once
}

func (s *sequence) requestAs(ctx context.Context, terms *protocol.Terms, owner string, r protocol.Request,
	decode func([]resp.Value) (protocol.Answer, error)) error {
	before := s.server.Model.Clone()
	b, err := s.both(ctx, script.AppendCommand(nil, s.keys, terms, owner, s.guard, retention, r))
	if err != nil {
		return err
	}
	// The model gives the answer, and so does the server of the model in the
	// scripts' format. The simulator relies on the one, quoratetest on the other.
	want, _ := before.Name(s.keys.State()).Handle(s.now, *terms, owner, r)
	want.Clock = 0
	classic := terms.Capacity == 1 && !terms.Counting && !s.server.Model.Bucketed
	var answers [2]protocol.Answer
	for i, v := range [][]resp.Value{b.got, b.want} {
		if answers[i], err = s.answer(v, r, decode); err != nil {
			return err
		}
	}
	s.log.note("%d %v %v T=%d list=%t patient=%t %+v cap=%d w=%d ttl=%v\n      got  %+v\n      and  %+v\n      "+
		"want %+v %+v",
		s.now, r.Op, terms.ID, r.Ticket, r.List, r.Patient, r.Stored, terms.Capacity, terms.Weight, terms.TTL,
		answers[0], answers[1], want, b.outs)
	for _, got := range answers {
		if got.Record != nil && want.Record != nil {
			if err := s.slack.sameEntry(got.Record, want.Record); err != nil {
				return err
			}
		}
		if err := s.compareAnswer(got, want, classic); err != nil {
			return err
		}
	}
	if err := s.comparePushes(b.msgs, b.outs); err != nil {
		return err
	}
	return s.comparePlain(b.plain)
}

// answer decodes an answer, and checks its time.
func (s *sequence) answer(v []resp.Value, r protocol.Request,
	decode func([]resp.Value) (protocol.Answer, error)) (protocol.Answer, error) {
	if v == nil {
		return protocol.Answer{Status: protocol.OtherSet}, nil
	}
	a, err := decode(v)
	if err != nil {
		return a, fmt.Errorf("%w: %v", err, v)
	}
	if r.Op != protocol.OpLeave {
		err = s.compareClock(a.Clock)
	}
	a.Clock = 0
	return a, err
}

// look lets an operator look at the name, and evict the claim with some ticket.
func (s *sequence) look(ctx context.Context) error {
	t := protocol.Ticket(1)
	if all := s.data.Claims(s.now); len(all) > 0 {
		t = all[s.rng.IntN(len(all))].Ticket
	}
	b, err := s.both(ctx, script.AppendInspect(nil, s.keys, s.rng.IntN(4), t))
	if err != nil || b.got == nil {
		return err
	}
	got, err := script.DecodeInspect(b.got)
	if err != nil {
		return fmt.Errorf("%w: %v", err, b.got)
	}
	want, err := script.DecodeInspect(b.want)
	if err != nil {
		return fmt.Errorf("%w: %v", err, b.want)
	}
	s.log.note("%d look T=%d\n      got  %+v\n      want %+v", s.now, t, got, want)
	if err := s.compareQueue(got, want); err != nil {
		return err
	}
	return s.comparePushes(b.msgs, b.outs)
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
		s.data.Redlock.Delete(s.now, "")
		s.log.note("%d del plain", s.now)
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
	s.data.Redlock.Set(s.now, value, ttl)
	s.log.note("%d set plain %q %v", s.now, value, ttl)
	return s.comparePlain(plain)
}

func (s *sequence) pass(d time.Duration) error {
	if s.cfg.Advance != nil {
		s.cfg.Advance(d)
	} else {
		time.Sleep(d)
	}
	s.log.note("%v pass", d)
	return nil
}

// hang stops the node for longer than a short lease lasts. Then some of its
// claims come back, each to its place, because clients send patient requests.
func (s *sequence) hang(ctx context.Context) error {
	claims := s.data.Claims(s.now)
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
