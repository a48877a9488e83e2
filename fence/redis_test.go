package fence_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fence"
	"github.com/quorate/quorate/fence/internal/suite"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

func TestRedis(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t, 1).Node(0).Client()
	t.Run("tokens", func(t *testing.T) { testRedisTokens(t, client) })
	t.Run("script", func(t *testing.T) { testScript(t, client) })
	t.Run("hostile", func(t *testing.T) { testRedisHostile(t, client) })
}

// Neighbours above 2^53 are different, and a token with more digits is higher.
func testRedisTokens(t *testing.T, client redis.UniversalClient) {
	ctx := t.Context()
	for _, step := range []struct{ token, highest uint64 }{
		{9, 0},
		{10, 0},
		{9, 10},
		{1<<53 + 1, 0},
		{1 << 53, 1<<53 + 1},
		{999_999_999_999_999_999, 0},
		{suite.Big, 0},
		{suite.Big + 1, 0},
		{suite.Big, suite.Big + 1},
		{999_999_999_999_999_999, suite.Big + 1},
		{suite.Big + 1, 0},
		{1<<63 - 1, 0},
		{1<<63 - 2, 1<<63 - 1},
	} {
		err := fence.CheckRedis(ctx, client, "orders", step.token)
		if step.highest == 0 {
			require.NoError(t, err, step.token)
			continue
		}
		require.ErrorIs(t, err, fence.ErrStale, step.token)
		require.ErrorContains(t, err, fmt.Sprintf("token %d is stale, a later holder with token %d", step.token,
			step.highest))
	}
	require.ErrorContains(t, fence.CheckRedis(ctx, client, "orders", 0), "no hold has the token 0")
	require.NoError(t, client.Set(ctx, "text", "12a", 0).Err())
	require.ErrorContains(t, fence.CheckRedis(ctx, client, "text", 5), "there is no token at the key text")
	require.NoError(t, client.LPush(ctx, "list", 1).Err())
	require.ErrorContains(t, fence.CheckRedis(ctx, client, "list", 5), "WRONGTYPE")
	assert.Equal(t, "12a", client.Get(ctx, "text").Val())
}

// A script finds its own keys and arguments, and does not run under a stale
// token.
func testScript(t *testing.T, client redis.UniversalClient) {
	ctx := t.Context()
	for i, src := range []string{
		"return {#KEYS, #ARGV, KEYS[1], ARGV[1], redis.call('INCR', KEYS[1])}",
		"#!lua\nreturn {#KEYS, #ARGV, KEYS[1], ARGV[1], redis.call('INCR', KEYS[1])}",
		"-- a comment\nlocal n = redis.call('INCR', KEYS[1])\nreturn {#KEYS, #ARGV, KEYS[1], ARGV[1], n}",
	} {
		n, guard := fmt.Sprint("n", i), fmt.Sprint("fence", i)
		s := fence.NewScript(src)
		keys, args := make([]string, 1, 9), make([]any, 1, 9)
		keys[0], args[0] = n, "x"
		got, err := s.Run(ctx, client, guard, suite.Big, keys, args...).Slice()
		require.NoError(t, err, src)
		assert.Equal(t, []any{int64(1), int64(1), n, "x", int64(1)}, got)
		require.ErrorIs(t, s.Run(ctx, client, guard, suite.Big-1, keys, args...).Err(), fence.ErrStale)
		assert.Equal(t, "1", client.Get(ctx, n).Val(), "a stale one has run")
	}
	none := fence.NewScript("return {#KEYS, #ARGV}")
	got, err := none.Run(ctx, client, "none", 1, nil).Int64Slice()
	require.NoError(t, err)
	assert.Equal(t, []int64{0, 0}, got)

	wrong := fence.NewScript("local a = 1\nreturn redis.call('NONE')")
	assert.ErrorContains(t, wrong.Run(ctx, client, "wrong", 1, nil).Err(),
		"user_script:2", "the line of the script")
}

// Many writers with random tokens: what they append is in order.
func testRedisHostile(t *testing.T, client redis.UniversalClient) {
	ctx := t.Context()
	add := fence.NewScript("return redis.call('RPUSH', KEYS[1], ARGV[1])")
	tokens := make(chan uint64)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for token := range tokens {
				if err := add.Run(ctx, client, "{h}fence", token, []string{"{h}list"}, token).Err(); err != nil {
					assert.ErrorIs(t, err, fence.ErrStale)
				}
			}
		})
	}
	for i := range uint64(400) {
		tokens <- suite.Big + i
	}
	close(tokens)
	wg.Wait()
	list, err := client.LRange(ctx, "{h}list", 0, -1).Result()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	last := uint64(0)
	for _, text := range list {
		token, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, token, last)
		last = token
	}
}
