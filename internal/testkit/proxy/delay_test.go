package proxy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/testkit/proxy"
)

// A delay is a long way, and not a narrow one: what is sent meanwhile is on its
// way as well.
func TestDelay(t *testing.T) {
	t.Parallel()
	const delay, pieces = 100 * time.Millisecond, 50
	p := echo(t)
	c := dialled(t, p)
	p.Impose(proxy.Both, proxy.Any, proxy.Fault{Delay: delay})
	began := time.Now()
	for range pieces {
		send(t, c, "x")
		time.Sleep(time.Millisecond) // so that the pieces are several
	}
	receive(t, c, pieces)
	took := time.Since(began)
	assert.GreaterOrEqual(t, took, 2*delay)
	assert.Less(t, took, pieces*delay/2)
	p.Impose(proxy.Both, proxy.Any, proxy.Fault{Delay: time.Hour})
	send(t, c, "y")
	silent(t, c)
	p.Impose(proxy.Both, proxy.Any, proxy.Fault{})
	assert.Equal(t, "y", receive(t, c, 1), "data that waits is judged by the new fault")
}

func TestExactDelay(t *testing.T) {
	t.Parallel()
	p := echo(t)
	c := dialled(t, p)
	p.Impose(proxy.Both, proxy.Any, proxy.Fault{Delay: 200 * time.Microsecond, Exact: true})
	for range 100 {
		began := time.Now()
		send(t, c, "x")
		assert.Equal(t, "x", receive(t, c, 1))
		assert.GreaterOrEqual(t, time.Since(began), 400*time.Microsecond)
	}
	p.Impose(proxy.Both, proxy.Any, proxy.Fault{Delay: time.Hour, Exact: true})
	send(t, c, "y")
	silent(t, c)
	p.Impose(proxy.Both, proxy.Any, proxy.Fault{})
	assert.Equal(t, "y", receive(t, c, 1), "a long delay ends with its fault")
}

func TestJitterKeepsTheOrder(t *testing.T) {
	t.Parallel()
	p := echo(t)
	c := dialled(t, p)
	p.Impose(proxy.Both, proxy.Any, proxy.Fault{Delay: 5 * time.Millisecond, Jitter: 5 * time.Millisecond})
	const text = "abcdefghijklmnopqrstuvwxyz"
	for _, letter := range text {
		send(t, c, string(letter))
		time.Sleep(time.Millisecond)
	}
	assert.Equal(t, text, receive(t, c, len(text)))
}
