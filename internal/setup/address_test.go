package setup

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/transport"
)

func options(c redis.UniversalClient) *redis.Options {
	single, _ := Single(c)
	return single.Options()
}

// The URL of a Sentinel set is one node alongside others. What is wrong with it
// is said without a word of it.
func TestURLsOfSentinelSets(t *testing.T) {
	t.Parallel()
	nodes, err := ParseNodes([]string{"redis://:pw@a:26379/2?master_name=m&addr=b:26379&username=u&password=secret&dial_timeout=3, c:6379"})
	require.NoError(t, err)
	require.Len(t, nodes, 2)
	set := nodes[0]
	assert.Equal(t, "sentinel:m@a:26379,b:26379", set.Addr)
	assert.Equal(t, 3*time.Second, set.DialTimeout)
	assert.Equal(t, []string{"a:26379", "b:26379"}, set.failover.SentinelAddrs)
	set.DialTimeout = time.Second
	client := set.Client()
	defer client.Close()
	o := options(client)
	assert.Equal(t, "u secret", o.Username+" "+o.Password)
	assert.Equal(t, 2, o.DB)
	assert.Equal(t, time.Second, o.DialTimeout)
	own := Defaults()
	assert.Equal(t, set.Addr, own.NameOf(client, 2))
	server := nodes[1].Client()
	defer server.Close()
	assert.Equal(t, "c:6379", own.NameOf(server, 1))

	for url, want := range map[string]string{
		"redis://:secret@a?master_name=":                       "set master_name",
		"redis://:secret@a?master_name=m&replica_only=true":    "remove replica_only",
		"redis://:secret@a?master_name=m&addr=secret":          "ParseFailoverURL",
		"redis://:secret@a/secret?master_name=m":               "ParseFailoverURL",
		"unix://secret/x?master_name=m":                        "ParseFailoverURL",
		"redis://:secret@a?master_name=m&addr=b:1&secret=true": "ParseFailoverURL",
	} {
		_, err := ParseNodes([]string{url})
		require.ErrorIs(t, err, fault.ErrInvalid, url)
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "secret", url)
	}
}

// A cluster and servers alongside it.
func TestNamesOfClusters(t *testing.T) {
	t.Parallel()
	nodes, err := ParseNodes([]string{"redis+cluster://u:secret@a?addr=b:1&dial_timeout=3s, " +
		"rediss+cluster://c:7"})
	require.NoError(t, err)
	require.Len(t, nodes, 2)
	client := nodes[0].Client().(*redis.ClusterClient)
	defer client.Close()
	assert.Equal(t, []string{"a:6379", "b:1"}, client.Options().Addrs)
	assert.Equal(t, "u secret", client.Options().Username+" "+client.Options().Password)
	assert.Equal(t, "cluster:a:6379,b:1", nodes[0].Name())
	assert.NotNil(t, nodes[1].cluster.TLSConfig)
	for url, want := range map[string]string{
		"redis+cluster://:secret@a/3":        "a cluster has no databases",
		"redis+cluster://:secret@a?secret=1": "ParseClusterURL",
		"redis+cluster://:se/cret@a":         "%2F for /",
		"redis+cluster://:secret@a:port":     "must look like",
	} {
		_, err := ParseNodes([]string{url})
		require.ErrorIs(t, err, fault.ErrInvalid, url)
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "secret", url)
	}
}

// The name in the certificate of the first node of a list is its own: neither a
// server that enters is asked for it, nor a Sentinel set. Of a Sentinel set it
// is the host of a Sentinel. A name that is no host of the node is that of all.
func TestNameInACertificate(t *testing.T) {
	t.Parallel()
	at := func(url, name, addr string) string {
		list, err := ParseNodes([]string{url})
		require.NoError(t, err)
		first := list[0].Client()
		defer first.Close()
		if name != "" {
			options(first).TLSConfig.ServerName = name
		}
		c, own, err := NewClients([]redis.UniversalClient{first},
			&Settings{Names: []string{list[0].Name()}}).ClientFor(addr)
		require.NoError(t, err)
		require.True(t, own)
		defer c.Close()
		return options(c).TLSConfig.ServerName
	}
	const server, set = "rediss://:secret@lock-a:6379", "rediss://s1:26379?master_name=m&addr=s2:26379"
	const other = "sentinel:m@s3:26379,s4:26379"
	assert.Equal(t, "lock-b", at(server, "", "lock-b:6379"))
	assert.Empty(t, at(server, "", other), "the hosts of its Sentinels are its names")
	assert.Equal(t, "lock-b", at(set, "", "lock-b:6379"))
	assert.Empty(t, at(set, "", other))
	for _, first := range []string{server, set} {
		assert.Equal(t, "locks", at(first, "locks", "lock-b:6379"))
		assert.Equal(t, "locks", at(first, "locks", other))
	}
}

// A Sentinel set that enters is connected to as the first node of the list is.
func TestOptionsOfASentinelSet(t *testing.T) {
	t.Parallel()
	first := redis.NewClient(&redis.Options{
		Addr: "lock-a:6379", ClientName: "locks", Protocol: 2, DB: 3, Username: "u", Password: "secret",
		CredentialsProvider:        func() (string, string) { return "u", "provided" },
		CredentialsProviderContext: func(context.Context) (string, string, error) { return "u", "asked for", nil },
	})
	defer first.Close()
	c, _, err := NewClients([]redis.UniversalClient{first}, &Settings{}).ClientFor("sentinel:m@s3:26379")
	require.NoError(t, err)
	defer c.Close()
	o := options(c)
	assert.Equal(t, "sentinel:m@s3:26379", o.Addr)
	require.Equal(t, []any{"locks", 2, 3, "u", "secret"},
		[]any{o.ClientName, o.Protocol, o.DB, o.Username, o.Password})
	_, password := o.CredentialsProvider()
	assert.Equal(t, "provided", password)
	_, password, err = o.CredentialsProviderContext(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "asked for", password)
}

// Its Sentinels get the login of the Sentinels of the list.
func TestLoginOfASentinelSet(t *testing.T) {
	t.Parallel()
	first := transport.NewSentinelClient(&redis.FailoverOptions{
		MasterName: "m", SentinelAddrs: []string{"s1:26379"}, SentinelUsername: "watch", SentinelPassword: "secret",
	})
	defer first.Close()
	c, _, err := NewClients([]redis.UniversalClient{first}, &Settings{}).ClientFor("sentinel:m@s3:26379")
	require.NoError(t, err)
	defer c.Close()
	user, password := c.(*transport.SentinelClient).Login()
	assert.Equal(t, []string{"watch", "secret"}, []string{user, password})
}

// Its Sentinels and servers are dialled as the first node of the list is, by a
// proxy, say.
func TestDialerOfASentinelSet(t *testing.T) {
	t.Parallel()
	var dialled atomic.Value
	first := redis.NewClient(&redis.Options{Addr: "lock-a:6379",
		Dialer: func(_ context.Context, _, addr string) (net.Conn, error) {
			dialled.Store(addr)
			return nil, net.ErrClosed
		}})
	defer first.Close()
	c, _, err := NewClients([]redis.UniversalClient{first}, &Settings{}).ClientFor("sentinel:m@localhost:1")
	require.NoError(t, err)
	defer c.Close()
	o := options(c)
	_, err = o.Dialer(t.Context(), "tcp", o.Addr)
	require.Error(t, err)
	assert.Equal(t, "localhost:1", dialled.Load())
}

// All nodes are used with the database number of the list, and an address with
// another number is refused.
func TestOneDatabaseNumber(t *testing.T) {
	t.Parallel()
	all, err := ParseNodes([]string{"redis://s1:26379/3?master_name=m,redis://a:6379/3,b:6379/3,unix:///c?db=3"})
	require.NoError(t, err)
	var clients []redis.UniversalClient
	for _, a := range all {
		clients = append(clients, a.Client())
		defer clients[len(clients)-1].Close()
	}
	set := Defaults()
	require.NoError(t, set.CheckDatabases(clients))
	other := redis.NewClient(&redis.Options{Addr: "d:6379"})
	defer other.Close()
	require.ErrorIs(t, set.CheckDatabases(append(slices.Clone(clients), other)), fault.ErrInvalid)

	for _, c := range clients {
		s := NewClients([]redis.UniversalClient{c}, &set)
		for _, addr := range []string{"e:6379", "/e", "sentinel:m@s3:26379"} {
			dialled, _, err := s.ClientFor(addr)
			require.NoError(t, err)
			assert.Equal(t, 3, options(dialled).DB)
			require.NoError(t, dialled.Close())
		}
		for given, ok := range map[string]bool{
			"e:6379": true, "e:6379/3": true, "e:6379/1": false, "redis://e:6379/3": true, "redis://e:6379": false,
			"redis://s3?master_name=m&db=3": true, "redis://s3?master_name=m": false,
		} {
			a, err := ParseNodes([]string{given})
			require.NoError(t, err)
			assert.Equal(t, ok, s.CheckDatabase(a[0]) == nil, given)
		}
	}
}

// How an address is connected to is what the latest call says, as long as that
// call is of use. The addresses of the list are no call's.
func TestOffers(t *testing.T) {
	t.Parallel()
	parse := func(url string) Address {
		all, err := ParseNodes([]string{url})
		require.NoError(t, err)
		return all[0]
	}
	first := parse("redis://:list@a:6379").Client()
	defer first.Close()
	clients := NewClients([]redis.UniversalClient{first}, &Settings{})
	password := func(addr string) string {
		c, own, err := clients.ClientFor(addr)
		require.NoError(t, err)
		if own {
			defer c.Close()
		}
		assert.Equal(t, addr != "a:6379", own)
		return options(c).Password
	}
	const b = "b:6379"
	failed := clients.Offer(parse("redis://:failed@b:6379"))
	assert.Equal(t, "failed", password(b))
	done := clients.Offer(parse("redis://:done@b:6379"))
	assert.Equal(t, "done", password(b))
	failed(false)
	assert.Equal(t, "done", password(b))
	done(true)

	failed = clients.Offer(parse("redis://b:6379"))
	assert.Empty(t, password(b), "a URL without a password")
	failed(false)
	assert.Equal(t, "done", password(b))

	failed = clients.Offer(parse("redis://:failed@b:6379"))
	done = clients.Offer(parse(b))
	assert.Equal(t, "list", password(b), "no URL")
	done(true)
	failed(true)
	failed(false)
	assert.Equal(t, "list", password(b), "the later one has taken the place")

	clients.Offer(parse("redis://:other@a:6379"))(true)
	assert.Equal(t, "list", password("a:6379"))
}
