package redistest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports lie above the well-known ones and below what Linux, macOS and Windows
// give to outgoing connections.
const (
	lowestPort  = 10_000
	highestPort = 31_999
)

// reservePort finds a port that no program listens on and that no other user of
// this package has. The port is ours until the returned socket is closed.
func reservePort() (int, net.PacketConn, error) {
	var last error
	for range 500 {
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		// First, resolve competition with other users of this package.
		reservation, err := net.ListenPacket("udp4", addr)
		if err != nil {
			last = err
			continue
		}
		// Then see that no stranger listens there.
		probe, err := net.Listen("tcp4", addr)
		if err != nil {
			last = err
			_ = reservation.Close()
			continue
		}
		_ = probe.Close()
		return port, reservation, nil
	}
	return 0, nil, fmt.Errorf("redistest: no free port on 127.0.0.1: %w", last)
}
