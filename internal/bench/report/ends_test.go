package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/plot/vg"
)

// Names that would cover each other move up and down alike, and none below the
// floor.
func TestApart(t *testing.T) {
	assert.Equal(t, []vg.Length{0, 20, 40}, apart([]vg.Length{0, 20, 40}, 10, 0), "nothing is in the way")
	assert.Equal(t, []vg.Length{45, 55}, apart([]vg.Length{50, 50}, 10, 0))
	assert.Equal(t, []vg.Length{40, 50, 60}, apart([]vg.Length{49, 50, 51}, 10, 0))
	assert.Equal(t, []vg.Length{0, 10, 20, 30}, apart([]vg.Length{1, 2, 8, 30}, 10, 0))
	assert.Empty(t, apart(nil, 10, 0))
}
