package setup

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fault"
)

// No error quotes a password, whichever character makes the URL wrong.
func TestParseURL(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"redis://:se%cret@host:6379", "redis://:se/cret@host:6379",
		"redis://:se#cret@host:6379", "redis://:se?cret@host:6379",
		"redis://:se cret@host:6379", "redis://:se[cret@host:6379",
		"redis://:se\x00cret@host:6379", "redis://:secret@host:port",
		"redis://:secret@host:99999999", "redis://:secret@ho st:6379", "redis://:secret@host:6379/x",
		"redis://:secret@host:6379/0/1",
		"redis://:secret@host:6379?x=y", "redis://:secret@host:6379?db=x",
		"redis://:secret@host:6379?skip_verify=true",
		"redis://user:12/secret@host:6379", "redis://user:12#secret@host:6379", "redis://user:12?secret@host:6379",
		"redis://user:12/3?secret@host",
		"redis://:se,cret@[host:6379", "secret@host:6379", "host:6379", "", "http://:secret@host", "secret://host",
		"unix://", "unix://:secret@?db=1",
		"unix://secret/redis.sock", "unix://:secret@run/redis.sock", "redis://:secret@host:6379#",
		"rediss://:se\\cret@host:6379/%zz",
	} {
		_, err := ParseURL(bad)
		if !assert.Error(t, err, bad) {
			continue
		}
		for _, part := range []string{"secret", "cret", ":se", "12"} {
			assert.NotContains(t, strings.ReplaceAll(err.Error(), "%2C", ""), part, bad)
		}
	}
	o, err := ParseURL("rediss://app:se%25%2F%3F%23%40%2C%20cret@host:6379/3?skip_verify=true&client_name=x&min_idle_conns=9")
	require.NoError(t, err)
	assert.Equal(t, "app", o.Username)
	assert.Equal(t, "se%/?#@, cret", o.Password)
	assert.Equal(t, 3, o.DB)
	assert.Zero(t, o.MinIdleConns, "which would dial at once")
	assert.True(t, o.TLSConfig.InsecureSkipVerify)
	_, err = ParseURL("redis://host?pool_size=x&db=1")
	assert.ErrorContains(t, err, `"pool_size"`)
	for _, good := range []string{"redis://host", "redis://:p@host", "redis://u:p@ss@host:1/2",
		"unix:///run/redis.sock?db=1", "redis://[::1]:6379"} {
		_, err := ParseURL(good)
		assert.NoError(t, err, good)
	}
}

// Connect and the command accept the same lists.
func TestParseNodes(t *testing.T) {
	addrs := func(nodes []Address) (addrs []string) {
		for _, o := range nodes {
			addrs = append(addrs, o.Network+" "+o.Addr)
		}
		return addrs
	}
	for _, good := range []struct {
		lists []string
		want  []string
	}{
		{nil, nil},
		{[]string{"a", "b:1"}, []string{"tcp a:6379", "tcp b:1"}},
		{[]string{" a:1, redis://b:2 ,\n\trediss://c:3\r\n"}, []string{"tcp a:1", "tcp b:2", "tcp c:3"}},
		{[]string{"a:1,b:2", "unix:///run/redis.sock"}, []string{"tcp a:1", "tcp b:2", "unix /run/redis.sock"}},
		{[]string{"[::1]:7", "10.0.0.1:8/3"}, []string{"tcp [::1]:7", "tcp 10.0.0.1:8"}},
	} {
		nodes, err := ParseNodes(good.lists)
		require.NoError(t, err, good.lists)
		assert.Equal(t, good.want, addrs(nodes))
	}
	nodes, err := ParseNodes([]string{"u:p%2Cq@a:1"})
	require.NoError(t, err)
	assert.Equal(t, "p,q", nodes[0].Password)

	for _, bad := range []struct {
		lists []string
		says  string
	}{
		{[]string{""}, "node 1 is empty"},
		{[]string{"a", " \n"}, "node 2 is empty"},
		{[]string{"a,,c"}, "node 2 is empty"},
		{[]string{","}, "node 1 is empty"},
		{[]string{"a,b,,"}, "node 3 is empty"},
		{[]string{"a,"}, "node 2 is empty"},
		{[]string{"a,b,\r\n"}, "node 3 is empty"},
		{[]string{"a, http://secret@b"},
			"node 2: the URL must begin with redis://, rediss://, redis+cluster://, rediss+cluster:// or unix://"},
		{[]string{"a", "b, :secret@c:port"}, "node 3: the URL must look like redis://"},
		{[]string{"a, :sec,ret@b"}, "node 2: the URL must look like redis://"},
		{[]string{"a b"}, "node 1: the URL must look like"},
		{[]string{"/run/redis.sock"}, "node 1: the URL's path must be a database number"},
		{[]string{"unix://run/redis.sock"}, "unix:///run/redis.sock"},
	} {
		_, err := ParseNodes(bad.lists)
		require.ErrorIs(t, err, fault.ErrInvalid, "%q", bad.lists)
		assert.ErrorContains(t, err, bad.says, "%q", bad.lists)
		assert.NotContains(t, err.Error(), "sec")
		assert.NotContains(t, err.Error(), "ret@")
	}
}
