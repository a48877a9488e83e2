package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, said, name, version, err string }{
		{"/a/redis-server", "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64\n", "Redis",
			"7.0.15", ""},
		{"/a/valkey-server", "Valkey server v=8.1.1 sha=00000000:0\n", "Valkey", "8.1.1", ""},
		{"/a/valkey-server", "Server v=7.2.14 sha=00000000:0\n", "Valkey", "7.2.14", ""},
		{"/a/redis-server", "Redis server v=5.0.14 sha=00000000:0\n", "Redis", "5.0.14", ""},
		{"/a/redis-server", "Redis server v=4.0.14 sha=00000000:0\n", "Redis", "4.0.14",
			"is too old: its scripts cannot read the clock and then write; Redis 5.0 or later is needed"},
		{"/bin/true", "true (GNU coreutils) 9.4\n", "", "", "which is no Redis"},
	} {
		r, err := describe(c.path, []byte(c.said))
		assert.Equal(t, c.name, r.name)
		assert.Equal(t, c.version, r.version)
		if c.err == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.err)
		}
	}
}
