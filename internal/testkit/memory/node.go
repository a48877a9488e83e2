// Package memory provides nodes inside the test process: the reference node
// behind the commands that the library sends (internal/model/server), and a
// transport to it. So a Quorum runs without a server.
//
//	nodes := memory.NewNodes(3)
//	q, err := quorate.New(nodes.Clients(t), nodes.Option())
//
// The package has connections, faults and pushes, and what a test looks at. The
// commands of a batch are sent separately, because the transport ignores
// Config.Batch.
package memory

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/model/server"
	"github.com/quorate/quorate/internal/resp"
)

// Node is one Redis in memory. It is safe for concurrent use; mu guards all of
// it.
// Lock order: Node.mu, then Transport.mu.
type Node struct {
	mu        sync.Mutex
	server    *server.Server
	listeners []*Transport // that listen
	frozen    bool
	delay     time.Duration // of each request, push and connection
	ahead     time.Duration // its clock, of this process's
	down      error         // why no connection can be made; nil: one can
}

// NewNode returns a node without data.
func NewNode() *Node {
	n := &Node{}
	n.server = server.New(newRun(), n.publish)
	return n
}

// newRun returns the identity of another run of a server.
func newRun() string { return fmt.Sprintf("%040x", rand.Uint64()) }

// millis returns the time of the node's clock. Called with n.mu held.
func (n *Node) millis() int64 { return time.Now().Add(n.ahead).UnixMilli() }

// execute carries out one command.
func (n *Node) execute(words []string) ([]resp.Value, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server.Do(n.millis(), words)
}

// publish returns the number of listeners. Called with n.mu held.
func (n *Node) publish(channel, payload string) (count int64) {
	for _, t := range n.listeners {
		if t.cfg.Channel == channel {
			t.receivePush(payload)
			count++
		}
	}
	return count
}

// readers read commands. A new one for each would cost more than all else that
// a node does for a command.
var readers = sync.Pool{New: func() any {
	r := &reader{}
	r.resp = resp.NewReader(&r.cmd)
	return r
}}

// reader reads one command at a time, and all of it.
type reader struct {
	cmd  bytes.Reader
	resp *resp.Reader
}

// words reads an encoded command.
func words(cmd []byte) []string {
	r := readers.Get().(*reader)
	defer readers.Put(r)
	r.cmd.Reset(cmd)
	v, err := r.resp.Read()
	if err != nil {
		panic(fmt.Sprintf("memory: command %.80q: %v", cmd, err)) // of this library
	}
	w := make([]string, len(v))
	for i, x := range v {
		w[i] = string(x.Str)
	}
	return w
}
