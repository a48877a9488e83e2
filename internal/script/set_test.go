package script_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// proposals are three sets that the node may become a member of, and two
// configurations that follow the first one. In the last one the node begins to
// count.
func proposals() (all []*protocol.Configuration) {
	for i := range 3 {
		b := protocol.Ballot(fmt.Sprintf("19a00000000%08x", i+1))
		all = append(all, &protocol.Configuration{
			Stamp: protocol.StampOf(1, b), Guard: time.Minute, Retention: 2 * time.Minute,
			Members: []protocol.Member{{Identity: fmt.Sprint("id", i), Addr: "a"}, {Identity: fmt.Sprint("other", i), Addr: "b"}},
		})
	}
	second := all[0].Begin(protocol.Change{Add: []protocol.Member{{Identity: "new", Addr: "c"}}}, "19a0000000000000004")
	third := second.Join("19a0000000000000005")
	third.Members[0].Role = protocol.Enters
	return append(all, second, third)
}

// The register of the set is that of the reference node: what it keeps after
// each step, and which requests the node refuses then.
func TestSetIsThatOfTheModel(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	sets := proposals()
	kinds := []protocol.RecordKind{protocol.SetPromise, protocol.SetAccept, protocol.SetCommit, protocol.SetRestore, protocol.SetMove, protocol.SetMove, protocol.SetRegain, protocol.SetLife}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		require.NoError(t, c.FlushAll(t.Context()).Err())
		n, m := newNode(c), model.New(0)
		for i := range 25 {
			if r.IntN(20) == 0 {
				require.NoError(t, c.FlushAll(t.Context()).Err())
				m.Forget()
			}
			set := sets[r.IntN(len(sets))]
			s := protocol.RecordStep{Kind: kinds[r.IntN(len(kinds))], Ballot: protocol.Ballot(fmt.Sprintf("19a00000000%08x", r.IntN(6)+1))}
			if s.Kind == protocol.SetRestore && r.IntN(2) == 0 {
				s.Seen = m.SetText()
			}
			if s.Kind == protocol.SetLife {
				s.Life = protocol.ID{byte(i + 1)}.String()
			} else if s.Kind != protocol.SetPromise {
				s.Config, s.Identity = set, set.Members[0].Identity
			}
			reply, err := c.Do(t.Context(), args(t, script.AppendSet(nil, "test", s, protocol.ID{byte(i + 1)}, "run", 0, time.Minute))...).Text()
			require.NoError(t, err)
			got, ok := protocol.ParseNodeSet(reply)
			require.True(t, ok, reply)
			want := m.Step(time.Now().UnixMilli(), s, protocol.Incarnation(i+1))
			require.Equal(t, want.String(), got.String(), "seed %d, step %d: %v", seed, i, s)
			require.Equal(t, m.SetText(), c.Get(t.Context(), script.SetKey("test")).Val())

			for j := range len(sets) + 1 {
				home := script.Home("")
				if j < len(sets) {
					home = script.HomeOf(sets[j].Stamp)
				}
				n.keys = script.NewKeys("test", "a name").At(home)
				for _, op := range []protocol.Op{protocol.OpBeat, protocol.OpLeave, protocol.OpRead} {
					_, err := n.send(t, n.terms(1, 1), protocol.Request{Op: op})
					refused := err != nil && strings.HasPrefix(err.Error(), script.OtherSet)
					m.Count(home.Stamp())
					a, _ := m.Handle(time.Now().UnixMilli(), n.terms(1, 1), "owner", protocol.Request{Op: op, Stored: &protocol.Stored{}}, 1)
					require.Equal(t, a.Status == protocol.OtherSet, refused, "seed %d, step %d: %v as of %q at %q: %v", seed, i, op, home, m.SetText(), err)
				}
			}
		}
	}
}

// A node keeps its incarnation when its set is recorded, begins another one
// when it gets its place back, and does not answer programs that know of no
// sets.
func TestMarkerMovesWithTheSet(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	before := marker(t, c, "run", script.Lost, true)
	set := proposals()[0]
	step := func(s protocol.RecordStep) {
		s.Config, s.Identity = set, set.Members[0].Identity
		require.NoError(t, c.Do(t.Context(), args(t, script.AppendSet(nil, "test", s, protocol.ID{9}, "run", 0, time.Minute))...).Err())
	}
	step(protocol.RecordStep{Kind: protocol.SetAccept, Ballot: "19a0000000000000001"})
	home := script.HomeOf(set.Stamp).Marker("test")
	assert.Equal(t, fmt.Sprintf("%d 0 run 0 60000 w", before), c.Get(t.Context(), home).Val())
	assert.Equal(t, "zset", c.Type(t.Context(), script.MarkerKey("test")).Val(), "GET fails in scripts of earlier versions")
	for key, refused := range map[string]bool{script.MarkerKey("test"): true, home: false, script.Home(home + "x").Marker(""): true} {
		for name, command := range map[string][]byte{
			"mark":      script.AppendMark(nil, key, protocol.ID{1}, "run", script.Lost, 0, 0, time.Minute),
			"bootstrap": script.AppendBootstrap(nil, key, protocol.ID{1}, "run", script.EndAny, 0, time.Minute),
			"whole":     script.AppendCaughtUp(nil, key, protocol.Incarnation(before)),
		} {
			err := c.Do(t.Context(), args(t, command)...).Err()
			switch {
			case !refused || name == "whole" && key != script.MarkerKey("test"): // what is caught up is an incarnation
				assert.NoError(t, err, "%s of %s", name, key)
			default:
				assert.ErrorContains(t, err, script.OtherSet, "%s of %s", name, key)
			}
		}
	}
	inspect := script.AppendInspect(nil, script.NewKeys("test", "n"), 1)
	assert.ErrorContains(t, c.Do(t.Context(), args(t, inspect)...).Err(), script.OtherSet)

	require.NoError(t, c.FlushAll(t.Context()).Err())
	step(protocol.RecordStep{Kind: protocol.SetRestore})
	after := strings.Fields(c.Get(t.Context(), home).Val())
	require.Len(t, after, 5, "it is not caught up")
	assert.NotEqual(t, fmt.Sprint(before), after[0])
	assert.Equal(t, []string{"run", "60000", "120000"}, after[2:], "its guard time is that of the set")
}

// A node that begins to count beside others keeps its incarnation. It attests
// nothing until it is caught up again, and votes for semaphores if it was.
func TestANodeThatEntersVotesAndDoesNotAttest(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	all := proposals()
	before, joint := all[3], all[4]
	for _, was := range []string{" w", ""} {
		require.NoError(t, c.FlushAll(t.Context()).Err())
		for i, set := range []*protocol.Configuration{before, joint} {
			s := protocol.RecordStep{Kind: []protocol.RecordKind{protocol.SetRestore, protocol.SetMove}[i], Config: set, Identity: set.Members[0].Identity}
			if i == 1 { // its guard time ended not long ago
				born := time.Now().Add(-70 * time.Second).UnixMilli()
				require.NoError(t, c.Set(t.Context(), script.HomeOf(before.Stamp).Marker("test"), fmt.Sprint("7 ", born, " run 60000 120000", was), 0).Err())
			}
			require.NoError(t, c.Do(t.Context(), args(t, script.AppendSet(nil, "test", s, protocol.ID{9}, "run", 0, time.Minute))...).Err())
		}
		home := script.HomeOf(joint.Stamp)
		marker := c.Get(t.Context(), home.Marker("test")).Val()
		assert.Regexp(t, `^7 \d+ run 60000 120000( l)?$`, marker)
		n := newNode(c)
		n.keys = script.NewKeys("test", "a name").At(home)
		sem := n.terms(1, 1)
		sem.Capacity, sem.Counting = 2, true
		assert.Equal(t, was == " w", n.do(t, sem, join(640)).Vote, "a node that was caught up: %q", was)
		require.NoError(t, c.Do(t.Context(), args(t, script.AppendCaughtUp(nil, home.Marker("test"), 7))...).Err())
		assert.Regexp(t, `^7 \d+ run 60000 120000 w$`, c.Get(t.Context(), home.Marker("test")).Val())
	}
}
