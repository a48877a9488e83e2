package quorate

import (
	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/transport"
)

// NewFailoverClient returns a client of a Sentinel set for [New], where it takes
// the place of redis.NewFailoverClient: that one connects to whatever address
// the first Sentinel to answer names, and sends it the password. This one asks
// all Sentinels of o at once, and connects only to a master that a majority of
// them names. So list at least three: with two, both must answer.
//
// With TLS a server's certificate must be valid for o.TLSConfig.ServerName. If
// that is empty or the host of a Sentinel, it must be valid for the server's
// own host if that is in o.SentinelAddrs too, else for ServerName, else for the
// first host in o.SentinelAddrs.
//
// It connects to nothing before New, and ignores what is for replicas. [Connect]
// takes the set's URL instead. See docs/operate/sentinel.md.
func NewFailoverClient(o *redis.FailoverOptions) redis.UniversalClient {
	return transport.NewSentinelClient(o)
}
