package transport

// A cluster client that writes no log lines of its own.

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
)

// quiet returns a client of the same cluster that does not log failed dials. If
// a dial fails, go-redis's pool writes a line to go-redis's global logger,
// which belongs to the application; every reconnection would add a line with
// the address of whichever server is down. So the Dialer of this client never
// fails; its connection does. The caller must close the client.
func quiet(c *redis.ClusterClient) *redis.ClusterClient {
	o := *c.Options()
	o.MinIdleConns = 0 // the pools are used only to ask for the slot's master
	next := o.NewClient
	o.NewClient = func(server *redis.Options) *redis.Client {
		dial := server.Dialer
		if dial == nil {
			dial = redis.NewDialer(server)
		}
		server.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := dial(ctx, network, addr)
			if err != nil {
				nc = newUndialed(err)
			}
			return nc, nil
		}
		return next(server)
	}
	return redis.NewClusterClient(&o)
}

// undialed takes the place of a connection that could not be dialed.
type undialed struct {
	net.Conn // one end of a pipe that nobody reads
	err      error
}

func newUndialed(err error) net.Conn {
	end, other := net.Pipe()
	_ = other.Close()
	return &undialed{end, err}
}

func (u *undialed) Read([]byte) (int, error)  { return 0, u.err }
func (u *undialed) Write([]byte) (int, error) { return 0, u.err }

// dialed returns why a connection could not be dialed.
func dialed(nc net.Conn, err error) (net.Conn, error) {
	if u, is := nc.(*undialed); is {
		return nil, u.err
	}
	return nc, err
}
