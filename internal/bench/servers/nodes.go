package servers

import (
	"context"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// Nodes are servers and the ways to them.
type Nodes struct {
	*redistest.Cluster
	Ways []string // which may lead through a proxy
	Deaf int      // so many, the last ones, are not asked: they would not answer
}

// Direct are the servers of a cluster, with no proxy on the way.
func Direct(c *redistest.Cluster) Nodes { return Nodes{Cluster: c, Ways: c.Addrs()} }

// Version is what the servers say they are.
func (n Nodes) Version(ctx context.Context) (string, error) {
	info, err := n.Node(0).Client().Info(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(info, "redis_version:")
	if !found {
		return "", fmt.Errorf("no version in %q", info)
	}
	v, _, _ := strings.Cut(rest, "\r\n")
	return v, nil
}
