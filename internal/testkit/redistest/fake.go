package redistest

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
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

// Between starts a server that passes commands on to the one at addr, and
// answers those itself for which answer returns something, as it is on the
// wire. Pushes come with the answer to the next command. It returns its address.
func Between(t testing.TB, addr string, answer func(words []string) string) string {
	t.Helper()
	return Serve(t, func(nc net.Conn) {
		up, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		defer func() { _ = up.Close() }()
		back := bufio.NewReader(up)
		for rd := resp.NewReader(nc); ; {
			v, err := rd.Read()
			if err != nil {
				return
			}
			words := make([]string, 0, len(v))
			for _, w := range v {
				words = append(words, string(w.Str))
			}
			reply := []byte(answer(words))
			if len(reply) == 0 {
				if _, err = up.Write(resp.AppendCommand(nil, words...)); err != nil {
					return
				}
				push := strings.EqualFold(words[0], "SUBSCRIBE") // its answer is one
				for done := false; !done; {
					part, err := rawReply(back)
					if err != nil {
						return
					}
					done = push || part[0] != '>'
					reply = append(reply, part...)
				}
			}
			if _, err := nc.Write(reply); err != nil {
				return
			}
		}
	})
}

// rawReply reads one reply as it is on the wire.
func rawReply(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$', '=', '!':
		if n < 0 {
			return line, nil
		}
		text := make([]byte, n+2)
		_, err = io.ReadFull(r, text)
		line = append(line, text...)
	case '%':
		n *= 2
		fallthrough
	case '*', '>', '~':
		for range n {
			part, e := rawReply(r)
			if e != nil {
				return nil, e
			}
			line = append(line, part...)
		}
	}
	return line, err
}
