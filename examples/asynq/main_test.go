package main

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
)

// Of two replicas one enqueues the task of each second. When it stops, the
// other does.
func TestTwoReplicas(t *testing.T) {
	nodes, redis := redistest.Start(t, 3), redistest.Start(t, 1)
	tokens := make(chan string, 1000)
	s := service{redis: asynq.RedisClientOpt{Addr: redis.Node(0).Addr()}, every: "@every 1s",
		report: func(_ context.Context, task *asynq.Task) error {
			tokens <- string(task.Payload())
			return nil
		}}
	start := func() (stop func()) {
		q := e2e.Open(t, nodes)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.run(ctx, q) }()
		return func() {
			cancel()
			require.ErrorIs(t, e2e.Receive(t, ended), context.Canceled)
		}
	}
	next := func() string { return e2e.ReceiveWithin(t, 2*e2e.Patience, tokens) }
	began := time.Now()
	stopFirst := start()
	first := next()
	stopSecond := start()
	n := 1
	for ; n < 5; n++ {
		assert.Equal(t, first, next(), "the second one does not enqueue")
	}
	stopFirst()
	second := next()
	for ; second == first; n++ { // what it had enqueued before
		second = next()
	}
	assert.Greater(t, second, first)
	assert.Equal(t, second, next())
	n += 2
	stopSecond()
	elapsed := time.Since(began)
	close(tokens)
	for token := range tokens {
		assert.Equal(t, second, token)
		n++
	}
	assert.LessOrEqual(t, n, int(elapsed/time.Second)+1, "one for each second")
}
