package inspect_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/inspect"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// portion is an answer to SCAN.
func portion(cursor int, names ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*2\r\n$%d\r\n%d\r\n*%d\r\n", len(strconv.Itoa(cursor)), cursor, len(names))
	for _, n := range names {
		key := "quorate:{" + n + "}"
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(key), key)
	}
	return b.String()
}

// lying returns the URL of a server that answers SCAN with what scan returns,
// and all else as s does.
func lying(t *testing.T, s *redistest.Server, scan func() string) (url string) {
	return "redis://" + redistest.Between(t, s.Addr(), func(words []string) string {
		if strings.EqualFold(words[0], "SCAN") {
			return scan()
		}
		return ""
	})
}

// A node whose SCAN does not end keeps no listing from its end, and fills no
// memory. Where the others make no majority the error names it.
func TestScanWithoutEnd(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	for name, c := range map[string]struct {
		scan func() string
		says string
	}{
		"one cursor": {func() string { return portion(7) }, "over and over"},
		"a circle":   {func() string { return portion(int(1 + calls.Add(1)%1000)) }, "over and over"},
		"no number":  {func() string { return "*2\r\n$1\r\nx\r\n*0\r\n" }, "not a number"},
		"names": {func() string {
			return portion(int(1+calls.Add(1)%1000),
				fmt.Sprint("forged ", calls.Add(1)))
		}, "over and over"},
	} {
		t.Run(name, func(t *testing.T) {
			servers := redistest.Start(t, 3)
			q := e2e.OpenAt(t, append(servers.URLs()[1:], lying(t, servers.Node(0), c.scan)),
				e2e.Timing(4*time.Second))
			require.True(t, e2e.Eventually(func() bool { return q.Bootstrap(t.Context()) == nil }))
			m := mutex.New(q, "held")
			require.NoError(t, m.LockContext(t.Context()))
			defer m.Unlock()
			found, err := names(t, q)
			require.NoError(t, err)
			assert.Contains(t, found, "held")
		})
		t.Run(name+", of one node", func(t *testing.T) {
			servers := redistest.Start(t, 1)
			q := e2e.OpenAt(t, []string{lying(t, servers.Node(0), c.scan)}, e2e.Timing(4*time.Second))
			require.True(t, e2e.Eventually(func() bool { return q.Bootstrap(t.Context()) == nil }))
			_, err := names(t, q)
			require.ErrorIs(t, err, quorate.ErrNoQuorum)
			assert.ErrorContains(t, err, c.says)
		})
	}
}

// names lists all names.
func names(t *testing.T, q *quorate.Quorum) (found []string, err error) {
	for e, failed := range inspect.Names(t.Context(), q, "") {
		if err = failed; err == nil {
			found = append(found, e.Name)
		}
	}
	return found, err
}

// A cursor that never comes again is not asked for without end where the other
// nodes suffice.
func TestScanOfEverNewCursors(t *testing.T) {
	t.Parallel()
	servers := redistest.Start(t, 3)
	var calls atomic.Int64
	q := e2e.OpenAt(t, append(servers.URLs()[:2],
		lying(t, servers.Node(2), func() string { return portion(int(calls.Add(1))) })), e2e.Timing(4*time.Second))
	require.True(t, e2e.Eventually(func() bool { return q.Bootstrap(t.Context()) == nil }))
	m := mutex.New(q, "held")
	require.NoError(t, m.LockContext(t.Context()))
	defer m.Unlock()
	found, err := names(t, q)
	require.NoError(t, err)
	assert.Equal(t, []string{"held"}, found)
}
