// Package memory provides nodes inside the test process: the reference node of
// internal/model behind the commands that the library sends, and a transport to
// it. So a Quorum runs without a server.
//
//	nodes := memory.NewNodes(3)
//	q, err := quorate.New(nodes.Clients(t), nodes.Option())
//
// It does what one Redis does for the library, and nothing else: the scripts,
// and the few plain commands that repairs and clocks need. The commands of a
// batch are sent separately, because the transport ignores Config.Batch.
package memory

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/model"
	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// Node is one Redis in memory. It is safe for concurrent use; mu guards all of
// it.
// Lock order: Node.mu, then Transport.mu.
type Node struct {
	mu        sync.Mutex
	run       string // the identity of this run of the server
	marker    marker
	model     *model.Node // what it keeps of all names
	texts     map[string]text
	listeners []*Transport // that listen
	frozen    bool
	delay     time.Duration // of each request, push and connection
	ahead     time.Duration // its clock, of this process's
	down      error         // why no connection can be made; nil: one can
}

// marker is the node's marker: see mark.lua.
type marker struct {
	inc, born, guard int64
	run              string
	caughtUp         bool
}

func (m *marker) String() string {
	if m.inc == 0 {
		return ""
	}
	s := fmt.Sprintf("%d %d %s %d", m.inc, m.born, m.run, m.guard)
	if m.caughtUp {
		s += " w"
	}
	return s
}

// text is a plain key.
type text struct {
	value string
	ends  int64 // 0: it does not
}

// NewNode returns a node without data.
func NewNode() *Node {
	return &Node{run: fmt.Sprintf("%040x", rand.Uint64()), model: model.New(0), texts: map[string]text{}}
}

// millis returns the time of the node's clock. Called with n.mu held.
func (n *Node) millis() int64 { return time.Now().Add(n.ahead).UnixMilli() }

// execute carries out one command.
func (n *Node) execute(words []string) ([]resp.Value, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.millis()
	switch name := strings.ToUpper(words[0]); {
	case name == "EVALSHA":
		return n.eval(now, words[1:])
	case name == "SCRIPT" && strings.EqualFold(words[1], "EXISTS"):
		return slices.Repeat([]resp.Value{{Int: 1}}, len(words)-2), nil
	case name == "SCRIPT":
		return str("loaded"), nil
	case name == "PING":
		return str("PONG"), nil
	case name == "TIME":
		return []resp.Value{{Str: strconv.AppendInt(nil, now/1000, 10)}, {Str: strconv.AppendInt(nil, now%1000*1000, 10)}}, nil
	case name == "PUBLISH":
		return num(n.publish(words[1], words[2])), nil
	case name == "SCAN":
		return n.scan(words), nil
	case name == "INFO":
		return str(n.info()), nil
	}
	return n.plain(now, words)
}

// plain carries out a command of one plain key.
func (n *Node) plain(now int64, words []string) ([]resp.Value, error) {
	key := words[1]
	v, exists := n.texts[key]
	if exists && v.ends != 0 && v.ends <= now {
		delete(n.texts, key)
		v, exists = text{}, false
	}
	switch strings.ToUpper(words[0]) {
	case "EXISTS": // of script.SpreadKeys, to find out about cluster mode
		return num(0), nil
	case "GET", "GETRANGE": // always of all that there is
		set := n.model.Set()
		switch {
		case strings.HasSuffix(key, ":{}:set"):
			return str(n.model.SetText()), nil
		case strings.Contains(key, ":{}:") && !strings.HasSuffix(key, ":turn"):
			if stampOf(key) != set.Stamp() {
				return str(""), nil
			}
			return str(n.marker.String()), nil
		case strings.HasSuffix(key, "}:r"):
			return str(n.recorded(now, strings.TrimSuffix(key, ":r"))), nil
		}
		return str(v.value), nil
	case "SET":
		set := text{value: words[2]}
		for i, w := range words[3:] {
			switch {
			case strings.EqualFold(w, "NX") && exists:
				return str(""), nil
			case strings.EqualFold(w, "PX"):
				set.ends = now + integer(words[3+i+1])
			}
		}
		n.texts[key] = set
		return str("OK"), nil
	case "PEXPIRE":
		if exists {
			v.ends = now + integer(words[2])
			n.texts[key] = v
		}
		return num(0), nil
	case "DEL":
		delete(n.texts, key)
		return num(0), nil
	}
	return nil, resp.Error("ERR unknown command '" + words[0] + "'")
}

// publish returns the number of listeners.
func (n *Node) publish(channel, payload string) (count int64) {
	for _, t := range n.listeners {
		if t.cfg.Channel == channel {
			t.receivePush(payload)
			count++
		}
	}
	return count
}

func str(s string) []resp.Value { return []resp.Value{{Str: []byte(s)}} }

func num(i int64) []resp.Value { return []resp.Value{{Int: i}} }

func integer(s string) int64 {
	i, _ := strconv.ParseInt(s, 10, 64)
	return i
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

// names of the scripts, by SHA.
var scripts = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for _, s := range script.All() {
		m[s.SHA] = s.Name
	}
	return m
})

// eval carries out a script: its SHA, the number of its keys, the keys, the
// arguments.
func (n *Node) eval(now int64, w []string) ([]resp.Value, error) {
	k := 2 + int(integer(w[1]))
	keys, args := w[2:k], w[k:]
	name := scripts()[w[0]]
	if at, ok := map[string]int{"enter": 4, "beat": 4, "leave": 4, "record": 2, "mark": 0, "caughtup": 0, "inspect": 4}[name]; ok {
		stamp := stampOf(keys[at])
		n.model.Count(stamp)
		if set := n.model.Set(); name != "leave" && (stamp != set.Stamp() || n.marker.inc == 0) {
			return nil, resp.Error(script.OtherSet + " this node is not of that set")
		}
	}
	switch name {
	case "enter", "beat", "leave":
		return n.claim(now, name, keys, args), nil
	case "inspect":
		return n.inspect(now, keys, args), nil
	case "record":
		return n.record(now, keys, args), nil
	case "mark":
		n.mark(now, args)
		return []resp.Value{{Int: n.marker.inc}, {Int: now - n.marker.born}}, nil
	case "set":
		return n.setStep(now, args)
	case "caughtup":
		if integer(args[0]) != n.marker.inc {
			return num(0), nil
		}
		n.marker.caughtUp = true
		n.model.Complete(protocol.Incarnation(n.marker.inc))
		return num(1), nil
	}
	return nil, resp.Error("NOSCRIPT no such script here")
}

// stampOf returns the stamp that the key of a marker has.
func stampOf(key string) nodeset.Stamp {
	_, stamp, _ := strings.Cut(key, ":{}:")
	return nodeset.Stamp(stamp)
}

// setStep see set.lua.
func (n *Node) setStep(now int64, args []string) ([]resp.Value, error) {
	s := nodeset.RecordStep{Ballot: nodeset.Ballot(args[1]), Identity: args[2], Seen: args[1], Life: args[1], Ready: args[0] == "ready"}
	for k := nodeset.SetPromise; k <= nodeset.SetRetire; k++ {
		if k.String() == args[0] {
			s.Kind = k
		}
	}
	switch args[0] {
	case "ready":
		s.Kind = nodeset.SetCommit
	case "enter":
		s.Kind = nodeset.SetMove
	}
	s.Config, _ = nodeset.ParseConfiguration(args[3])
	was, fresh := n.marker, random()
	set := n.model.Step(now, s, protocol.Incarnation(fresh))
	m := &n.marker
	switch inc, marked := n.model.Incarnation(); {
	case !marked:
		*m = marker{}
	case int64(inc) == fresh:
		*m = marker{inc: fresh, born: now, run: args[5]}
		if s.Ready {
			m.born, m.caughtUp = 0, true
		}
	case s.Enters():
		m.caughtUp = false
	}
	if *m != was || s.Kind == nodeset.SetMove {
		m.guard = n.model.Guard().Milliseconds()
	}
	return str(set.String()), nil
}

func random() int64 { return rand.Int64N(1<<52-1) + 1 }

// mark see mark.lua.
func (n *Node) mark(now int64, args []string) {
	run, jumped := args[1], args[2]
	m := &n.marker
	if m.run == run && jumped != strconv.FormatInt(m.inc, 10) && m.born <= now {
		return
	}
	m.inc, m.born, m.run, m.caughtUp = random(), now, run, false
	n.model.Mark(now, protocol.Incarnation(m.inc))
}
