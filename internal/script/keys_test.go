package script_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
)

// Each key begins with the prefix and a brace, save the redlock key of a name,
// which other Redlock clients know. So a user needs no right to other keys.
func TestKeysBelowThePrefix(t *testing.T) {
	t.Parallel()
	home := script.HomeOf("1.0123456789ab")
	name, side := script.NewKeys("quorate", "job"), script.NewKeysBeside("quorate", "job", script.Number)
	for _, k := range []script.Keys{name, side,
		script.NewKeys("quorate", nodeset.SuccessorName("1.0123456789ab"))} {
		for _, key := range []string{k.State(), k.Queue(), k.Claims(), k.Marker(), k.Record(), k.Watchers(),
			k.At(home).Marker(), script.SetKey("quorate"), script.TurnKey("quorate")} {
			assert.Regexp(t, `^quorate:\{`, key)
		}
		if k == name {
			assert.Equal(t, "job", k.Plain())
		} else {
			assert.Regexp(t, `^quorate:\{`, k.Plain())
		}
	}
	for _, key := range script.SpreadKeys(home.Marker("quorate"), "quorate") {
		assert.Regexp(t, `^quorate:\{`, key)
	}
}
