package transport_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// streaming is a provider of credentials that counts its subscriptions.
type streaming struct {
	user, password string
	noisy          bool
	err            error
	listeners      atomic.Int32
}

func (s *streaming) Subscribe(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	if s.err != nil {
		return nil, nil, s.err
	}
	s.listeners.Add(1)
	if s.noisy {
		l.OnNext(auth.NewBasicCredentials("other", "other"))
		l.OnError(errors.New("of the provider"))
	}
	return auth.NewBasicCredentials(s.user, s.password), func() error { s.listeners.Add(-1); return nil }, nil
}

// Each way in which go-redis authenticates works, for commands and for pushes.
func TestLogin(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, 1, redistest.WithPassword("secret")).Node(0)
	require.NoError(t, locked.Client().Do(t.Context(), "ACL", "SETUSER", "app", "on", ">apps", "allkeys",
		"allchannels", "+@all").Err())
	require.NoError(t, locked.Client().Do(t.Context(), "ACL", "SETUSER", "nameless", "on", ">apps", "allkeys",
		"allchannels", "+@all", "-client|setname").Err())
	opened := redistest.Start(t, 1).Node(0)
	stream := &streaming{user: "app", password: "apps"}
	noisy := &streaming{user: "app", password: "apps", noisy: true}
	for name, c := range map[string]struct {
		set  func(o *redis.Options)
		open bool   // the server asks for no password
		want string // the user, or the error
	}{
		"password": {set: func(o *redis.Options) { o.Password = "secret" }, want: "default"},
		"user and password": {set: func(o *redis.Options) { o.Username, o.Password = "app", "apps" },
			want: "app"},
		"none":        {set: func(*redis.Options) {}, want: "NOAUTH"},
		"wrong":       {set: func(o *redis.Options) { o.Password = "wrong" }, want: "WRONGPASS"},
		"none needed": {set: func(*redis.Options) {}, open: true, want: "default"},
		"one that is not needed": {set: func(o *redis.Options) { o.Password = "x" }, open: true,
			want: "default"},
		"a user that is not needed": {set: func(o *redis.Options) { o.Username, o.Password = "default", "x" },
			open: true, want: "default"},
		"no name": {set: func(o *redis.Options) {
			o.Username, o.Password, o.ClientName = "app", "apps", ""
		}, want: "app"},
		"one that may set no name": {set: func(o *redis.Options) { o.Username, o.Password = "nameless", "apps" },
			want: "nameless"},
		"provider": {set: func(o *redis.Options) {
			o.CredentialsProvider = func() (string, string) { return "app", "apps" }
		}, want: "app"},
		"streaming": {set: func(o *redis.Options) {
			o.StreamingCredentialsProvider, o.Password = noisy, "wrong"
		}, want: "app"},
		"streaming that fails": {set: func(o *redis.Options) {
			o.StreamingCredentialsProvider = &streaming{err: errors.New("no token")}
		}, want: "no token"},
		"database out of range": {set: func(o *redis.Options) { o.Password, o.DB = "secret", 99 },
			want: "ERR DB index is out of range"},
		"a name that cannot be": {set: func(o *redis.Options) { o.Password, o.ClientName = "secret", "a b" },
			want: "ERR Client names cannot contain"},
		"provider, one with context": {set: func(o *redis.Options) {
			o.CredentialsProvider = func() (string, string) { return "", "wrong" }
			o.CredentialsProviderContext = func(ctx context.Context) (string, string, error) {
				_, bounded := ctx.Deadline()
				assert.True(t, bounded)
				return "app", "apps", nil
			}
		}, want: "app"},
	} {
		t.Run(name, func(t *testing.T) {
			node := locked
			if c.open {
				node = opened
			}
			o := &redis.Options{Addr: node.Addr(), DB: 2, ClientName: "tester"}
			c.set(o)
			client := redis.NewClient(o)
			defer client.Close()
			var log events
			cfg := log.config(transport.Config{Channel: "ch"})
			received := make(chan error, 100)
			cfg.PushDown = func(err error) { received <- err }
			cfg.Subscribed = func() { received <- nil }
			l := open(t, client, cfg)
			err := l.State(time.Now()).Err
			if c.want != "app" && c.want != "default" && c.want != "nameless" {
				assert.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			assert.NoError(t, <-received)
			me, err := do(t, l, "ACL", "WHOAMI")
			assert.NoError(t, err)
			assert.Equal(t, c.want, me)
			list, err := do(t, l, "CLIENT", "INFO")
			assert.NoError(t, err)
			assert.Contains(t, list, fmt.Sprintf(" db=%d ", o.DB))
			name := cmp.Or(o.ClientName, "quorate")
			if c.want == "nameless" {
				name = ""
			}
			assert.Contains(t, list, fmt.Sprintf("name=%s ", name))
			assert.Contains(t, list, " resp=3")
			shut(l)
			assert.Zero(t, stream.listeners.Load()+noisy.listeners.Load())
		})
	}
}
