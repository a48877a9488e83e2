package script_test

import (
	"crypto/rand"
	"flag"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script/conformance"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

var (
	sequences = flag.Int("sequences", 600, "random sequences held against the model")
	seed      = flag.Uint64("seed", 1, "first seed")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Share(m)) }

func TestConformance(t *testing.T) {
	c := redistest.Start(t, 1).Node(0).Client()
	conformance.Run(t, conformance.Config{Client: c, Sequences: *sequences, Seed: *seed})
}

// uuid is a random id.
func uuid(t *testing.T) (id protocol.ID) {
	_, err := rand.Read(id[:])
	require.NoError(t, err)
	return id
}

// dump is everything stored under a name, and the marker.
func dump(t *testing.T, n *node) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, key := range []string{n.keys.Plain(), n.keys.State(), n.keys.Queue(),
		n.keys.Claims(), n.keys.Marker()} {
		v, err := n.c.Dump(t.Context(), key).Result()
		if err != redis.Nil {
			require.NoError(t, err)
			m[key] = v
		}
	}
	return m
}
