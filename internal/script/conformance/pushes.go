package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// timeout bounds every exchange with the node.
const timeout = 10 * time.Second

// pushes listens where the owners of claims would.
type pushes struct {
	client redis.UniversalClient
	sub    *redis.PubSub
	owners []string
	sync   string
	n      int
}

func newPushes(ctx context.Context, c redis.UniversalClient, name string) (*pushes, error) {
	p := &pushes{client: c, sync: name + " sync"}
	for i := range 3 {
		p.owners = append(p.owners, fmt.Sprintf("%s-owner-%d", strings.ReplaceAll(name, " ", "-"), i))
	}
	channels := append([]string{p.sync}, p.owners...)
	p.sub = c.Subscribe(ctx, channels...)
	for range channels {
		if _, err := p.sub.ReceiveTimeout(ctx, timeout); err != nil {
			p.close()
			return nil, fmt.Errorf("subscribing: %w", err)
		}
	}
	return p, nil
}

func (p *pushes) close() { _ = p.sub.Close() }

func (p *pushes) owner(r *rand.Rand) string { return p.owners[r.IntN(len(p.owners))] }

// mark queues a message that comes after all that was pushed so far.
func (p *pushes) mark(ctx context.Context, pipe redis.Pipeliner) {
	p.n++
	pipe.Publish(ctx, p.sync, p.n)
}

// untilMark returns what was pushed before the mark.
func (p *pushes) untilMark(ctx context.Context) ([]*redis.Message, error) {
	var got []*redis.Message
	for {
		m, err := p.sub.ReceiveTimeout(ctx, timeout)
		if err != nil {
			return nil, fmt.Errorf("waiting for pushes: %w", err)
		}
		msg, ok := m.(*redis.Message)
		switch {
		case !ok: // a confirmation, after a reconnection
		case msg.Channel != p.sync:
			got = append(got, msg)
		case msg.Payload == fmt.Sprint(p.n):
			return got, nil
		}
	}
}
