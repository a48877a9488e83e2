package quorate_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/core"
	"github.com/quorate/quorate/internal/lease"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/mutex"
	"github.com/quorate/quorate/once"
	"github.com/quorate/quorate/rwmutex"
	"github.com/quorate/quorate/semaphore"
)

// nowhere is a client of a server that cannot be reached.
func nowhere(tb testing.TB) []redis.UniversalClient {
	tb.Helper()
	c := redis.NewClient(&redis.Options{Addr: "nowhere:1",
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("unreachable")
		}})
	tb.Cleanup(func() { _ = c.Close() })
	return []redis.UniversalClient{c}
}

// FuzzNames takes two names, as any user may choose them, and two prefixes.
// Each name is refused by all primitives, with ErrInvalid, or by none; and two
// that are let through share no key that any request is about, whatever prefix
// is used, save that the same name under another prefix is the same key to
// other Redlock clients. No name reaches the keys by which a node is looked
// after.
func FuzzNames(f *testing.F) {
	seeds := []string{
		"", "m", "invoices", "m:n", "m:r", "m:q", ":n", ":n:p", "quorate", "quorate:", "quorate:marker",
		"quorate:heal", "marker", ":heal", "a:b:marker",
		"{m}", "a}:n", "a{", "}", "quorate:{m}", "quorate:{m}:q", "m}:n:q{", "*", "m*", "a?[b]\\", "a b", "a\nb",
		"a\r\n+OK\r\n", "m\x00", "\x00",
		"Schloß", "Schlo\xdf", "\xff\xfe", "\u202em", strings.Repeat("x", 1024), strings.Repeat("x", 1025),
		strings.Repeat("ß", 512), strings.Repeat("{", 1<<16), "}" + strings.Repeat("\xdf", 1023),
	}
	for i, s := range seeds {
		f.Add(s, seeds[(i+1)%len(seeds)], byte(i))
		f.Add(s, "m", byte(i*7))
	}
	prefixes := []string{"quorate", "q", "q:q", "quorate:heal", "m", "*", "\x00", "a\\"}
	quorums := make([]*quorate.Quorum, len(prefixes))
	for i, p := range prefixes {
		q, err := quorate.New(nowhere(f), quorate.WithPrefix(p), quorate.WithLogger(nil))
		require.NoError(f, err)
		f.Cleanup(func() { _ = q.Close() })
		quorums[i] = q
	}
	f.Fuzz(func(t *testing.T, a, b string, which byte) {
		p, r := int(which)%len(prefixes), int(which)/len(prefixes)%len(prefixes)
		fit, other := usable(t, quorums[p], a), usable(t, quorums[r], b)
		if !fit || !other {
			return
		}
		mine, theirs := keysOf(t, prefixes[p], a), keysOf(t, prefixes[r], b)
		for k := range mine {
			require.False(t, theirs[k] && (a != b || p != r && k != a), "%q of %q, %q is shared with %q, %q",
				k, prefixes[p], a, prefixes[r], b)
			for _, prefix := range prefixes {
				require.False(t, strings.HasPrefix(k, prefix+":{}:"))
			}
		}
	})
}

// usable asks all primitives whether a name is, and wants them to agree. The
// context has ended, so that is all they do.
func usable(t *testing.T, q *quorate.Quorum, name string) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	work := func(context.Context) error { t.Error("called"); return nil }
	_, seen := leader.New(q, name).Leader(ctx)
	_, size := semaphore.NewWeighted(q, name, 2).Size(ctx)
	refused := 0
	all := []error{
		mutex.New(q, name).LockContext(ctx), mutex.New(q, name).TryLockContext(ctx),
		rwmutex.New(q, name).LockContext(ctx), rwmutex.New(q, name).RLockContext(ctx),
		semaphore.NewWeighted(q, name, 2).Acquire(ctx, 1), semaphore.NewWeighted(q, name, 2).Resize(ctx, 3), size,
		once.New(q, name).DoContext(ctx, work), leader.New(q, name).Campaign(ctx, ""), seen,
	}
	for _, err := range all {
		require.Error(t, err)
		require.Less(t, len(err.Error()), 8192, "a message and no dump")
		if errors.Is(err, quorate.ErrInvalid) {
			refused++
		} else {
			require.ErrorIs(t, err, context.Canceled)
		}
	}
	require.Contains(t, []int{0, len(all)}, refused, "%q: %v", name, all)
	return refused == 0
}

// keysOf returns the keys of a name that stand in the requests about it, save
// the marker, which must be in each. What is alongside the name has its own:
// the only one that requests of both name is the record of how many permits
// there are.
func keysOf(t *testing.T, prefix, name string) map[string]bool {
	t.Helper()
	keys, shared := map[string]bool{}, 0
	for _, k := range []script.Keys{script.NewKeys(prefix, name),
		script.NewKeysBeside(prefix, name, script.Number)} {
		own := requested(t, script.AppendInspect(nil, k, 1, 0), prefix)
		for op := protocol.OpJoin; op <= protocol.OpRepair; op++ {
			for _, counting := range []bool{false, true} {
				terms := protocol.Terms{Weight: 1, Capacity: 1, TTL: time.Second, Counting: counting}
				command := script.AppendCommand(nil, k, &terms, "owner", time.Second, time.Second,
					protocol.Request{Op: op, Stored: &protocol.Stored{}, Promise: &protocol.Version{}})
				maps.Copy(own, requested(t, command, prefix))
			}
		}
		for key := range own {
			if keys[key] {
				require.Equal(t, script.NewKeysBeside(prefix, name, script.Number).Record(), key)
				shared++
			}
		}
		maps.Copy(keys, own)
	}
	require.Equal(t, 1, shared)
	return keys
}

func requested(t *testing.T, command []byte, prefix string) map[string]bool {
	t.Helper()
	words, err := resp.NewReader(bytes.NewReader(command)).Read()
	require.NoError(t, err)
	n := int(words[2].Str[0] - '0')
	keys := map[string]bool{}
	for _, w := range words[3 : 3+n] {
		keys[string(w.Str)] = true
	}
	require.Len(t, keys, n, "each once: %q", keys)
	require.True(t, keys[script.Home("").Marker(prefix)])
	delete(keys, script.Home("").Marker(prefix))
	return keys
}

// FuzzOptions takes any settings. They are refused with ErrInvalid, or hold
// what the protocol rests on, in numbers that do not come round, and what a
// node then says of them is believed.
func FuzzOptions(f *testing.F) {
	s := int64(time.Second)
	f.Add(8*s, 20*s, 2*s, s/5, int64(0), int64(0), 300*s, "quorate")
	f.Add(s/100, s/50, int64(0), s/400, s, s, s, "a\tb\x00\xff")
	f.Add(86400*s, 720*3600*s, 86400*s, 6*3600*s, int64(1<<63-1), int64(1<<63-1), 87600*3600*s, "*")
	f.Add(8*s, 20*s, int64(1<<63-1), s/5, int64(0), int64(0), 300*s, "twice-the-skew-is-less-than-nothing")
	f.Add(8*s, 20*s, int64(1<<62), s/5, int64(0), int64(0), 300*s, "quorate")
	f.Add(8*s, int64(1<<63-1), 2*s, s/5, int64(0), int64(0), int64(1<<63-1), "quorate")
	f.Add(8*s, 20*s, 2*s, s/5, int64(0), int64(0), int64(1<<63-1), "with-the-ttl-less-than-nothing")
	f.Add(8*s, 2000*3600*s, 2*s, s/5, int64(0), int64(0), 3000*3600*s, "quorate")
	f.Add(int64(-1<<63), int64(-1<<63), int64(-1<<63), int64(-1<<63), int64(-1<<63),
		int64(-1<<63), int64(-1<<63), "")
	f.Add(8*s+1, 20*s, 2*s, s/5, -s, -s, s, "a{b")
	f.Add(8*s, 20*s+1, 2*s, s/5, int64(0), int64(0), 300*s, "quorate")
	node := nowhere(f)
	f.Fuzz(func(t *testing.T, ttl, guard, skew, timeout, most, linger, retention int64, prefix string) {
		d := func(n int64) time.Duration { return time.Duration(n) }
		opts := []quorate.Option{
			quorate.WithTTL(d(ttl)), quorate.WithGuard(d(guard)), quorate.WithSkew(d(skew)),
			quorate.WithNodeTimeout(d(timeout)),
			quorate.WithMaxHold(d(most)), quorate.WithLinger(d(linger)),
			quorate.WithRetention(d(retention)), quorate.WithPrefix(prefix),
			quorate.WithLogger(nil), quorate.WithObserver(nil),
		}
		q, err := quorate.New(node, opts...)
		if err != nil {
			require.ErrorIs(t, err, quorate.ErrInvalid)
			return
		}
		defer func() { require.NoError(t, q.Close()) }()
		least := new(big.Int).Mul(big.NewInt(2), new(big.Int).Add(big.NewInt(ttl), big.NewInt(skew)))
		require.LessOrEqual(t, least.Cmp(big.NewInt(guard)), 0, "guard >= 2 ttl + 2 skew")
		require.True(t,
			ttl > 0 && skew >= 0 && timeout > 0 && timeout <= ttl/4 && retention >= guard && most >= 0 && linger >= 0)
		require.Zero(t, d(guard)%time.Millisecond+d(skew)%time.Millisecond+d(retention)%time.Millisecond,
			"the set keeps what is asked for")
		require.Positive(t, d(ttl)+d(retention), "how long a queue is kept")
		_, err = script.Decode([]resp.Value{{Int: int64(protocol.Recovering)}, {Int: 1},
			{Int: d(guard).Milliseconds()}})
		require.NoError(t, err, "a node that is new")
		set := core.Override(core.CoreOf(q), "a primitive", opts[:1])
		require.Less(t, lease.Drift(set.TTL), set.TTL)
		for range requested(t, script.AppendMark(nil, script.Home("").Marker(prefix), protocol.ID{}, "run", ""),
			prefix) {
			t.Error("a marker has one key")
		}
		require.NotPanics(t, func() { mutex.New(q, "m", quorate.WithLinger(0), quorate.WithoutRenewal()) })
	})
}
