package quorate_test

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
)

// srvAnswer answers a question for the SRV records of a name with the given
// targets, at port 6379.
func srvAnswer(question []byte, targets ...string) []byte {
	end := 12
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	a := append([]byte{}, question[:end+5]...)
	a[2], a[3] = a[2]|0x80, 0
	binary.BigEndian.PutUint16(a[6:], uint16(len(targets)))
	binary.BigEndian.PutUint32(a[8:], 0)
	for _, t := range targets {
		var name []byte
		for label := range strings.SplitSeq(t, ".") {
			name = append(append(name, byte(len(label))), label...)
		}
		name = append(name, 0)
		a = append(a, 0xc0, 12, 0, 33, 0, 1, 0, 0, 0, 60, 0, byte(6+len(name)), 0, 0, 0, 0, 6379>>8, 6379&0xff)
		a = append(a, name...)
	}
	return a
}

// DiscoverSRV returns what the records of a service name, always in the same
// order.
func TestDiscoverSRV(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	go func() {
		for question := make([]byte, 512); ; {
			n, from, err := server.ReadFrom(question)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(srvAnswer(question[:n], "lock-c.example.com", "lock-a.example.com", "lock-b.example.com"), from)
		}
	}()
	resolver := net.DefaultResolver
	defer func() { net.DefaultResolver = resolver }()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	all, err := quorate.DiscoverSRV("redis", "tcp", "locks.example.com")(ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{"lock-a.example.com:6379", "lock-b.example.com:6379", "lock-c.example.com:6379"}, all)
	server.Close()
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	_, err = quorate.DiscoverSRV("redis", "tcp", "locks.example.com")(ctx)
	require.Error(t, err)
}
