package flow

// Commands that belong to no claim: those of bootstrap, check, inspection and
// repairs.
// Invariant: every wait here is bounded. A command has no timeout of its own,
// because even a late answer occupies its place in the connection's order.
// Instead, each caller passes a context that ends, and a later answer is
// dropped.

import (
	"bytes"
	"context"
	"errors"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// Request is a command outside any claim. Then runs on the reader's goroutine
// and must not block.
type Request struct {
	Command []byte
	Then    func(v []resp.Value, err error) // nil: the reply is ignored
}

func (c *Request) Append(dst []byte) []byte { return append(dst, c.Command...) }

func (c *Request) Reply(v []resp.Value, err error) {
	if c.Then != nil {
		c.Then(v, err)
	}
}

// Do sends one command to the node and waits for the answer until ctx ends. The
// caller must hold no lock and must not be this node's reader.
func (l *Connection) Do(ctx context.Context, words ...string) ([]resp.Value, error) {
	return l.Answer(ctx, resp.AppendCommand(nil, words...))
}

// Answer is Do for an encoded command. It copies the values, because a reply's
// values are valid only during the reply. The channel is buffered so that the
// reader never waits for a caller that has given up.
func (l *Connection) Answer(ctx context.Context, command []byte) ([]resp.Value, error) {
	type answer struct {
		v   []resp.Value
		err error
	}
	done := make(chan answer, 1)
	c := &Request{Command: command}
	again := 0
	c.Then = func(v []resp.Value, err error) {
		// The node did not run the command. Send it again, after the scripts.
		if IsNoScript(err) && again < MaxLoads {
			again++
			l.Reload(c)
			return
		}
		kept := make([]resp.Value, len(v))
		for i, w := range v {
			kept[i] = resp.Value{Int: w.Int, Str: bytes.Clone(w.Str)}
		}
		done <- answer{kept, err}
	}
	l.Send(c)
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
		return nil, fault.ErrNoAnswer
	}
}

// Text returns the i-th value of an answer as a string, or "" if there is none.
// The node chose the length of the answer, so every access must be checked.
func Text(v []resp.Value, i int) string {
	if i < 0 || i >= len(v) {
		return ""
	}
	return string(v[i].Str)
}

// Reload sends c again to a node that does not know the scripts. It loads all
// scripts first, unless they are being loaded already.
func (l *Connection) Reload(c transport.Command) {
	if !l.loading.CompareAndSwap(false, true) {
		l.Send(c)
		return
	}
	cmds := LoadCommands(script.All())
	cmds[len(cmds)-1].(*Request).Then = func([]resp.Value, error) { l.loading.Store(false) }
	l.Send(append(cmds, c)...)
}

// Notify sends a command that may be lost: the end of a watch, which the node
// forgets by itself. Thousands of watches may end at once, so it is dropped if
// the node has no room (TestManyWatchesSurviveAReconnect).
func (l *Connection) Notify(command []byte) {
	l.Link.Append(&Request{Command: command}, transport.Normal)
	l.Link.Flush()
}

// MaxLoads is how often the scripts are loaded for one command: a client may
// flush them again between the load and the command.
const MaxLoads = 8

// IsNoScript reports whether the node has forgotten the script since the
// connection began, because a client called SCRIPT FLUSH.
func IsNoScript(err error) bool {
	e, ok := errors.AsType[resp.Error](err)
	return ok && e.Code() == "NOSCRIPT"
}

// LoadCommands returns the commands that load scripts.
func LoadCommands(scripts []script.Script) []transport.Command {
	cmds := make([]transport.Command, 0, len(scripts)+2)
	for _, s := range scripts {
		cmds = append(cmds, &Request{Command: script.AppendLoad(nil, s)})
	}
	return cmds
}
