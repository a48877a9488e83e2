package e2e

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/setup"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// What is left on a server afterwards.

// fenceOnly is a state key that remembers nothing but the highest ticket.
var fenceOnly = regexp.MustCompile(`^R\d+ [0-9a-f]+`)

// recordKey is the key of a name's record, or of the one alongside it.
var recordKey = regexp.MustCompile(`\}(:n)?:r$`)

// Leftovers are the keys on a server that should not be there once there is no
// holder and no waiter: all but the marker, the fences and the records.
func Leftovers(ctx context.Context, s *redistest.Server) ([]string, error) {
	keys, err := s.Client().Keys(ctx, "*").Result()
	if err != nil {
		return nil, err
	}
	left := []string{}
	for _, k := range keys {
		if strings.Contains(k, ":{}:") || recordKey.MatchString(k) {
			continue
		}
		v, err := s.Client().Get(ctx, k).Result()
		if err == redis.Nil || err == nil && fenceOnly.MatchString(v) {
			continue
		}
		left = append(left, k+" = "+v)
	}
	slices.Sort(left)
	return left, nil
}

// MarkerKey is the key of a server's marker, which moves when the set of the
// server is recorded.
func MarkerKey(ctx context.Context, s *redistest.Server) string {
	text, _ := s.Client().Get(ctx, script.SetKey(setup.Defaults().Prefix)).Result()
	set, _ := nodeset.ParseNodeSet(text)
	return script.HomeOf(set.Stamp()).Marker(setup.Defaults().Prefix)
}

// Marker is what it has there.
func Marker(ctx context.Context, s *redistest.Server) string {
	return s.Client().Get(ctx, MarkerKey(ctx, s)).Val()
}

// Clean waits until nothing is left on any server of c.
func Clean(t testing.TB, c *redistest.Cluster) {
	t.Helper()
	for i := range c.Len() {
		var left []string
		var err error
		ok := Eventually(func() bool {
			left, err = Leftovers(context.Background(), c.Node(i))
			return err == nil && len(left) == 0
		})
		if !ok {
			t.Errorf("node %d: %v left behind (%v)", i, left, err)
		}
	}
}
