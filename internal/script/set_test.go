package script_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/change"
	"github.com/quorate/quorate/internal/model/server"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// proposals are three sets that the node may become a member of, and three
// configurations that follow the first one. In the second of these the node
// begins to count, and the third has a longer guard time.
func proposals() (all []*nodeset.Configuration) {
	settings := nodeset.Shared{Guard: time.Minute, Retention: 2 * time.Minute, Skew: time.Second}
	for i := range 3 {
		s := nodeset.StampOf(1, nodeset.Ballot(fmt.Sprintf("19a00000000%08x", i+1)))
		all = append(all, &nodeset.Configuration{
			Stamp: s, Origin: s, Now: settings, Next: settings, Last: 1,
			Members: []nodeset.Member{{Identity: fmt.Sprint("id", i), Addr: "a"},
				{Number: 1, Identity: fmt.Sprint("other", i), Addr: "b"}},
		})
	}
	second := change.Begin(all[0], change.Goal{Add: []nodeset.Member{{Identity: "new", Addr: "c"}}},
		"19a0000000000000004")
	third := change.Join(second, "19a0000000000000005")
	third.Members[0].Role = nodeset.Enters
	settings.Guard *= 2
	longer := change.Begin(change.Undo(change.Join(second, "19a0000000000000005"), "19a0000000000000006"),
		change.Goal{Shared: &settings}, "19a0000000000000007")
	return append(all, second, third, longer)
}

// A node keeps the same register of the set and the same marker after each step
// as the reference node, and refuses the same requests.
func TestSetIsThatOfTheModel(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	sets := proposals()
	kinds := []nodeset.RecordKind{nodeset.SetPromise, nodeset.SetAccept, nodeset.SetCommit, nodeset.SetRestore,
		nodeset.SetMove, nodeset.SetMove, nodeset.SetRetire, nodeset.SetLife}
	start := time.Now()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		require.NoError(t, c.FlushAll(t.Context()).Err())
		n, m := newNode(c), server.New("run", nil)
		do := func(args []any) (got, want []resp.Value) {
			now := time.Now().UnixMilli()
			reply, err := c.Do(t.Context(), args...).Result()
			want, refused := m.Do(now, texts(args))
			require.Equal(t, refused != nil, err != nil, "seed %d: %v, want %v", seed, err, refused)
			if list, ok := reply.([]any); ok {
				return values(t, list), want
			}
			require.NoError(t, err)
			return values(t, []any{reply}), want
		}
		for i := range 25 {
			if r.IntN(20) == 0 {
				require.NoError(t, c.FlushAll(t.Context()).Err())
				m.Model.Forget()
			}
			set := sets[r.IntN(len(sets))]
			s := nodeset.RecordStep{Kind: kinds[r.IntN(len(kinds))],
				Ballot: nodeset.Ballot(fmt.Sprintf("19a00000000%08x", r.IntN(6)+1))}
			s.Ready = r.IntN(2) == 0
			if s.Kind == nodeset.SetRestore && r.IntN(2) == 0 {
				s.Seen = m.Model.SetText()
			}
			if s.Kind == nodeset.SetLife {
				s.Life = protocol.ID{byte(i + 1)}.String()
			} else if s.Kind != nodeset.SetPromise {
				s.Config, s.Identity = set, set.Members[0].Identity
			}
			got, want := do(args(t, script.AppendSet(nil, "test", s, protocol.ID{byte(i + 1)}, "run")))
			require.Equal(t, want, got, "seed %d, step %d: %v", seed, i, s)
			require.Equal(t, m.Model.SetText(), c.Get(t.Context(), script.SetKey("test")).Val())
			now := m.Model.Set()
			home := script.HomeOf(now.Stamp())
			if inc, _ := m.Model.Incarnation(); r.IntN(3) == 0 {
				got, want := do(args(t, script.AppendCaughtUp(nil, home.Marker("test"), inc)))
				require.Equal(t, want, got, "seed %d, step %d", seed, i)
			}
			sameMarker(t, m.Model.Marker(), c.Get(t.Context(), home.Marker("test")).Val(), time.Since(start))
			var all []*redis.Cmd
			pipe := c.Pipeline()
			for _, of := range sets {
				n.keys = script.NewKeys("test", "a name").At(script.HomeOf(of.Stamp))
				for _, op := range []protocol.Op{protocol.OpBeat, protocol.OpLeave, protocol.OpRead} {
					all = append(all, pipe.Do(t.Context(), n.args(t, n.terms(1, 1), protocol.Request{Op: op})...))
				}
			}
			_, _ = pipe.Exec(t.Context()) // each command has its own error
			for _, cmd := range all {
				_, refused := m.Do(time.Now().UnixMilli(), texts(cmd.Args()))
				require.Equal(t, refused != nil, cmd.Err() != nil, "seed %d, step %d: %v at %q: %v", seed, i,
					cmd.Args(), m.Model.SetText(), cmd.Err())
			}
		}
	}
}

// texts are the words of a command.
func texts(args []any) (words []string) {
	for _, a := range args {
		words = append(words, a.(string))
	}
	return words
}

// sameMarker requires that markers are equal, except that both clocks have been
// read apart.
func sameMarker(t *testing.T, want, got string, apart time.Duration) {
	t.Helper()
	w, g := strings.SplitN(want, " ", 3), strings.SplitN(got, " ", 3)
	if len(w) == 3 && len(g) == 3 && w[1] != "0" && g[1] != "0" {
		assert.InDelta(t, number(t, w[1]), number(t, g[1]), float64(apart.Milliseconds()+1))
		w[1] = g[1]
	}
	require.Equal(t, w, g)
}

// An operator's word that a node is brand-new has it vote at once, also under a
// longer guard time. Else a longer one counts from the same birth, whether the
// shorter one is over or not, and a shorter one ends when the longer one would
// have.
func TestMarkerMovesWithTheSet(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	all := proposals()
	set, longer := all[0], all[5]
	markerKey := func(of *nodeset.Configuration) string { return script.HomeOf(of.Stamp).Marker("test") }
	step := func(s nodeset.RecordStep, of *nodeset.Configuration) string {
		s.Config, s.Identity = of, of.Members[0].Identity
		require.NoError(t, c.Do(t.Context(),
			args(t, script.AppendSet(nil, "test", s, protocol.ID{9}, "run"))...).Err())
		return c.Get(t.Context(), markerKey(of)).Val()
	}
	assert.Empty(t, step(nodeset.RecordStep{Kind: nodeset.SetAccept, Ballot: "19a0000000000000001"}, set),
		"it has promised nothing, or has lost that")
	assert.Empty(t, step(nodeset.RecordStep{Kind: nodeset.SetCommit, Ballot: "19a0000000000000001"}, set))
	assert.Empty(t, step(nodeset.RecordStep{Kind: nodeset.SetPromise, Ballot: "19a0000000000000001"}, set))
	assert.Empty(t, step(nodeset.RecordStep{Kind: nodeset.SetAccept, Ballot: "19a0000000000000001"}, set),
		"it serves nothing")
	assert.Empty(t, step(nodeset.RecordStep{Kind: nodeset.SetCommit, Ballot: "19a0000000000000000", Ready: true},
		set), "another client declares it new as well")
	assert.Regexp(t, `^\d+ 0 run 60000 w$`,
		step(nodeset.RecordStep{Kind: nodeset.SetCommit, Ballot: "19a0000000000000001", Ready: true}, set))
	for key, refused := range map[string]bool{markerKey(set): false, markerKey(all[1]): true} {
		err := c.Do(t.Context(), args(t, script.AppendMark(nil, key, protocol.ID{1}, "run", ""))...).Err()
		assert.Equal(t, refused, err != nil, key)
	}
	assert.Regexp(t, `^\d+ 0 run 120000 w$`, step(nodeset.RecordStep{Kind: nodeset.SetMove}, longer))
	assert.Zero(t, c.Exists(t.Context(), markerKey(set)).Val(), "the marker has moved")

	require.NoError(t, c.FlushAll(t.Context()).Err())
	before := strings.Fields(step(nodeset.RecordStep{Kind: nodeset.SetRestore}, set))
	require.Len(t, before, 4, "it is not caught up")
	assert.Equal(t, []string{"run", "60000"}, before[2:], "its guard time is that of the set")
	require.NoError(t, c.Del(t.Context(), markerKey(set)).Err())
	lost := step(nodeset.RecordStep{Kind: nodeset.SetCommit, Ready: true, Ballot: "0"}, set)
	assert.Regexp(t, `^\d+ [1-9]\d+ run 60000$`, lost, "a recorded node that lost its marker is not new")
	before = strings.Fields(lost)
	after := strings.Fields(step(nodeset.RecordStep{Kind: nodeset.SetMove}, longer))
	assert.Equal(t, before[0], after[0])
	assert.Equal(t, before[1], after[1], "its guard time gets longer")
	assert.Empty(t, step(nodeset.RecordStep{Kind: nodeset.SetRetire}, later(longer)), "it has left")
	assert.Zero(t, c.Exists(t.Context(), markerKey(longer)).Val())

	require.NoError(t, c.FlushAll(t.Context()).Err())
	step(nodeset.RecordStep{Kind: nodeset.SetRestore}, set)
	born := time.Now().Add(-70 * time.Second).UnixMilli()
	require.NoError(t, c.Set(t.Context(), markerKey(set), fmt.Sprint("7 ", born, " run 60000"), 0).Err())
	assert.Equal(t, fmt.Sprint("7 ", born, " run 120000"),
		step(nodeset.RecordStep{Kind: nodeset.SetMove}, longer), "the shorter guard time was over")
	shorter := change.Undo(longer, "19a0000000000000008")
	assert.Equal(t, fmt.Sprint("7 ", born+60000, " run 60000"),
		step(nodeset.RecordStep{Kind: nodeset.SetMove}, shorter), "it ends when it would have")
}

// later is a configuration of the next epoch.
func later(c *nodeset.Configuration) *nodeset.Configuration {
	return change.Finish(c, "19a0000000000000008")
}

func number(t *testing.T, word string) int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	require.NoError(t, err)
	return n
}

// A node that begins to count alongside others keeps its incarnation. It
// attests nothing until it is caught up again, and votes for semaphores if it
// was.
func TestANodeThatEntersVotesAndDoesNotAttest(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	all := proposals()
	before, joint := all[3], all[4]
	for _, was := range []string{" w", ""} {
		require.NoError(t, c.FlushAll(t.Context()).Err())
		for i, set := range []*nodeset.Configuration{before, joint} {
			s := nodeset.RecordStep{Kind: []nodeset.RecordKind{nodeset.SetRestore, nodeset.SetMove}[i], Config: set,
				Identity: set.Members[0].Identity}
			if i == 1 { // its guard time ended not long ago
				born := time.Now().Add(-70 * time.Second).UnixMilli()
				require.NoError(t, c.Set(t.Context(), script.HomeOf(before.Stamp).Marker("test"),
					fmt.Sprint("7 ", born, " run 60000", was), 0).Err())
			}
			require.NoError(t, c.Do(t.Context(),
				args(t, script.AppendSet(nil, "test", s, protocol.ID{9}, "run"))...).Err())
		}
		home := script.HomeOf(joint.Stamp)
		marker := c.Get(t.Context(), home.Marker("test")).Val()
		assert.Regexp(t, `^7 \d+ run 60000( l)?$`, marker)
		n := newNode(c)
		n.keys, n.guard = script.NewKeys("test", "a name").At(home), time.Minute
		sem := n.terms(1, 1)
		sem.Capacity, sem.Counting = 2, true
		assert.Equal(t, was == " w", n.do(t, sem, join(640)).Vote, "a node that was caught up: %q", was)
		require.NoError(t, c.Do(t.Context(), args(t, script.AppendCaughtUp(nil, home.Marker("test"), 7))...).Err())
		assert.Regexp(t, `^7 \d+ run 60000 w$`, c.Get(t.Context(), home.Marker("test")).Val())

		// It may have missed a number of permits before it begins to count once more.
		require.NoError(t, c.Set(t.Context(), home.Marker("test"), "7 0 run 60000 l", 0).Err())
		again := *joint
		again.Stamp = nodeset.StampOf(joint.Stamp.Epoch()+1, "19a0000000000000009")
		s := nodeset.RecordStep{Kind: nodeset.SetMove, Config: &again, Identity: again.Members[0].Identity}
		require.NoError(t, c.Do(t.Context(),
			args(t, script.AppendSet(nil, "test", s, protocol.ID{9}, "run"))...).Err())
		assert.Equal(t, "7 0 run 60000", c.Get(t.Context(), script.HomeOf(again.Stamp).Marker("test")).Val())
	}
}
