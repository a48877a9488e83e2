//go:build mutants

package once_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/testkit/mutant"
	"github.com/quorate/quorate/once"
)

// TestMutantOfALongRun is TestRunThatOutlastsItsPromise without the rule.
func TestMutantOfALongRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer mutant.Off("RuleLongRun")()
		assert.Equal(t, once.Done, outlasts(t))
	})
}
