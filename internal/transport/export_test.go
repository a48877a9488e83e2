package transport

import "github.com/redis/go-redis/v9"

// CertificateName is the name that the certificate of a server of a Sentinel
// set must have.
func CertificateName(o *redis.FailoverOptions, addr string) string {
	c := NewSentinelClient(o)
	defer c.Close()
	return c.set.tlsFor(addr).ServerName
}
