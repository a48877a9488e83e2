//go:build mutants

package semaphore_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/mutant"
)

// TestVotesAloneAdmitTooMany is TestCounting without the counting rule.
func TestVotesAloneAdmitTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer mutant.Off("RuleCounting")()
		s := overlapping(t)
		for i := range s {
			require.NoError(t, s[i].Acquire(t.Context(), 1))
		}
		t.Log("three hold one of two permits each")
		for i := range s {
			s[i].Release(1)
		}
	})
}
