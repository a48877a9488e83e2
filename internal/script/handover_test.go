package script_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// The short way of a hand-over leaves and tells what the long way does, which
// is taken when votes may have to be passed on.
func TestHandOver(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	load(t, c)
	n := newNode(c)
	require.NoError(t, c.Set(t.Context(), n.keys.Marker(), "7 0 run 0", 0).Err())
	pushes := c.Subscribe(t.Context(), "owner")
	defer func() { _ = pushes.Close() }()
	_, err := pushes.Receive(t.Context())
	require.NoError(t, err)
	for i := range uint64(5) {
		terms := n.terms(i+1, 1)
		terms.Notify = i%2 == 1
		n.do(t, terms, join(640))
	}
	keys := []string{n.keys.Plain(), n.keys.State(), n.keys.Queue(), n.keys.Claims()}
	for i := range uint64(4) {
		saved := map[string]string{}
		for _, key := range keys {
			saved[key] = c.Dump(t.Context(), key).Val()
		}
		state := c.Get(t.Context(), n.keys.State()).Val()
		require.True(t, strings.HasSuffix(state, " 0"))
		var after [2]map[string]string
		var pushed [2]protocol.Push
		for way := range 2 {
			for _, key := range keys {
				require.NoError(t, c.RestoreReplace(t.Context(), key, time.Minute, saved[key]).Err())
			}
			if way == 1 {
				require.NoError(t, c.Set(t.Context(), n.keys.State(),
					strings.TrimSuffix(state, "0")+"1", time.Minute).Err())
			}
			n.do(t, n.terms(i+1, 1), protocol.Request{Op: protocol.OpLeave})
			after[way] = dump(t, n)
			m, err := pushes.ReceiveMessage(t.Context())
			require.NoError(t, err)
			pushed[way], err = script.ParsePush(m.Payload)
			require.NoError(t, err)
			pushed[way].Clock = 0
		}
		assert.Equal(t, after[1], after[0])
		assert.Equal(t, pushed[1], pushed[0])
		assert.Equal(t, n.terms(i+2, 1).ID, pushed[0].ID)
		assert.Equal(t, i < 3, pushed[0].Waiters)
	}
}
