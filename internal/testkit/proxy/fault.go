package proxy

import (
	"math/rand/v2"
	"time"
)

// Direction says which way data flows. Directions can be combined with |.
type Direction int

// The directions of a connection.
const (
	Up   Direction = 1 << iota // from the client to the server
	Down                       // from the server to the client
	Both = Up | Down
)

// Kind says what a client uses a connection for. Kinds can be combined with |.
type Kind int

// The kinds of connections. A connection is of the kind Commands until one of
// its ends sends SUBSCRIBE.
const (
	Commands Kind = 1 << iota // requests and their replies
	Pushes                    // what the server publishes
	Any      = Commands | Pushes
)

// Fault is what a proxy does to the data of one direction. The zero Fault lets
// data pass. Faults of different fields add up. The end of a stream is delayed,
// held and dropped like data.
//
// TCP has no lost or reordered bytes, so neither has a Fault: data arrives in
// order and complete, or the connection ends.
type Fault struct {
	Delay  time.Duration // data arrives that much later; more data can be on its way meanwhile
	Jitter time.Duration // and up to that much earlier or later still, in order
	// Percentage of pieces that TCP retransmits, below 100: first after 200 ms,
	// then after twice as long each time.
	Loss int
	Rate int // bytes per second of all connections of the proxy together; 0 is unlimited

	// Exact keeps a delay of up to a millisecond to within some microseconds on
	// Linux. A thread sleeps for each piece.
	Exact bool

	// Hold keeps the data, and delivers it in order when the fault is lifted: a
	// partition that TCP survives.
	Hold bool

	// Drop discards the data. The connection ends when the fault is lifted,
	// also where nothing was discarded: a partition that outlasts the kernel's
	// patience.
	Drop bool

	// Cut ends each connection after so many bytes, most likely in the middle
	// of a reply; 0 is never.
	Cut int64

	// Reset ends each connection with RST when data comes.
	Reset bool

	// Observe is called once for each piece of data that the fault is applied
	// to, before it is delayed. It may be called concurrently for several
	// connections.
	Observe func(data []byte)
}

// resend is when Linux sends a lost packet again, at the earliest.
const resend = 200 * time.Millisecond

// late is how long after its arrival at the proxy a piece is due, by delay and
// loss.
func (f *Fault) late() time.Duration {
	d := f.Delay
	if f.Jitter > 0 {
		d += rand.N(2*f.Jitter+1) - f.Jitter
	}
	if f.Loss > 0 {
		for again := resend; rand.IntN(100) < f.Loss; again *= 2 {
			d += again
		}
	}
	return d
}
