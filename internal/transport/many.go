package transport

import (
	"time"

	"github.com/quorate/quorate/internal/resp"
)

// Many is a script that does what several commands ask for. Most of what a
// short script costs a node is the same whatever it does: so where many callers
// are at work (see crowd), commands that go out in one write go out as one.
// The order stays that of Send, and nobody waits for company.
type Many struct {
	// Append encodes the command, given the parts' kind, their keys and arguments, and how many words these are.
	Append func(dst []byte, kind uint64, keys, args []byte, nKeys, nArgs int) []byte
	Head   int // values that the answer, a list or a text of numbers, begins with; then there is one number for each part
}

// Part is a Command that may be sent as one of Many.
type Part interface {
	Command
	// Kind says with which others it goes: those of the same kind. 0: it goes by itself.
	Kind() uint64
	// AppendPart appends its keys and arguments, each an encoded word, and says
	// how many. It is called during Send, under the same conditions as Append.
	AppendPart(keys, args []byte) (k, a []byte, nKeys, nArgs int)
	// Share takes the place of Reply where the node has answered for many: how the answer
	// begins, and the part's own number. Without a head there is no such answer,
	// and err may say why; whether this part has been executed is not known.
	Share(head []resp.Value, own int64, err error)
	// Touch is called for each of many before the first gets its share. It may fetch
	// what will be needed into the processor's cache.
	Touch()
}

// MaxParts bounds for how long a node is busy with one command.
const MaxParts = 32

// parts are commands that have been sent and may still become one. The first is
// encoded by itself, too: it stays that when no other comes before the write.
type parts struct {
	entries       []entry
	kind          uint64
	keys, args    []byte
	nKeys, nArgs  int
	first, length int // where in conn.out the first one is
}

// join adds a command to the parts; false: it is not for that.
func (c *conn) join(cmd Command, until, now time.Duration) bool {
	part, ok := cmd.(Part)
	if !ok || c.many == nil || c.pending < crowd || now < c.echoUntil {
		return false
	}
	p, kind := &c.parts, part.Kind()
	if kind == 0 {
		return false
	}
	if len(p.entries) == MaxParts || kind != p.kind {
		c.seal()
	}
	keys, args, nk, na := part.AppendPart(p.keys, p.args)
	p.kind, p.keys, p.args = kind, keys, args
	p.nKeys, p.nArgs = p.nKeys+nk, p.nArgs+na
	switch len(p.entries) {
	case 0:
		p.first = len(c.out)
		c.out = cmd.Append(c.out)
		p.length = len(c.out) - p.first
	case 1:
		c.out = c.out[:p.first]
	}
	if p.entries == nil {
		p.entries = make([]entry, 0, MaxParts)
	}
	p.entries = append(p.entries, entry{cmd: cmd, at: now, until: until})
	c.pending++
	return true
}

// seal ends the parts: what is sent from here on comes after them.
func (c *conn) seal() {
	p := &c.parts
	switch n := len(p.entries); n {
	case 0:
		return
	case 1:
		e := p.entries[0]
		e.size = int32(p.length)
		c.enter(e)
	default:
		start := len(c.out)
		c.out = c.many.Append(c.out, p.kind, p.keys, p.args, p.nKeys, p.nArgs)
		c.enter(entry{at: p.entries[0].at, parts: p.entries, size: int32(len(c.out) - start)})
		p.entries = nil // they are the reader's now
		if k := len(c.spares); k > 0 {
			p.entries, c.spares = c.spares[k-1], c.spares[:k-1]
		}
	}
	clear(p.entries)
	*p = parts{entries: p.entries[:0], keys: p.keys[:0], args: p.args[:0]}
}

// share gives each part its share of an answer.
func (c *conn) share(list []entry, v []resp.Value, err error) {
	v = resp.Numbers(c.numbers, v)
	if err != nil || len(v) != c.many.Head+len(list) {
		for _, e := range list {
			e.cmd.(Part).Share(nil, 0, err)
			err = nil // what it says concerns the script, not the parts: once is enough
		}
		return
	}
	for _, e := range list {
		e.cmd.(Part).Touch()
	}
	for i, e := range list {
		e.cmd.(Part).Share(v[:c.many.Head], v[c.many.Head+i].Int, nil)
	}
}
