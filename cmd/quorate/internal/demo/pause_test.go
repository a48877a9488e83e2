package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAccount(t *testing.T) {
	a := account{balance: 100}
	assert.True(t, a.write(7, 130))
	assert.True(t, a.write(7, 140), "the same holder writes again")
	assert.False(t, a.write(6, 150))
	assert.Equal(t, account{balance: 140, highest: 7}, a)
	assert.True(t, a.write(8, 160))
}

// The verdict notices everything that can go wrong.
func TestPauseJudge(t *testing.T) {
	now := time.Now()
	example := func() *pause {
		return &pause{
			unfenced: 150, fenced: account{balance: 130, highest: 8}, refused: true, told: true,
			got: [2]message{{At: now, Token: 7, Until: now.Add(time.Second)}, {At: now.Add(time.Second), Token: 8}},
		}
	}
	v := example().judge()
	assert.True(t, v.ok(), "%+v", v.checks)
	assert.Len(t, v.checks, 5)
	for name, spoil := range map[string]func(s *pause){
		"worker 2 was early":      func(s *pause) { s.got[1].At = now },
		"the token did not rise":  func(s *pause) { s.got[1].Token = 7 },
		"nothing was lost":        func(s *pause) { s.unfenced = 130 },
		"nothing was refused":     func(s *pause) { s.refused = false },
		"the late write is there": func(s *pause) { s.fenced.balance = 150 },
		"worker 1 knows nothing":  func(s *pause) { s.told = false },
	} {
		s := example()
		spoil(s)
		assert.False(t, s.judge().ok(), name)
	}
}
