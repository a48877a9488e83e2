package core

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/transport"
)

// The URL of a Sentinel set is one node beside others. What is wrong with it is
// said without a word of it.
func TestURLsOfSentinelSets(t *testing.T) {
	t.Parallel()
	nodes, err := ParseNodes([]string{"redis://:pw@a:26379/2?master_name=m&addr=b:26379&username=u&password=secret&dial_timeout=3, c:6379"})
	require.NoError(t, err)
	require.Len(t, nodes, 2)
	set := nodes[0]
	assert.Equal(t, transport.SentinelAddr, set.Addr)
	assert.Equal(t, 3*time.Second, set.DialTimeout)
	assert.Equal(t, []string{"a:26379", "b:26379"}, set.failover.SentinelAddrs)
	set.DialTimeout = time.Second
	client := set.Client()
	defer client.Close()
	o := client.(*redis.Client).Options()
	assert.Equal(t, "u secret", o.Username+" "+o.Password)
	assert.Equal(t, 2, o.DB)
	assert.Equal(t, time.Second, o.DialTimeout)
	own := Defaults()
	assert.Equal(t, transport.SentinelAddr, own.nameOf(client, 2), "New asks for its name")
	server := nodes[1].Client()
	defer server.Close()
	assert.Equal(t, "c:6379", own.nameOf(server, 1))

	for url, want := range map[string]string{
		"redis://:secret@a?master_name=":                       "master_name is empty",
		"redis://:secret@a?master_name=m&replica_only=true":    "leave out replica_only",
		"redis://:secret@a?master_name=m&addr=secret":          "ParseFailoverURL",
		"redis://:secret@a/secret?master_name=m":               "ParseFailoverURL",
		"unix://secret/x?master_name=m":                        "ParseFailoverURL",
		"redis://:secret@a?master_name=m&addr=b:1&secret=true": "ParseFailoverURL",
	} {
		_, err := ParseNodes([]string{url})
		require.ErrorIs(t, err, ErrInvalid, url)
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "secret", url)
	}
}
