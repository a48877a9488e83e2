package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A token far from the time is found.
func TestAstray(t *testing.T) {
	const (
		epoch = int64(1e18)
		year  = 365 * 24 * time.Hour
	)
	hold := func(off time.Duration) *operation {
		begin := int64(time.Hour)
		return &operation{Name: "n", Token: uint64((epoch+begin+int64(off))/1000) << 10, Begin: begin, Until: begin + 5, End: begin + 5}
	}
	for off, want := range map[time.Duration]int{0: 0, 2 * time.Second: 0, -11 * time.Second: 0, 10 * time.Minute: 1, -10 * time.Minute: 1, year: 1, -year: 1} {
		assert.Len(t, astray([]*operation{hold(off)}, epoch, 2*time.Second), want, "%v", off)
	}
}
