package servers

import (
	"context"
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/testkit/redistest"
)

// Nodes are servers and the addresses to reach them.
type Nodes struct {
	*redistest.Cluster
	Ways []string // addresses, possibly of a proxy
	Deaf int      // the last Deaf nodes are not asked, because they would not answer
}

// Direct returns the servers of a cluster, without proxies.
func Direct(c *redistest.Cluster) Nodes { return Nodes{Cluster: c, Ways: c.Addrs()} }

// Version returns the name and version that the servers report.
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
