package server

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// Patterns of SCAN match what they match at a server, also those that make no
// sense.
func TestPatterns(t *testing.T) {
	t.Parallel()
	r, server := rand.New(rand.NewPCG(1, 2)), redistest.Start(t, 1).Node(0).Client()
	word := func(letters string, n int) (w string) {
		for range n {
			w += string(letters[r.IntN(len(letters))])
		}
		return w
	}
	all := map[string]bool{"é": true, "a*b": true}
	for range 200 {
		all[word("ab-]^[\\*?\x00\xff", 1+r.IntN(4))] = true
	}
	for key := range all {
		require.NoError(t, server.Set(t.Context(), key, "", 0).Err())
	}
	for range 2000 {
		pattern := word("ab-]^[[\\*?z", 1+r.IntN(7))
		keys, _, err := server.Scan(t.Context(), 0, pattern, 1000).Result()
		require.NoError(t, err)
		var mine []string
		for key := range all {
			if matches(pattern, key) {
				mine = append(mine, key)
			}
		}
		slices.Sort(keys)
		slices.Sort(mine)
		assert.Equal(t, len(keys), len(mine), "%q", pattern)
		assert.True(t, slices.Equal(keys, mine), "%q: %q, and at the server %q", pattern, mine, keys)
	}
}
