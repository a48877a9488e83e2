package setup

import (
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
	return transport.NewSentinelClient(&o)
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

// clusterName begins the name of a node that is a cluster.
const clusterName = "cluster:"

func (a Address) IsCluster() bool { return a.cluster != nil }

// IsCluster reports whether a client is that of a Redis Cluster.
func IsCluster(c redis.UniversalClient) bool {
	_, is := c.(*redis.ClusterClient)
	return is
}

// Name returns the address that the set records for the node, and that errors
// and the log have: of a Sentinel set the name of its master and its Sentinels,
// in order.
func (a Address) Name() string {
	switch {
	case a.cluster != nil:
		return clusterName + sorted(a.cluster.Addrs)
	case a.failover != nil:
		return transport.SentinelName(a.failover)
	}
	return a.Addr
}

func sorted(addrs []string) string {
	return strings.Join(slices.Sorted(slices.Values(addrs)), ",")
}
