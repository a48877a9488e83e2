package e2e_test

import (
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// On a cluster a client needs the rights that docs/operate/cluster.md adds to those of
// a server. They reach no key of a prefix that begins with the client's.
func TestRightsOnACluster(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operate/cluster.md")
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^- \*\*ACLs\*\*: .*$`).FindString(string(text))
	var more []string
	for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1) {
		more = append(more, strings.Fields(quoted[1])...)
	}
	require.NotEmpty(t, more)
	rules := []any{"ACL", "SETUSER", "app", "on", ">password", "resetkeys", "resetchannels", "-@all"}
	for _, right := range append(more, needed...) {
		if strings.HasPrefix(right, "+") || strings.Contains(right, "{quorate") {
			rules = append(rules, right)
		}
	}
	s := redistest.StartSharded(t, 3, false)
	for i := range s.Len() {
		require.NoError(t, s.Node(i).Client().Do(t.Context(), rules...).Err())
	}
	u, err := url.Parse(s.URL())
	require.NoError(t, err)
	u.User = url.UserPassword("app", "password")
	q := e2e.OpenAt(t, []string{u.String()}, e2e.Timing(time.Minute))
	require.NoError(t, q.Bootstrap(deadline(t)))
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		m, other := mutex.New(q, name), mutex.New(q, name)
		require.NoError(t, m.LockContext(deadline(t)))
		turn, err := next(deadline(t), other)
		require.NoError(t, err)
		m.Unlock()
		require.NoError(t, e2e.Receive(t, turn))
		other.Unlock()
	}
	for _, key := range []string{"a", "quorate:{}:set", "{quorate:b:7}:{a}", "{quorate:700}:{a}"} {
		said := s.Node(0).Client().Do(t.Context(), "ACL", "DRYRUN", "app", "GETRANGE", key, "0", "1").String()
		assert.Contains(t, said, "no permissions", key)
	}
}
