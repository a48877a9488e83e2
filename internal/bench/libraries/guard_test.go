package libraries

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A lock that lets two in fails the benchmark.
func TestGuard(t *testing.T) {
	var g Guard
	a, b := &syncMutex{}, &syncMutex{}
	require.NoError(t, g.Enter(a))
	require.ErrorContains(t, g.Enter(b), "not exclusive")
	reads := Guard{}
	r := &reader{uses: 1}
	require.NoError(t, reads.Enter(r))
	require.NoError(t, reads.Enter(r))
	require.ErrorContains(t, reads.Enter(&reader{uses: WriteEvery}), "not exclusive")
}
