package flow

// This file owns the commands that belong to no claim: those of bootstrap,
// check, inspection and repairs.
// Invariant: no wait here is without a bound. A command itself has no timeout,
// because a late answer keeps its place in the order of the connection; so each
// caller brings a context that ends, and an answer that comes later is dropped.

import (
	"bytes"
	"context"
	"errors"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// Request is a command outside any claim.
// Its reply runs on the reader's goroutine, and must not block.
type Request struct {
	Command []byte
	Then    func(v []resp.Value, err error) // nil: not of interest
}

func (c *Request) Append(dst []byte) []byte { return append(dst, c.Command...) }

func (c *Request) Reply(v []resp.Value, err error) {
	if c.Then != nil {
		c.Then(v, err)
	}
}

// Do has a node carry out one command, and waits for its answer until the
// context ends. The caller holds no lock, and is not the reader of this node.
func (l *Connection) Do(ctx context.Context, words ...string) ([]resp.Value, error) {
	return l.Answer(ctx, resp.AppendCommand(nil, words...))
}

// Answer is Do for an encoded command. The values belong to the caller: those
// of a reply are valid during the reply only. The channel has room for the
// answer, so that the reader never waits for a caller that has given up.
func (l *Connection) Answer(ctx context.Context, command []byte) ([]resp.Value, error) {
	type answer struct {
		v   []resp.Value
		err error
	}
	done := make(chan answer, 1)
	c := &Request{Command: command}
	again := 0
	c.Then = func(v []resp.Value, err error) {
		// It was not carried out. It goes again, behind the scripts.
		if Forgotten(err) && again < MaxLoads {
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

// Text is the i-th value of an answer as a string, empty if there is none.
// Answers have the length that a node chose, so each access is checked here.
func Text(v []resp.Value, i int) string {
	if i < 0 || i >= len(v) {
		return ""
	}
	return string(v[i].Str)
}

// Reload sends c again to a node that does not know the scripts. All of them go
// before it, unless they are under way already.
func (l *Connection) Reload(c transport.Command) {
	if !l.loading.CompareAndSwap(false, true) {
		l.Send(c)
		return
	}
	cmds := Loads(script.All())
	cmds[len(cmds)-1].(*Request).Then = func([]resp.Value, error) { l.loading.Store(false) }
	l.Send(append(cmds, c)...)
}

// Transmit see [Queued].
func (c *Request) Transmit(l *Connection) bool {
	return l.Link.Append(c, transport.Normal) != transport.Full
}

// Notify sends a command whose answer is of no interest, the end of a watch,
// after the operations on records that wait for room: thousands of watches may
// end at once (TestManyWatchesSurviveAReconnect).
func (l *Connection) Notify(command []byte) {
	c := &Request{Command: command}
	waits := l.Behind(protocol.Records) || !c.Transmit(l)
	if waits && l.Put(protocol.Records, c) {
		return
	}
	if waits {
		l.Link.Append(c, transport.Certain) // the Quorum closes: it has an error as answer
	}
	l.Link.Flush()
}

// MaxLoads is how often the scripts are loaded for one command: a client may
// flush them again between the load and the command.
const MaxLoads = 8

// Forgotten reports whether a node does not know the script, which it did as
// the connection began: a client has called SCRIPT FLUSH.
func Forgotten(err error) bool {
	e, ok := errors.AsType[resp.Error](err)
	return ok && e.Code() == "NOSCRIPT"
}

// Loads are the commands that load scripts.
func Loads(scripts []script.Script) []transport.Command {
	cmds := make([]transport.Command, 0, len(scripts)+2)
	for _, s := range scripts {
		cmds = append(cmds, &Request{Command: script.AppendLoad(nil, s)})
	}
	return cmds
}
