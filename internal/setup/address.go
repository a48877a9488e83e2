package setup

import (
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/transport"
)

// Addresses of nodes: servers, Sentinel sets and clusters.

// Address says where a node is: a server, the Sentinels of a set, or some
// servers of a cluster. For a Sentinel set or a cluster, Options only says how
// to connect.
type Address struct {
	*redis.Options
	failover *redis.FailoverOptions // nil if it is not a Sentinel set
	cluster  *redis.ClusterOptions  // nil if it is not a cluster
	plain    bool                   // given as host:port, without a scheme
}

// Client returns a new client for the node.
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

// Prepare calls f to change the node's credentials and TLS. For a Sentinel set,
// these are the credentials of its masters; the Sentinels keep the user and
// password of the URL.
func (a Address) Prepare(f func(*redis.Options) error) error {
	if o := a.cluster; o != nil {
		each := &redis.Options{Addr: o.Addrs[0], Username: o.Username, Password: o.Password,
			TLSConfig: o.TLSConfig}
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

// clusterName is the prefix of a cluster's name.
const clusterName = "cluster:"

// IsCluster reports whether a is that of a whole Redis Cluster.
func (a Address) IsCluster() bool { return a.cluster != nil }

// IsClusterClient reports whether c is the client of a Redis Cluster.
func IsClusterClient(c redis.UniversalClient) bool {
	_, is := c.(*redis.ClusterClient)
	return is
}

// Name returns the node's address as the set, errors and the log show it. For a
// Sentinel set it consists of the master's name and the sorted Sentinels.
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
