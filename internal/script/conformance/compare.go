package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// compareAnswer checks that the answers are equal except for Wait. On a wall
// clock, Wait is off by the unknown part of a millisecond. Without a redlock
// key, and behind many waiters, it depends on a lower bound of the next expiry,
// while the model knows the exact moment.
func (s *sequence) compareAnswer(got, want protocol.Answer, classic bool) error {
	low, high := want.Wait-s.slack.twice(), want.Wait+s.slack.twice()
	if (!classic || want.Rank > 8) && want.Status == protocol.OK {
		low = 0
	}
	if (got.Wait == 0) != (want.Wait == 0) || got.Wait < low || got.Wait > high {
		return fmt.Errorf("wait %v, want %v", got.Wait, want.Wait)
	}
	got.Wait = want.Wait
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("another answer:\n got  %+v\n want %+v", got, want)
	}
	return nil
}

// compareClock checks that the answer has the time of the request.
func (s *sequence) compareClock(got int64) error {
	if millis := got / 1000; millis < s.now || millis > s.now+int64(s.slack) {
		return fmt.Errorf("clock %d, want %d", millis, s.now)
	}
	return nil
}

// comparePushes checks that the same owners get the same pushes in the same
// order. The watchers of a record are an exception: they get them in the order
// in which their watches end, which depends on the clock's last millisecond.
func (s *sequence) comparePushes(msgs []*redis.Message, outs []model.Out) error {
	outs = slices.Clone(outs)
	for i := range outs {
		outs[i].Push.Clock = 0
	}
	for i, m := range msgs {
		p, err := script.ParsePush(m.Payload)
		if err != nil {
			return err
		}
		if err := s.compareClock(p.Clock); err != nil {
			return err
		}
		p.Clock = 0
		if j := slices.Index(outs, model.Out{Owner: m.Channel, Push: p}); p.Changed && j > i {
			outs[i], outs[j] = outs[j], outs[i]
		}
		if i >= len(outs) || (outs[i] != model.Out{Owner: m.Channel, Push: p}) {
			return fmt.Errorf("push %d is another: %s: %+v, want %+v", i, m.Channel, p, outs)
		}
	}
	if len(msgs) != len(outs) {
		return fmt.Errorf("%d pushes, want %+v", len(msgs), outs)
	}
	return nil
}

// comparePlain checks that the redlock key holds what the model says.
func (s *sequence) comparePlain(got string) error {
	if want := s.data.Redlock.Value(s.now); got != want {
		return fmt.Errorf("the redlock key holds %q, want %q", got, want)
	}
	return nil
}

// slack is by how many milliseconds the server's clock may be ahead of the time
// that the model was given. It is 0 if the test sets that clock.
type slack int64

// sameTime checks that times are equal, up to the unknown part of a
// millisecond, and then makes them so.
func (s slack) sameTime(got, want *time.Duration) error {
	if (*got == 0) != (*want == 0) || !s.near(*got, *want) {
		return fmt.Errorf("left %v, want %v", *got, *want)
	}
	*got = *want
	return nil
}

func (s slack) near(got, want time.Duration) bool {
	return (got - want).Abs() <= s.twice()
}

// twice covers two readings of the clock.
func (s slack) twice() time.Duration { return time.Duration(2*s) * time.Millisecond }

func (s slack) sameEntry(got, want *protocol.Entry) error {
	if len(got.Value) == 0 && len(want.Value) == 0 {
		got.Value, want.Value = nil, nil
	}
	return errors.Join(s.sameTime(&got.Left, &want.Left), s.sameTime(&got.Keep, &want.Keep))
}

// compareQueue checks that both tell the same of a name. A Resize is seen with
// the next request that changes the queue, which the model does not know.
func (s *sequence) compareQueue(got, want script.Queue) error {
	if s.resizes > 0 {
		got.Capacity = want.Capacity
	}
	err := errors.Join(
		s.slack.sameTime(&got.Foreign, &want.Foreign), s.slack.sameTime(&got.Memory, &want.Memory),
		s.slack.sameTime(&got.Evicted.Left, &want.Evicted.Left))
	for i := range min(len(got.Claims), len(want.Claims)) {
		err = errors.Join(err, s.slack.sameTime(&got.Claims[i].Left, &want.Claims[i].Left))
	}
	if err == nil && !reflect.DeepEqual(got, want) {
		err = fmt.Errorf("another queue:\n got  %+v\n want %+v", got, want)
	}
	return err
}

// empty checks that only the fence is left of a name after all claims have
// left.
func (s *sequence) empty(ctx context.Context) error {
	if claims := s.data.Claims(s.now); len(claims) > 0 {
		// A claim whose id was renewed by its actor without a leave taken: none
		// can be.
		return fmt.Errorf("the model still has %+v", claims)
	}
	n, err := s.cfg.Client.Exists(ctx, s.keys.Queue(), s.keys.Claims()).Result()
	if err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("all claims have left, and a queue is there")
	}
	if p := s.data.Redlock.Value(s.now); len(p) == 2*len(protocol.ID{}) {
		return fmt.Errorf("all claims have left, and the redlock key holds %s", p)
	}
	ttl, err := s.cfg.Client.PTTL(ctx, s.keys.State()).Result()
	if err != nil {
		return err
	}
	// -2 is "no such key": no claim was ever here, or the data was lost.
	if s.data.Fence() > 0 && (ttl <= 0 || ttl > 2*retention+20*time.Second) && ttl != -2 {
		return fmt.Errorf("the fence is kept for %v", ttl)
	}
	return nil
}

// words decodes a command, for a client that encodes commands itself.
func words(command []byte) ([]string, error) {
	v, err := resp.NewReader(bytes.NewReader(command)).Read()
	if err != nil {
		return nil, err
	}
	args := make([]string, len(v))
	for i, w := range v {
		args[i] = string(w.Str)
	}
	return args, nil
}

// list is the form in which go-redis wants a command.
func list(words []string) []any {
	args := make([]any, len(words))
	for i, w := range words {
		args[i] = w
	}
	return args
}

// values converts a reply to what the library's own connection would have read.
func values(cmd *redis.Cmd) ([]resp.Value, error) {
	if err := cmd.Err(); err != nil {
		return nil, err
	}
	reply, list := cmd.Val().([]any)
	if !list {
		reply = []any{cmd.Val()}
	}
	v := make([]resp.Value, len(reply))
	for i, x := range reply {
		switch x := x.(type) {
		case int64:
			v[i].Int = x
		case string:
			v[i].Str = []byte(x)
		default:
			return nil, fmt.Errorf("reply holds a %T", x)
		}
	}
	return v, nil
}
