package operator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// A node that keeps snapshots only, or an append-only file, does not come back
// with the set of before an exchange.
func TestExchangeIsOnDisk(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]redistest.Option{
		"snapshots":        redistest.WithArgs("--save", "3600 1000000"),
		"append-only file": redistest.WithAOF("everysec"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := redistest.Start(t, 4, opt)
			operator, _ := gives(t, c, 3)
			for i := range 3 {
				require.NoError(t, c.Node(i).Client().Save(t.Context()).Err())
			}
			require.NoError(t, Run(minute(t), operator, Exchange{Add: c.URLs()[3:], Remove: c.URLs()[2:3]}))
			require.NoError(t, operator.Close(minute(t)))
			for i := range 2 {
				require.NoError(t, c.Node(i).Restart())
				has, ok := nodeset.ParseNodeSet(c.Node(i).Client().Get(t.Context(),
					script.SetKey(exchangeSettings().Prefix)).Val())
				require.True(t, ok)
				assert.GreaterOrEqual(t, has.Stamp().Epoch(), uint64(3), "node %d: %s", i, has.Text)
			}
		})
	}
}

// What a node refuses to tell is no reason to wait without end, and what passes
// is none to go on.
func TestWhatANodeSaysOfItsDisk(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	q, _ := gives(t, c, 1)
	require.NoError(t, q.Operate(minute(t), nil))
	a, m := asker{&exchange{q: q, set: q.Set}, minute(t)}, config(q).Members[0]
	for err, settled := range map[error]bool{
		resp.Error("NOPERM this user has no permissions to run the 'bgsave' command"):    true,
		resp.Error("ERR unknown command 'CONFIG'"):                                       true,
		resp.Error("ERR Background save already in progress"):                            false,
		resp.Error("ERR Another child process is active (AOF?): can't BGSAVE right now"): false,
		resp.Error("LOADING Redis is loading the dataset in memory"):                     false,
		context.DeadlineExceeded: false,
	} {
		assert.Equal(t, settled, a.unsaved(m, err).Refused, err)
	}
	p := a.persistence(m)
	assert.True(t, p.Known)
	assert.False(t, p.Log || p.Snapshots || p.Refused, "it keeps nothing")
	began := a.Snapshot(m, false)
	assert.True(t, began.Known && began.Saving)
}
