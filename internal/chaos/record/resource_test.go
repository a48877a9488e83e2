package record

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestResource(t *testing.T) {
	for _, fenced := range []bool{true, false} {
		r, err := OpenResource(fenced)
		require.NoError(t, err)
		u, err := DialResource(r.Addr())
		require.NoError(t, err)
		ask := func(what string, token uint64, alone bool, base int64) (int64, bool) {
			v, ok, err := u.Ask(Request{what, "n", token, alone, "op", base})
			require.NoError(t, err)
			return v, ok
		}
		_, ok := ask(DoRead, 5, true, 0)
		require.True(t, ok)
		_, ok = ask(DoRead, 6, true, 0) // the next one, while the first one sleeps
		require.True(t, ok)
		_, ok = ask(DoWrite, 6, true, 0)
		require.True(t, ok)
		_, ok = ask(DoRead, 8, false, 0)
		require.True(t, ok)
		v, ok := ask(DoRead, 7, false, 0)
		require.True(t, ok, "readers do not mind each other")
		assert.EqualValues(t, 1, v)
		_, ok = ask(DoWrite, 5, true, 0)
		assert.Equal(t, !fenced, ok)
		u.Close()
		stats := r.Close()
		assert.Equal(t, fenced, len(stats.Corrupt) == 0)
		for _, l := range stats.Corrupt {
			assert.Equal(t, "op", l.Op)
			assert.EqualValues(t, 5, l.Token)
		}
	}
}
