package main

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// echo is a server that answers with what it is asked.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// A wire tells a subscription from a connection for commands, delays the one and not the other,
// and ends both.
func TestWireTellsConnectionsApart(t *testing.T) {
	w, err := openWire("w", echo(t))
	require.NoError(t, err)
	ws := wires{{w}}
	defer ws.close()
	dial := func(hello string) net.Conn {
		c, err := net.Dial("tcp4", w.proxy.Listen)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		require.Equal(t, hello, say(t, c, hello))
		return c
	}
	command := dial("*1\r\n$4\r\nPING\r\n")
	subscription := dial("*2\r\n$9\r\nSUBSCRIBE\r\n$2\r\nch\r\n")
	const message = "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\nx\r\n"

	var count latecomers
	w.tells.turn(&tardy{delay: time.Hour, kind: pushes, count: &count}, pushes)
	assert.Equal(t, "a", say(t, command, "a"), "what is late is another connection")
	_, err = io.WriteString(subscription, message)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return count.pushes.Load() == 1 }, 10*time.Second, time.Millisecond)
	w.tells.turn(pass, pushes)
	assert.Equal(t, message, hear(t, subscription, len(message)), "it comes when the delay is over")

	w.asks.turn(&tardy{delay: time.Hour, kind: commands, count: &count}, commands)
	assert.Equal(t, "b", say(t, subscription, "b"))
	_, err = io.WriteString(command, "c")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return count.commands.Load() == 1 }, 10*time.Second, time.Millisecond)

	assert.Equal(t, 2, ws.cut([]int{0}))
	for _, c := range []net.Conn{command, subscription} {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
		_, err := io.ReadAll(c)
		assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it has ended")
	}
	dial("*1\r\n$9\r\nsubscribe\r\n")
}

// say sends text, and returns what comes back.
func say(t *testing.T, c net.Conn, text string) string {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
	return hear(t, c, len(text))
}

func hear(t *testing.T, c net.Conn, n int) string {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	text := make([]byte, n)
	_, err := io.ReadFull(c, text)
	require.NoError(t, err)
	return string(text)
}
