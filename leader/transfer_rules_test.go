package leader

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/quoratetest"
)

// A candidate steps back only for another claim that is behind it in the queue,
// and once.
func TestPrecedes(t *testing.T) {
	t.Parallel()
	chosen := successor{Claim: "c", Token: 20}
	for _, c := range []struct {
		name, id string
		token    uint64
		stepped  string
		want     bool
	}{
		{"ahead of the chosen one", "b", 10, "", true},
		{"ahead, after a transfer to another one", "b", 10, "x", true},
		{"the chosen one", "c", 20, "", false},
		{"the chosen one, which nodes have moved back", "c", 19, "", false},
		{"behind: the chosen one is gone", "d", 30, "", false},
		{"ahead again, after it has stepped back", "b2", 19, "c", false},
	} {
		assert.Equal(t, c.want, chosen.precedes(c.id, c.token, c.stepped), c.name)
	}
	assert.False(t, new(successor).precedes("b", 10, ""), "no message")
}

// queueOf is a queue of claims 1, 2, …, whose owners have these IDs and
// priorities.
func queueOf(owners ...any) (q []script.Claim) {
	for i := 0; i < len(owners); i += 2 {
		owner := "quorate:push:host:1:random"
		if id := owners[i].(string); id != "" {
			owner += " " + script.Candidate(id, owners[i+1].(int)) + "a note"
		}
		n := len(q) + 1
		q = append(q, script.Claim{ID: string(rune('0' + n)), Ticket: protocol.Ticket(n), Owner: owner})
	}
	return q
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	at := func(n int, id string, priority int) candidate {
		return candidate{successor{string(rune('0' + n)), uint64(n) * core.MaxPasses}, id, priority}
	}
	for _, c := range []struct {
		name string
		of   []script.Claim
		want []candidate
		best *candidate
	}{
		{"only the leader", queueOf("a", 0), nil, nil},
		{"others without an ID", queueOf("a", 0, "", 0, "", 0), nil, nil},
		{"the first of several is the best", queueOf("a", 0, "b", 5, "c", 5),
			[]candidate{at(2, "b", 5), at(3, "c", 5)}, new(at(2, "b", 5))},
		{"the highest priority", queueOf("a", 9, "b", -1, "c", 7),
			[]candidate{at(2, "b", -1), at(3, "c", 7)}, new(at(3, "c", 7))},
		{"below none", queueOf("a", 9, "", 0, "c", -7), []candidate{at(3, "c", -7)}, new(at(3, "c", -7))},
		{
			"the newest claim of a process that was restarted", queueOf("a", 0, "b", 1, "c", 1, "b", 1),
			[]candidate{at(3, "c", 1), at(4, "b", 1)}, new(at(3, "c", 1)),
		},
		{
			"one ID with several priorities", queueOf("a", 0, "x", 1, "x", 9, "x", 2),
			[]candidate{at(2, "x", 1), at(3, "x", 9), at(4, "x", 2)}, new(at(3, "x", 9)),
		},
		{"the leader's ID waits as well", queueOf("a", 0, "a", 1), []candidate{at(2, "a", 1)}, new(at(2, "a", 1))},
	} {
		got := candidates(c.of, "1")
		assert.Equal(t, c.want, got, c.name)
		assert.Equal(t, c.best, highest(got), c.name)
	}
}

// A Proclaim that is about to write as the term ends writes no more: it would
// overwrite the name of the successor.
func TestNoWriteAfterTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(quoratetest.New(t, 3).Quorum(), "e")
		require.NoError(t, e.Campaign(t.Context(), "v"))
		term := e.current()
		term.writes.Store(lastWrite) // as end does, which then queues the last write
		require.NoError(t, term.over())
		require.ErrorIs(t, e.Proclaim(t.Context(), "late"), quorate.ErrNotHeld)
		l, err := e.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, "v", l.Value)
		term.writes.Store(1)
		require.NoError(t, e.Resign(t.Context()))
		time.Sleep(time.Second)
		_, err = e.Leader(t.Context())
		require.ErrorIs(t, err, ErrNoLeader)
	})
}
