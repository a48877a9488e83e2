package e2e_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// needed are the rights that a client must have, as docs/reference/security.md gives
// them; NAME is the tenant's.
var needed = strings.Fields(`
	~NAME:{* ~NAME-job:* &NAME:push:*
	+ping +evalsha +script|exists +script|load +subscribe +publish +time +scan +info
	+getrange +exists +set +setrange +del +type +pttl +pexpire
	+hget +hset +hmget +hlen +hdel
	+zadd +zrem +zcard +zrank +zrange +zrangebyscore`)

// naming gives each connection a name in CLIENT LIST. Nothing fails without it.
const naming = "+client|setname"

// useful are those without which nothing fails: by them a client knows what is
// on the server's disk.
var useful = strings.Fields(`+config|get`)

// refused is what a server says to a user that lacks a right: in the words of
// Redis 7.0, in those of later ones, or in those of both for what is not done
// by a script.
var refused = []string{"The user executing the script can't", "ACL failure in script", "NOPERM"}

// hasChannels reports whether a server has rights to channels: those before
// Redis 6.2 have none.
func hasChannels(t *testing.T, s *redistest.Server) bool {
	t.Helper()
	version := s.Client().InfoMap(t.Context(), "server").Item("Server", "redis_version")
	require.NotEmpty(t, version)
	return !strings.HasPrefix(version, "6.0.") && !strings.HasPrefix(version, "6.1.")
}

// newTenant makes the user.
func newTenant(t *testing.T, c *redistest.Cluster, name string, rights []string) *tenant {
	t.Helper()
	u := &tenant{name: name}
	rules := []any{"ACL", "SETUSER", name, "on", ">secret", "resetkeys", "resetchannels", "-@all"}
	if !hasChannels(t, c.Node(0)) {
		rules = slices.DeleteFunc(rules, func(r any) bool { return r == "resetchannels" })
		rights = slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return strings.HasPrefix(r, "&") })
	}
	for _, r := range rights {
		rules = append(rules, strings.ReplaceAll(r, "NAME", name))
	}
	for i := range c.Len() {
		u.servers = append(u.servers, c.Node(i))
		require.NoError(t, c.Node(i).Client().Do(t.Context(), rules...).Err())
	}
	return u
}

// urls are the servers' for a user with that password.
func (u *tenant) urls(password string) []string {
	var urls []string
	for _, s := range u.servers {
		urls = append(urls,
			(&url.URL{Scheme: "redis", User: url.UserPassword(u.name, password), Host: s.Addr()}).String())
	}
	return urls
}

// serves connects as the tenant and does all there is.
func (u *tenant) serves(ctx context.Context) error {
	q, err := quorate.Connect(ctx, u.urls("secret"), u.options()...)
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	return u.works(ctx, q)
}

// A client needs the rights that docs/reference/security.md gives it, and each of them:
// with all of them everything works, and without any one of them something
// fails.
func TestRights(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3, redistest.WithAOF("everysec"))
	require.NoError(t, newTenant(t, c, "all", append([]string{naming}, needed...)).serves(deadline(t)))
	require.NoError(t, newTenant(t, c, "unnamed", needed).serves(deadline(t)))
	// Of the rights to find out which scripts a server lacks and to load them
	// one is enough where they are there already.
	require.NoError(t, newTenant(t, c, "reader", without(needed, "+script|load")).serves(deadline(t)))
	require.NoError(t, newTenant(t, c, "loader", without(needed, "+script|exists")).serves(deadline(t)))
	assert.ErrorContains(t, newTenant(t, c, "neither",
		without(needed, "+script|load", "+script|exists")).serves(deadline(t)), "NOPERM")
	first := newTenant(t, redistest.Start(t, 1), "first", without(needed, "+script|load"))
	assert.ErrorContains(t, first.serves(deadline(t)), "NOPERM", "where they are not")

	atOnce := make(chan struct{}, 4)
	var wg sync.WaitGroup
	defer wg.Wait()
	for i, right := range needed {
		if strings.HasPrefix(right, "+script") {
			continue
		}
		atOnce <- struct{}{}
		u := newTenant(t, c, fmt.Sprint("tenant", i), slices.Concat(needed[:i], needed[i+1:]))
		wg.Go(func() {
			defer func() { <-atOnce }()
			// Some wait for what does not come. Less patience only ends that
			// sooner.
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			err := u.serves(ctx)
			says := refused
			if text, special := lacking[right]; special {
				says = []string{text}
			}
			if assert.Error(t, err, "without %s all is well", right) {
				assert.True(t, slices.ContainsFunc(says, func(s string) bool { return strings.Contains(err.Error(), s) }),
					"without %s: %v", right, err)
			}
		})
	}
}

// A client that cannot get pushes writes that to its log, as nothing else
// fails.
func TestWithoutSubscribe(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1)
	u := newTenant(t, c, "deaf", without(needed, "+subscribe"))
	var log e2e.Log
	q, err := quorate.Connect(deadline(t), u.urls("secret"), append(u.options(), log.Option())...)
	require.NoError(t, err)
	require.NoError(t, q.Bootstrap(deadline(t)))
	assert.True(t, e2e.Eventually(func() bool {
		return len(log.Lines("cannot subscribe to a node's pushes")) > 0
	}), log.Lines(""))
	require.NoError(t, q.Close())
}

// Commands of the scripts that no user has a right for would be found out by
// TestRights, but only where it gets to them.
func TestRightsForScripts(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`call\('(\w+)'|try\('(\w+)'`)
	used := map[string]bool{}
	for _, s := range script.All() {
		for _, m := range command.FindAllStringSubmatch(s.Source, -1) {
			used["+"+strings.ToLower(m[1]+m[2])] = true
		}
	}
	assert.Greater(t, len(used), 15)
	for c := range used {
		assert.Contains(t, needed, c)
	}
}

// What docs/reference/security.md says is what is tested.
func TestRightsAsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/security.md")
	require.NoError(t, err)
	_, line, found := strings.Cut(string(text), "ACL SETUSER app on >password resetkeys resetchannels -@all ")
	require.True(t, found)
	line, _, _ = strings.Cut(line, "\n")
	want := strings.NewReplacer("~NAME-job:", "~job:", "NAME", "quorate").Replace(strings.Join(needed, " "))
	assert.ElementsMatch(t, append(strings.Fields(want), naming), strings.Fields(line))

	assert.Contains(t, string(text),
		"Redis 6.0 has no channel permissions: leave out `resetchannels` and `&quorate:push:*`.")
}

// The rights show a tenant nothing of the server's settings, nor of another
// tenant's data, be its prefix a longer one, and end no connection of others.
func TestRightsReachNoFurther(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1, redistest.WithPassword("server's"))
	u := newTenant(t, c, "app", needed)
	o, err := redis.ParseURL(u.urls("secret")[0])
	require.NoError(t, err)
	client := redis.NewClient(o)
	defer func() { _ = client.Close() }()
	for _, command := range []string{
		"CONFIG GET requirepass", "CONFIG SET maxmemory 1", "ACL LIST", "CLIENT LIST",
		"CLIENT KILL TYPE normal", "CLIENT NO-EVICT on",
		"GET other:marker", "SET other:marker 1", "GETRANGE app:b:{}:set 0 1", "DEL app:b:{}:set",
		"PUBLISH other:push 1", "KEYS *", "MONITOR", "SHUTDOWN NOSAVE", "FLUSHALL",
		"REPLICAOF NO ONE", "FUNCTION LIST", "SELECT 1",
	} {
		var words []any
		for _, w := range strings.Fields(command) {
			words = append(words, w)
		}
		assert.ErrorContains(t, client.Do(t.Context(), words...).Err(), "NOPERM", command)
	}
}

// Nodes that refuse to show what they have recorded are not taken for
// brand-new ones: no text advises Bootstrap, and the error names the right.
// Data of another program at the key of the set are no brand-new node either.
func TestSetThatCannotBeRead(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	u := newTenant(t, c, "app", needed)
	q := e2e.OpenAt(t, u.urls("secret"), u.options()...)
	require.NoError(t, q.Bootstrap(deadline(t)))
	fails := func(because string) {
		t.Helper()
		log := &e2e.Log{}
		_, err := quorate.Connect(deadline(t), u.urls("secret"), append(u.options(), log.Option())...)
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, because)
		assert.NotContains(t, err.Error(), "bootstrap")
		assert.Empty(t, log.Lines("brand-new"))
	}
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().Do(t.Context(), "ACL", "SETUSER", "app", "-getrange").Err())
	}
	fails("NOPERM")
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().Do(t.Context(), "ACL", "SETUSER", "app", "+getrange").Err())
		require.NoError(t, c.Node(i).Client().Del(t.Context(), script.SetKey("app")).Err())
		require.NoError(t, c.Node(i).Client().HSet(t.Context(), script.SetKey("app"), "a", "b").Err())
	}
	fails("WRONGTYPE")
}

// A user's wrong password, and a user that is switched off, are reported at
// once.
func TestWrongUser(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	u := newTenant(t, c, "app", needed)
	refuses := func(urls []string) {
		t.Helper()
		_, err := quorate.Connect(deadline(t), urls, u.options()...)
		q := e2e.OpenAt(t, urls, u.options()...)
		_, cerr := q.Check(deadline(t))
		for _, err := range []error{err, cerr, mutex.New(q, u.job("m")).LockContext(deadline(t))} {
			require.ErrorIs(t, err, quorate.ErrNoQuorum)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			assert.ErrorContains(t, err, "WRONGPASS")
		}
	}
	refuses(u.urls("wrong"))
	refuses((&tenant{name: "unknown", servers: u.servers}).urls("secret"))
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().Do(t.Context(), "ACL", "SETUSER", "app", "off").Err())
	}
	refuses(u.urls("secret"))
}
