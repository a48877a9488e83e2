package setup

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/transport"
)

// This file owns what a node that is a Sentinel set, or a cluster, has of its
// own: its URL and its name.

// Address is where a node is: a server, the Sentinels of a set, or some servers
// of a cluster. The options of the latter two say only how to connect.
type Address struct {
	*redis.Options
	failover *redis.FailoverOptions // nil: no Sentinel set
	cluster  *redis.ClusterOptions  // nil: no cluster
	plain    bool                   // host:port, without a URL's scheme
}

// Client returns a new client of the node.
func (a Address) Client() redis.UniversalClient {
	if a.cluster != nil {
		o := *a.cluster
		o.DialTimeout, o.ReadTimeout = a.DialTimeout, a.ReadTimeout
		o.DialerRetries = a.DialerRetries
		return redis.NewClusterClient(&o)
	}
	if a.failover == nil {
		return redis.NewClient(a.Options)
	}
	o := *a.failover
	o.DialTimeout, o.ReadTimeout = a.DialTimeout, a.ReadTimeout
	o.MaxRetries, o.DialerRetries = a.MaxRetries, a.DialerRetries
	return redis.NewFailoverClient(&o)
}

// Prepare has f change the credentials and the TLS of the node. Those of a
// Sentinel set are its masters'. The Sentinels keep the user and the password
// of the URL.
func (a Address) Prepare(f func(*redis.Options) error) error {
	if o := a.cluster; o != nil {
		each := &redis.Options{Addr: o.Addrs[0], Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig}
		err := f(each)
		o.TLSConfig, o.CredentialsProviderContext = each.TLSConfig, each.CredentialsProviderContext
		return err
	}
	o := a.failover
	if o == nil {
		return f(a.Options)
	}
	master := &redis.Options{Addr: a.Addr, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig}
	err := f(master)
	o.TLSConfig, o.CredentialsProviderContext = master.TLSConfig, master.CredentialsProviderContext
	return err
}

// parseAddress parses a URL. One with master_name is that of a Sentinel set, as
// redis.ParseFailoverURL takes it. Errors quote nothing of it.
// A URL may contain passwords, and an error goes into logs.
func parseAddress(raw string) (Address, error) {
	if rest, is := strings.CutPrefix(raw, "redis+cluster://"); is {
		return parseCluster("redis://" + rest)
	}
	if rest, is := strings.CutPrefix(raw, "rediss+cluster://"); is {
		return parseCluster("rediss://" + rest)
	}
	u, err := url.Parse(raw)
	if err != nil || !u.Query().Has("master_name") {
		o, err := ParseURL(raw)
		return Address{Options: o}, err
	}
	o, err := redis.ParseFailoverURL(raw)
	switch {
	case err != nil:
		return Address{}, fmt.Errorf("the URL of a Sentinel set is not of the form %s: %s",
			"redis://sentinel-user:sentinel-password@host:26379/database?master_name=NAME&addr=host2:26379&username=USER&password=PASSWORD",
			"go-redis documents its options at ParseFailoverURL")
	case o.MasterName == "":
		return Address{}, errors.New("the URL of a Sentinel set names no master: master_name is empty")
	case o.ReplicaOnly:
		return Address{}, errors.New("the URL of a Sentinel set asks for replicas: a node must be a master; leave out replica_only")
	}
	o.MinIdleConns = 0
	// A connection is tried again by the Quorum itself. With the retries of
	// go-redis it takes 2 s to find out that all Sentinels refuse.
	o.MaxRetries, o.DialerRetries = cmp.Or(o.MaxRetries, -1), cmp.Or(o.DialerRetries, 1)
	return Address{Options: &redis.Options{
		Addr: transport.SentinelAddr, DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout,
		MaxRetries: o.MaxRetries, DialerRetries: o.DialerRetries,
	}, failover: o}, nil
}

// parseCluster parses the URL of a cluster, with the scheme of a server. Errors
// quote nothing of it.
func parseCluster(raw string) (Address, error) {
	if _, err := ParseURL(strings.SplitN(raw, "?", 2)[0]); err != nil {
		return Address{}, err
	}
	o, err := redis.ParseClusterURL(raw)
	if u, _ := url.Parse(raw); err != nil || len(strings.Trim(u.Path, "/")) > 0 {
		return Address{}, fmt.Errorf("the URL of a cluster is not of the form %s: %s",
			"redis+cluster://user:password@host:6379?addr=host2:6379", "a cluster has no databases, and go-redis documents the options at ParseClusterURL")
	}
	// The Quorum dials by itself. A pool of the client would be idle
	// connections at each server.
	o.MinIdleConns = 0
	return Address{Options: &redis.Options{
		Addr: o.Addrs[0], DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, MaxRetries: o.MaxRetries, DialerRetries: o.DialerRetries,
	}, cluster: o}, nil
}

// The names of nodes that are no single server begin so.
const (
	sentinelName = "sentinel:"
	clusterName  = "cluster:"
)

func (a Address) IsCluster() bool { return a.cluster != nil }

// Name returns the address that the set records for the node, and that errors
// and the log have: of a Sentinel set the name of its master and its Sentinels,
// in order.
func (a Address) Name() string {
	switch {
	case a.cluster != nil:
		return clusterName + sorted(a.cluster.Addrs)
	case a.failover != nil:
		return sentinelName + a.failover.MasterName + "@" + sorted(a.failover.SentinelAddrs)
	}
	return a.Addr
}

func sorted(addrs []string) string {
	addrs = slices.Clone(addrs)
	slices.Sort(addrs)
	return strings.Join(addrs, ",")
}

// nameOf is the address that the set records for the node of a client. A client
// of a Sentinel set does not tell which it is: its name is given by an option.
func (s *Settings) NameOf(c redis.UniversalClient, i int) string {
	if i < len(s.Names) && s.Names[i] != "" {
		return s.Names[i]
	}
	if c, is := c.(*redis.ClusterClient); is {
		return clusterName + sorted(c.Options().Addrs)
	}
	return c.(*redis.Client).Options().Addr
}
