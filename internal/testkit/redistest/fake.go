package redistest

import (
	"net"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/resp"
)

// Serve starts a server of a test's own making, and returns its address. It
// calls serve for each connection, in a goroutine of its own, and closes the
// connection when serve returns. When the test has ended it waits for all of
// them.
func Serve(t testing.TB, serve func(nc net.Conn)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = nc.Close() }()
				serve(nc)
			})
		}
	})
	t.Cleanup(func() { _ = ln.Close(); all.Wait() })
	return ln.Addr().String()
}

// Answer is Serve for a server that answers each command with what answer
// returns, as it is on the wire. Commands of several connections may come at
// the same time.
func Answer(t testing.TB, answer func(words []string) string) (addr string) {
	t.Helper()
	return Serve(t, func(nc net.Conn) {
		for rd := resp.NewReader(nc); ; {
			v, err := rd.Read()
			if err != nil {
				return
			}
			words := make([]string, 0, len(v))
			for _, w := range v {
				words = append(words, string(w.Str))
			}
			if _, err := nc.Write([]byte(answer(words))); err != nil {
				return
			}
		}
	})
}
