package lanes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func spans(all ...[3]int) (s []Span) {
	for _, a := range all {
		s = append(s, Span{time.Duration(a[0]) * time.Second, time.Duration(a[1]) * time.Second, a[2]})
	}
	return s
}

func TestValues(t *testing.T) {
	w := Window{0, 100 * time.Second, 10}
	for name, c := range map[string]struct {
		spans []Span
		want  []int
	}{
		"nothing":              {nil, []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		"all":                  {spans([3]int{-5, 200, 3}), []int{3, 3, 3, 3, 3, 3, 3, 3, 3, 3}},
		"outside":              {spans([3]int{-5, 0, 1}, [3]int{100, 110, 2}), []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		"whole columns":        {spans([3]int{10, 30, 1}), []int{0, 1, 1, 0, 0, 0, 0, 0, 0, 0}},
		"a short one is shown": {spans([3]int{51, 52, 1}), []int{0, 0, 0, 0, 0, 1, 0, 0, 0, 0}},
		"the longest counts": {spans([3]int{20, 24, 1}, [3]int{24, 30, 2}, [3]int{30, 31, 3}),
			[]int{0, 0, 2, 3, 0, 0, 0, 0, 0, 0}},
		"the last moment": {spans([3]int{99, 100, 1}), []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
	} {
		assert.Equal(t, c.want, w.Values(c.spans), name)
	}
}

func TestRuns(t *testing.T) {
	assert.Empty(t, Runs(nil))
	assert.Equal(t, []Run{{0, 2, 1}, {2, 1, 0}, {3, 3, 2}}, Runs([]int{1, 1, 0, 2, 2, 2}))
}

func TestAt(t *testing.T) {
	w := Window{10 * time.Second, 20 * time.Second, 5}
	for s, want := range map[int]int{0: 0, 10: 0, 12: 1, 19: 4, 20: 4, 30: 4} {
		assert.Equal(t, want, w.At(time.Duration(s)*time.Second), s)
	}
	assert.Zero(t, Window{}.At(time.Second))
}
