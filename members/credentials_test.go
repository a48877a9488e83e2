package members_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/members"
	"github.com/quorate/quorate/mutex"
)

// A Sentinel set takes the place of a server. A client follows whose list has
// the server alone, and whose user and password come from a provider.
func TestASentinelSetGetsProvidedCredentials(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]redis.Options{
		"provider": {CredentialsProvider: func() (string, string) { return "", "secret" }},
		"provider with a context": {CredentialsProviderContext: func(context.Context) (string, string, error) {
			return "", "secret", nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := redistest.Start(t, 1, redistest.WithPassword("secret"))
			second := redistest.Start(t, 1, redistest.WithPassword("secret"))
			s := redistest.StartGuarded(t, second, "mymaster",
				redistest.Guard{Lines: []string{"sentinel auth-pass NAME secret"}})
			ctx, timing := bounded(t), e2e.Timing(2*time.Second) // the Sentinels of a busy machine take a second
			op := operator(t, first.URLs(), timing)
			o.Addr = first.Addrs()[0]
			client := redis.NewClient(&o)
			defer client.Close()
			q, err := quorate.New([]redis.UniversalClient{client}, timing, quorate.WithLogger(nil))
			require.NoError(t, err)
			defer q.Close()
			m := mutex.New(q, "m")
			require.NoError(t, m.LockContext(ctx))
			m.Unlock()

			require.NoError(t, members.Replace(ctx, op, first.Addrs()[0], s.URL()+"&password=secret"))
			soon, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			require.NoError(t, m.LockContext(soon), "it reaches the Sentinel set")
			m.Unlock()

			// It leaves by the address that the set has of it, which is no URL.
			require.NoError(t, members.Replace(ctx, op, addrs(get(t, op))[0], first.URLs()[0]))
			assert.Equal(t, first.Addrs(), addrs(get(t, op)))
		})
	}
}

// What a call says of a node is forgotten when the call fails: a wrong
// password, or none. The next call of the process is carried out with the right
// one, and the password of the list does for a node that another process adds.
func TestAWrongPasswordIsForgotten(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(url string) string{
		"wrong": func(url string) string { return strings.Replace(url, "secret", "typo", 1) },
		"none":  func(url string) string { return strings.Replace(url, ":secret@", "", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := redistest.Start(t, 3, redistest.WithPassword("secret"))
			ctx, timing := bounded(t), e2e.Timing(500*time.Millisecond)
			q := operator(t, c.URLs()[:1], timing)
			for i := range 3 {
				require.NotEqual(t, c.URLs()[i], url(c.URLs()[i]))
			}
			for _, to := range []int{1, 2} {
				require.ErrorIs(t, members.Replace(ctx, q, c.Addrs()[0], url(c.URLs()[to])), quorate.ErrInvalid)
				require.ErrorIs(t, members.Move(ctx, q, c.Addrs()[0], url(c.URLs()[to])), quorate.ErrInvalid)
			}
			// On a busy machine a server may answer too late to be looked at.
			// Nothing has been changed then.
			replace := func(q *quorate.Quorum, from, to string) {
				var err error
				e2e.Eventually(func() bool {
					err = members.Replace(ctx, q, from, to)
					return !errors.Is(err, quorate.ErrInvalid) || !errors.Is(err, context.DeadlineExceeded)
				})
				require.NoError(t, err, "with the right password")
			}
			replace(q, c.Addrs()[0], c.URLs()[1])

			other := e2e.OpenAt(t, c.URLs()[1:2], timing)
			replace(other, c.Addrs()[1], c.URLs()[2])
			require.True(t, e2e.Eventually(func() bool { return slices.Equal(addrs(get(t, q)), c.Addrs()[2:]) }),
				"it follows")
			m := mutex.New(q, "m")
			soon, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			require.NoError(t, m.LockContext(soon), "it reaches the new node")
			m.Unlock()
		})
	}
}
