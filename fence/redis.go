package fence

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// guard checks the last key and argument, and takes them away, so the script
// after it finds its own. It is one line: errors name the lines of the script.
//
// Tokens are compared as texts, because Lua's numbers have 53 bits. They have no
// leading zeros, so the longer one is higher.
var guard = strings.Join(strings.Fields(`
	do
		local key, token = table.remove(KEYS), table.remove(ARGV)
		local seen = redis.call('GET', key)
		if seen and not string.find(seen, '^[1-9]%d*$') then
			return redis.error_reply('ERR there is no token at the key ' .. key)
		end
		if seen and (#token < #seen or (#token == #seen and token < seen)) then
			return redis.error_reply('FENCED ' .. seen)
		end
		if seen ~= token then
			redis.call('SET', key, token)
		end
	end `), " ") + " "

// A Script is a Lua script for Redis that checks a token before it runs. The
// check and the script's writes are atomic. A Script is safe for concurrent
// use.
type Script struct{ script *redis.Script }

// NewScript returns a script that runs src unless the token is stale. In src,
// KEYS and ARGV are the keys and args passed to [Script.Run].
func NewScript(src string) *Script {
	var first string
	if strings.HasPrefix(src, "#!") { // Redis reads that line only at the start
		line, rest, _ := strings.Cut(src, "\n")
		first, src = line+"\n", rest
	}
	return &Script{redis.NewScript(first + guard + src)}
}

// Run stores the token in the key fence and runs the script. If the key holds a
// higher token, the script does not run, and the error of the result is
// [ErrStale].
//
// Keep the fence on the same server as the keys. On a Redis Cluster they must
// share a hash tag, as in "{orders}:total" and "{orders}:fence". Make sure that
// the fence does not expire, and that the server does not evict it while it
// keeps the data.
//
// If the connection breaks, go-redis sends the script again, unless the
// client's MaxRetries is -1. So a script may run twice with the same token. Run
// must not be called with a pipeline.
func (s *Script) Run(
	ctx context.Context, client redis.Scripter, fence string, token uint64, keys []string, args ...any,
) *redis.Cmd {
	if err := validToken(fence, token); err != nil {
		cmd := redis.NewCmd(ctx)
		cmd.SetErr(err)
		return cmd
	}
	keys = append(slices.Clone(keys), fence)
	args = append(slices.Clone(args), strconv.FormatUint(token, 10))
	cmd := s.script.Run(ctx, client, keys, args...)
	if err := cmd.Err(); err != nil {
		if text, ok := strings.CutPrefix(err.Error(), "FENCED "); ok {
			if highest, err := strconv.ParseUint(text, 10, 64); err == nil {
				cmd.SetErr(&stale{fence, token, highest})
			}
		}
	}
	return cmd
}

var check = NewScript("return 0")

// CheckRedis stores the token in the key fence, or returns [ErrStale] if the
// key holds a higher one. Call it before you read any data that your work
// depends on. It does not protect later writes, because the process can be
// paused in between: use a [Script] to write.
func CheckRedis(ctx context.Context, client redis.Scripter, fence string, token uint64) error {
	return check.Run(ctx, client, fence, token, nil).Err()
}
