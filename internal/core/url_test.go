package core

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No error quotes a password, whichever character makes the URL wrong.
func TestParseURL(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"redis://:se%cret@host:6379", "redis://:se/cret@host:6379", "redis://:se#cret@host:6379", "redis://:se?cret@host:6379",
		"redis://:se cret@host:6379", "redis://:se[cret@host:6379", "redis://:se\x00cret@host:6379", "redis://:secret@host:port",
		"redis://:secret@host:99999999", "redis://:secret@ho st:6379", "redis://:secret@host:6379/x", "redis://:secret@host:6379/0/1",
		"redis://:secret@host:6379?x=y", "redis://:secret@host:6379?db=x", "redis://:secret@host:6379?skip_verify=true",
		"redis://user:12/secret@host:6379", "redis://user:12#secret@host:6379", "redis://user:12?secret@host:6379", "redis://user:12/3?secret@host",
		"redis://:se,cret@[host:6379", "secret@host:6379", "host:6379", "", "http://:secret@host", "secret://host", "unix://", "unix://:secret@?db=1",
		"redis://:secret@host:6379#", "rediss://:se\\cret@host:6379/%zz",
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
	for _, good := range []string{"redis://host", "redis://:p@host", "redis://u:p@ss@host:1/2", "unix:///run/redis.sock?db=1", "redis://[::1]:6379"} {
		_, err := ParseURL(good)
		assert.NoError(t, err, good)
	}
}
