package quorate

import (
	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/transport"
)

// NewFailoverClient returns a client for a Sentinel set, to pass to [New]. Use
// it instead of redis.NewFailoverClient, which connects to whatever address it
// gets from the first Sentinel that answers, and sends the password there.
// NewFailoverClient asks all Sentinels in o concurrently and connects only to a
// master that a majority of them names. List at least three Sentinels: with
// two, both must answer. If you list the same Sentinel under two names, it
// counts only once.
//
// With TLS, a server's certificate must be valid for o.TLSConfig.ServerName. If
// ServerName is empty or is the host of a Sentinel, the certificate must be
// valid for the server's own host if that host is in o.SentinelAddrs. Otherwise
// it must be valid for ServerName or, if that is empty, for the first host in
// o.SentinelAddrs.
//
// The client does not connect to anything until New is called, and it ignores
// options for replicas. With [Connect], pass the URL of the Sentinel set
// instead. See docs/operate/sentinel.md.
func NewFailoverClient(o *redis.FailoverOptions) redis.UniversalClient {
	return transport.NewSentinelClient(o)
}
