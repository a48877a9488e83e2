package conformance

// The steps that concern the node as a whole: its set, its marker, the loss of
// its data.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
)

// forget deletes the node's data.
func (s *sequence) forget(ctx context.Context) error {
	k := s.keys
	if s.cfg.Advance != nil {
		s.cfg.Advance(time.Millisecond) // no server comes back in the instant in which it was lost
	}
	_, _, _, err := s.exchange(ctx, s.del(k.Plain(), k.State(), k.Queue(), k.Claims()))
	s.server.Model.Forget()
	s.log.note("%d forget", s.now)
	return err
}

// del deletes these keys and everything else that the node stores.
func (s *sequence) del(keys ...string) []any {
	command := []any{"DEL", s.keys.Marker(), s.keys.Record(), s.keys.Watchers(),
		s.beside(), script.SetKey(s.prefix)}
	for _, k := range keys {
		command = append(command, k)
	}
	return command
}

// found makes the node record its set. With ready it votes at once.
func (s *sequence) found(ctx context.Context, ready bool) error {
	for _, kind := range []nodeset.RecordKind{nodeset.SetPromise, nodeset.SetAccept, nodeset.SetCommit} {
		step := nodeset.RecordStep{Kind: kind, Ballot: ballot,
			Identity: s.set.Members[0].Identity, Config: s.set, Ready: ready}
		b, err := s.both(ctx, script.AppendSet(nil, s.prefix, step, s.random(), "run"))
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(b.got, b.want) {
			return fmt.Errorf("the set is %q, want %q", b.got[0].Str, b.want[0].Str)
		}
	}
	s.server.Model.Count(s.set.Stamp)
	s.log.note("%d found ready=%t", s.now, ready)
	return s.compareMarker(ctx)
}

// compareMarker checks that the node has the model's marker.
func (s *sequence) compareMarker(ctx context.Context) error {
	got, err := s.cfg.Client.Get(ctx, s.keys.Marker()).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	want := s.server.Model.Marker()
	g, w := strings.SplitN(got, " ", 3), strings.SplitN(want, " ", 3)
	if len(g) == 3 && len(w) == 3 {
		gotBorn, err1 := strconv.ParseInt(g[1], 10, 64)
		wantBorn, err2 := strconv.ParseInt(w[1], 10, 64)
		if d := slack(gotBorn - wantBorn); err1 == nil && err2 == nil && -s.slack <= d && d <= s.slack {
			w[1] = g[1]
		}
	}
	if !slices.Equal(g, w) {
		return fmt.Errorf("the marker is %q, want %q", got, want)
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
	inc, _ := s.server.Model.Incarnation()
	_, _, _, err := s.exchange(ctx, []any{"SET", s.keys.Marker(),
		fmt.Sprintf("%d 0 run %d w", inc, s.guard.Milliseconds())})
	s.server.Model.Run = "run"
	s.server.Model.Bootstrap(s.now, inc)
	s.log.note("%d age", s.now)
	return err
}

// mark reports a run whose newest writes may be lost, or a clock that jumped.
func (s *sequence) mark(ctx context.Context) error {
	was, _ := s.server.Model.Incarnation()
	run, jumped := "run",
		[]string{"", strconv.FormatUint(uint64(was), 10), strconv.FormatUint(uint64(was)+1, 10)}[s.rng.IntN(3)]
	switch s.rng.IntN(8) {
	case 0, 1:
		run = s.random().String()
	case 2:
		run = "run+former"
	case 3:
		run = "run+other"
	}
	b, err := s.both(ctx, script.AppendMark(nil, s.keys.Marker(), s.random(), run, jumped))
	if err != nil {
		return err
	}
	got, age, err := script.DecodeMarker(b.got)
	if err != nil {
		return err
	}
	want, wantAge, err := script.DecodeMarker(b.want)
	if err != nil {
		return err
	}
	s.log.note("%d mark %s %s: %d, %v old, want %d, %v", s.now, run, jumped, got, age, want, wantAge)
	if got != want || !s.slack.near(age, wantAge) {
		return fmt.Errorf("incarnation %d, %v old, want %d, %v", got, age, want, wantAge)
	}
	return s.compareMarker(ctx)
}
