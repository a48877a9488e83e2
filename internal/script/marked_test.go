package script_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// Where Marked says that a node needs no mark, mark changes nothing and
// answers the same.
func TestMarked(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	ctx := t.Context()
	for _, s := range script.All() {
		require.NoError(t, c.ScriptLoad(ctx, s.Source).Err())
	}
	key := script.MarkerKey("test")
	now, err := c.Time(ctx).Result()
	require.NoError(t, err)
	past, future := now.Add(-time.Hour).UnixMilli(), now.Add(time.Hour).UnixMilli()
	for text, want := range map[string]bool{
		fmt.Sprintf("7 %d run 20 60000", past):     true,
		fmt.Sprintf("7 %d run 20 60000 w", past):   true,
		fmt.Sprintf("7 %d run 0 59999 w", past):    false, // a client has shown less
		fmt.Sprintf("7 %d other 20 60000", past):   false,
		fmt.Sprintf("7 %d - 20 60000", past):       false,
		fmt.Sprintf("7 %d run 20 60000", future):   false,
		fmt.Sprintf("7 %d run 20 60000 x", past):   false, // of another version
		fmt.Sprintf("7 %d run", past):              false,
		fmt.Sprintf("7 %d run 20 60000 w w", past): false,
		fmt.Sprintf("7 %d  run 20 60000", past):    false,
		fmt.Sprintf("-7 %d run 20 60000", past):    false,
		"":                                         false,
		"7 run":                                    false,
		"nonsense":                                 false,
	} {
		got, marked := script.Marked(text, "run", now.UnixMilli(), 0, time.Minute)
		assert.Equal(t, want, marked, "%q", text)
		for _, lost := range []string{script.Kept, script.Lost, "8"} {
			if !marked {
				break
			}
			require.NoError(t, c.Set(ctx, key, text, 0).Err())
			inc := marker(t, c, "run", lost, false)
			assert.Equal(t, got, inc, "%q, %s", text, lost)
			assert.Equal(t, text, c.Get(ctx, key).Val())
		}
	}
	require.NoError(t, c.Del(ctx, key).Err())
	inc := marker(t, c, "run", script.Lost, false)
	got, marked := script.Marked(c.Get(ctx, key).Val(), "run", time.Now().Add(time.Minute).UnixMilli(), 0, time.Minute)
	assert.True(t, marked, "what mark itself has written")
	assert.Equal(t, inc, got)
	_, marked = script.Marked(c.Get(ctx, key).Val(), "", now.UnixMilli(), 0, time.Minute)
	assert.False(t, marked, "a run that is not known")
}
