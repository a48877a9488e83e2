// Package embedded is Redis-compatible nodes inside this process, for trying
// things where there is no Redis. They listen on loopback, keep everything in
// memory, and their clocks run: what expires on a Redis expires here.
package embedded

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/script"
)

// Nodes are independent masters. All methods may be called at the same time.
type Nodes struct {
	nodes []*node
}

// node is one master. It keeps its data and its port while it is stopped.
type node struct {
	redis *miniredis.Miniredis
	addr  string
	run   string // run id
	since time.Time

	mu sync.Mutex // of starting and stopping
	up bool
}

// Start starts n nodes on free ports of the loopback interface. They have
// recorded that they are a set (for the default key prefix), and vote at once.
// Close must be called.
func Start(n int) (*Nodes, error) { return StartAt(n, 0) }

// StartAt is Start on the ports from port to port+n-1.
func StartAt(n, port int) (*Nodes, error) {
	if n < 1 {
		return nil, fmt.Errorf("%d nodes: there must be at least one", n)
	}
	ns := &Nodes{}
	for i := range n {
		p := 0
		if port > 0 {
			p = port + i
		}
		nd, err := newNode(p)
		if err != nil {
			ns.Close()
			return nil, err
		}
		ns.nodes = append(ns.nodes, nd)
	}
	if err := Bootstrap(ns.URLs()); err != nil {
		ns.Close()
		return nil, err
	}
	return ns, nil
}

// StartPart starts one node of a set whose others run elsewhere. It belongs to
// none yet: Bootstrap must follow when all serve.
func StartPart() (*Nodes, error) {
	nd, err := newNode(0)
	if err != nil {
		return nil, err
	}
	return &Nodes{[]*node{nd}}, nil
}

// Bootstrap has the nodes at these URLs record that they are a set, which votes
// at once.
func Bootstrap(urls []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	q, err := quorate.Connect(ctx, urls, quorate.WithLogger(nil), quorate.WithNodeTimeout(2*time.Second))
	if err != nil {
		return err
	}
	return errors.Join(q.Bootstrap(ctx), q.Close())
}

func newNode(port int) (*node, error) {
	n := &node{redis: miniredis.NewMiniRedis(), addr: fmt.Sprintf("127.0.0.1:%d", port),
		run: random(20), since: time.Now()}
	n.redis.ClockTTL(true)
	if err := n.start(); err != nil {
		return nil, err
	}
	n.addr = n.redis.Addr()
	return n, nil
}

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // documented never to fail
	return hex.EncodeToString(b)
}

func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.up {
		return nil
	}
	// Until the hook is in place no client may be served: a client that gets no
	// run id would take this for a restart with loss of data.
	n.redis.SetError("LOADING the node is starting")
	if err := n.redis.StartAddr(n.addr); err != nil {
		return err
	}
	n.redis.Server().SetPreHook(n.hook)
	n.up = true
	return nil
}

func (n *node) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.up {
		n.redis.Close()
		n.up = false
	}
}

// hook answers what the library asks and miniredis does not know.
func (n *node) hook(c *server.Peer, cmd string, args ...string) bool {
	switch {
	case cmd == "INFO":
		c.WriteBulk(n.info())
	case cmd == "CONFIG" && len(args) == 2 && strings.EqualFold(args[0], "GET") &&
		strings.EqualFold(args[1], "appendfsync"):
		c.WriteMapLen(1)
		c.WriteBulk("appendfsync")
		c.WriteBulk("no")
	case foreign(cmd, args):
		c.WriteError("ERR this in-memory node runs only the scripts of this version of quorate; use a real Redis " +
			"for anything else")
	case (cmd == "SCAN" || cmd == "KEYS" || cmd == "PSUBSCRIBE") && slices.ContainsFunc(args, strange):
		c.WriteError("ERR this in-memory node does not support such a pattern")
	default:
		return false
	}
	return true
}

// foreign reports whether a command brings a script that is not ours. Any user of
// this machine may connect, and a script here can read this user's files, or
// never end.
func foreign(cmd string, args []string) bool {
	source := ""
	switch {
	case (cmd == "EVAL" || cmd == "EVAL_RO") && len(args) > 0:
		source = args[0]
	case cmd == "SCRIPT" && len(args) > 1 && strings.EqualFold(args[0], "LOAD"):
		source = args[1]
	default:
		return false
	}
	return !slices.ContainsFunc(script.All(), func(s script.Script) bool { return s.Source == source })
}

// classes are what is escaped in a pattern, and its brackets.
var classes = regexp.MustCompile(`(?s)\\.|\[(\\.|[^\]\\])*(\]|$)`)

// strange reports whether miniredis would panic at a pattern: it takes brackets
// for those of a regular expression, as which [z-a] is wrong.
func strange(pattern string) bool {
	return !utf8.ValidString(pattern) ||
		slices.ContainsFunc(classes.FindAllString(pattern, -1), func(class string) bool {
			_, err := regexp.Compile(strings.TrimSuffix(class, "]") + "]")
			return class[0] == '[' && err != nil
		})
}

func (n *node) info() string {
	return strings.Join([]string{
		"# Server", "redis_version:7.0.0-miniredis", "redis_mode:standalone", "run_id:" + n.run,
		fmt.Sprintf("uptime_in_seconds:%d", int(time.Since(n.since).Seconds())),
		"# Memory", "maxmemory_policy:noeviction", "# Persistence", "aof_enabled:0",
		"# Replication", "role:master", "connected_slaves:0", "",
	}, "\r\n")
}

// URLs returns the nodes' URLs, in order, of stopped ones too.
func (ns *Nodes) URLs() []string {
	urls := make([]string, len(ns.nodes))
	for i, n := range ns.nodes {
		urls[i] = "redis://" + n.addr
	}
	return urls
}

// Stop makes node i unreachable: its port is closed, its connections break.
func (ns *Nodes) Stop(i int) { ns.nodes[i].stop() }

// Restart starts a stopped node again, on the same port and with its memory:
// for its clients it was only unreachable.
func (ns *Nodes) Restart(i int) error {
	if err := ns.nodes[i].start(); err != nil {
		return fmt.Errorf("restart node %d: %w", i+1, err)
	}
	return nil
}

// Close stops all nodes permanently.
func (ns *Nodes) Close() {
	var wg sync.WaitGroup
	for _, n := range ns.nodes {
		wg.Go(n.stop)
	}
	wg.Wait()
}
