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
	"github.com/quorate/quorate/once"
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

// lacking is what is said where it is not the server's own words.
var lacking = map[string]string{
	"+info": "this user may not run INFO",
	// No waiter learns that it is its turn.
	"+subscribe": "held by another client", "+publish": "held by another client", "&NAME:push:*": "held by another client",
	"+scan": "has not been repaired", // a server that lost its data
	"+hdel": "is damaged",            // half of a leave has been done
}

// hasChannels reports whether a server has rights to channels: those before
// Redis 6.2 have none.
func hasChannels(t *testing.T, s *redistest.Server) bool {
	t.Helper()
	version := s.Client().InfoMap(t.Context(), "server").Item("Server", "redis_version")
	require.NotEmpty(t, version)
	return !strings.HasPrefix(version, "6.0.") && !strings.HasPrefix(version, "6.1.")
}

// without returns the rights but for some.
func without(rights []string, lacks ...string) []string {
	return slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return slices.Contains(lacks, r) })
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
		urls = append(urls, (&url.URL{Scheme: "redis", User: url.UserPassword(u.name, password), Host: s.Addr()}).String())
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
	assert.ErrorContains(t, newTenant(t, c, "neither", without(needed, "+script|load", "+script|exists")).serves(deadline(t)), "NOPERM")
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
				assert.True(t, slices.ContainsFunc(says, func(s string) bool { return strings.Contains(err.Error(), s) }), "without %s: %v", right, err)
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
	assert.True(t, e2e.Eventually(func() bool { return len(log.Lines("cannot subscribe to a node's pushes")) > 0 }), log.Lines(""))
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

	assert.Contains(t, string(text), "Redis 6.0 has no channel permissions: leave out `resetchannels` and `&quorate:push:*`.")
}

// A managed server may refuse CONFIG and CLIENT. Everything works without them.
// Check does not claim what it cannot know, and what must be on a disk is
// refused.
func TestFewerRights(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3, redistest.WithAOF("everysec"))
	fewerRights(t, c)
}

func fewerRights(t *testing.T, c *redistest.Cluster) {
	steps := slices.DeleteFunc(slices.Clone(everything), func(s step) bool { return s.what == "check" || s.what == "once" || s.what == "heal" })
	for name, lacks := range map[string][]string{
		"none": useful, "all": nil,
	} {
		u := newTenant(t, c, name, without(slices.Concat(needed, useful), lacks...))
		q, err := quorate.Connect(deadline(t), u.urls("secret"), u.options()...)
		require.NoError(t, err, name)
		config := !slices.Contains(lacks, "+config|get")
		assert.NoError(t, u.run(deadline(t), q, steps), name)
		err = once.New(q, u.job("durable"), once.WithDurable()).DoContext(deadline(t), func(context.Context) error { return nil })
		assert.NoError(t, err, name)
		assert.NoError(t, u.onceWith(deadline(t), q), name)
		assert.NoError(t, u.reconnect(deadline(t), q), name)

		r, err := q.Check(deadline(t))
		assert.NoError(t, err, name)
		for _, n := range r.Nodes {
			assert.NoError(t, n.Err, name)
			assert.True(t, n.Version != "" && n.Role != "" && n.Eviction != "" && n.AOF, name)
			assert.Equal(t, config, n.Fsync == "everysec", name)
		}
		assert.NoError(t, q.Close(), name)
	}
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
		"CONFIG GET requirepass", "CONFIG SET maxmemory 1", "ACL LIST", "CLIENT LIST", "CLIENT KILL TYPE normal", "CLIENT NO-EVICT on",
		"GET other:marker", "SET other:marker 1", "GETRANGE app:b:{}:set 0 1", "DEL app:b:{}:set", "PUBLISH other:push 1", "KEYS *", "MONITOR", "SHUTDOWN NOSAVE", "FLUSHALL", "REPLICAOF NO ONE", "FUNCTION LIST", "SELECT 1",
	} {
		var words []any
		for _, w := range strings.Fields(command) {
			words = append(words, w)
		}
		assert.ErrorContains(t, client.Do(t.Context(), words...).Err(), "NOPERM", command)
	}
}

// A right that is lacking inside a script is permanent as well: no lock waits
// for it. Bootstrap of a set that is recorded changes nothing, and needs none.
func TestRightLackingInAScript(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	u := newTenant(t, c, "app", needed)
	q := e2e.OpenAt(t, u.urls("secret"), u.options()...)
	require.NoError(t, q.Bootstrap(deadline(t)))
	for i := range c.Len() {
		require.NoError(t, c.Node(i).Client().Do(t.Context(), "ACL", "SETUSER", "app", "-set").Err())
	}
	m := mutex.New(q, u.job("m"))
	for _, err := range []error{m.LockContext(deadline(t)), m.TryLockContext(deadline(t))} {
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		assert.True(t, slices.ContainsFunc(refused, func(s string) bool { return strings.Contains(err.Error(), s) }), "%v", err)
	}
}

// A node whose user lacks a right that only a release needs is not ready. Without
// that each released name stays taken for a lease, and nothing says why.
func TestRightLackingForARelease(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 3)
	q := e2e.Open(t, c, e2e.Timing(2*time.Second))
	right := func(rule string) {
		for i := range c.Len() {
			require.NoError(t, c.Node(i).Client().Do(t.Context(), "ACL", "SETUSER", "default", rule).Err())
		}
	}
	right("-setrange")
	r, err := q.Check(deadline(t))
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.Zero(t, r.Ready)
	require.ErrorContains(t, r.Nodes[0].Refuses, "refuses new locks: cannot release one: ")
	require.ErrorContains(t, r.Nodes[0].Refuses, "grant its user the rights in docs/reference/security.md")
	m := mutex.New(q, "m")
	require.NoError(t, m.LockContext(deadline(t)))
	require.ErrorContains(t, m.UnlockContext(deadline(t)), "grant its user the rights in docs/reference/security.md")
	right("+setrange")
	require.True(t, e2e.Eventually(func() bool {
		r, err := q.Check(t.Context())
		return err == nil && r.Ready == 3
	}))
}

// Bootstrap of brand-new nodes names the right that is lacking, and waits for
// nothing.
func TestBootstrapWithoutARight(t *testing.T) {
	t.Parallel()
	for i, right := range []string{"~NAME:{*", "+evalsha", "+time", "+getrange", "+exists", "+set", "+del"} {
		c := redistest.Start(t, 1)
		u := newTenant(t, c, fmt.Sprint("tenant", i), without(needed, right))
		q := e2e.OpenAt(t, u.urls("secret"), u.options()...)
		err := q.Bootstrap(deadline(t))
		if right == "+del" && err == nil { // it is needed later on
			continue
		}
		require.ErrorIs(t, err, quorate.ErrNoQuorum, right)
		require.NotErrorIs(t, err, context.DeadlineExceeded, right)
		assert.ErrorContains(t, err, c.Node(0).Addr(), right)
		assert.True(t, slices.ContainsFunc(refused, func(s string) bool { return strings.Contains(err.Error(), s) }), "without %s: %v", right, err)
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
