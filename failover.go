package quorate

import (
	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/transport"
)

// NewFailoverClient returns a client of a Sentinel set for [New]. Use it
// instead of redis.NewFailoverClient, which connects to whatever address the
// first Sentinel to answer names, and sends it the password. NewFailoverClient
// asks all Sentinels of o at once, and connects only to a master that a
// majority of them names. List at least three Sentinels: with two, both must
// answer. A Sentinel that is listed in two spellings counts once.
//
// With TLS, a server's certificate must be valid for o.TLSConfig.ServerName. If
// ServerName is empty or is the host of a Sentinel, the certificate must be
// valid for the server's own host if that host is in o.SentinelAddrs. Otherwise
// it must be valid for ServerName or, if that is empty, for the first host in
// o.SentinelAddrs.
//
// The client connects to nothing before New is called, and ignores options for
// replicas. [Connect] takes the set's URL instead. See
// docs/operate/sentinel.md.
func NewFailoverClient(o *redis.FailoverOptions) redis.UniversalClient {
	return transport.NewSentinelClient(o)
}
