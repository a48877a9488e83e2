package transport_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// ping is a command for use again and again.
type ping struct{ done chan error }

func (p *ping) Append(dst []byte) []byte        { return resp.AppendCommand(dst, "PING") }
func (p *ping) Reply(_ []resp.Value, err error) { p.done <- err }

// BenchmarkPing is a round trip: what the link adds to a bare connection, and
// what sharing writes among callers gains over go-redis's pool.
func BenchmarkPing(b *testing.B) {
	node := redistest.Start(b, 1).Node(0)
	l := open(b, node.Client(), transport.Config{})
	b.Run("bare", func(b *testing.B) {
		nc, err := net.Dial("tcp", node.Addr())
		if err != nil {
			b.Fatal(err)
		}
		defer nc.Close()
		out, in := resp.AppendCommand(nil, "PING"), make([]byte, len("+PONG\r\n"))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := nc.Write(out); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(nc, in); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ordered", func(b *testing.B) {
		p := &ping{make(chan error, 1)}
		b.ReportAllocs()
		for b.Loop() {
			send(l, p)
			if err := <-p.done; err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("go-redis", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := node.Client().Ping(context.Background()).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ordered/64", func(b *testing.B) {
		callers(b, func() func() error {
			p := &ping{make(chan error, 1)}
			return func() error { send(l, p); return <-p.done }
		})
	})
	b.Run("go-redis/64", func(b *testing.B) {
		callers(b, func() func() error {
			return func() error { return node.Client().Ping(context.Background()).Err() }
		})
	})
}

// callers spreads b.N calls over 64 goroutines.
func callers(b *testing.B, caller func() func() error) {
	b.ReportAllocs()
	var wg sync.WaitGroup
	for g := range 64 {
		call := caller()
		wg.Go(func() {
			for i := g; i < b.N; i += 64 {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
