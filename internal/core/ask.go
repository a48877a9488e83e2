package core

import (
	"bytes"
	"context"

	"github.com/quorate/quorate/internal/fault"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
	"github.com/quorate/quorate/internal/transport"
)

// This file owns the commands whose caller waits for the answer: those of
// bootstrap, check, inspection and repairs. They belong to no claim.
// Invariant: no wait here is without a bound. A command itself has no timeout,
// because a late answer keeps its place in the order of the connection; so each
// caller brings a context that ends, and an answer that comes later is dropped.

// do has a node carry out one command, and waits for its answer until the
// context ends: a node that hangs delays no other call. The caller holds no
// lock. It must not be the reader of this node, which would wait for an answer
// that it reads itself.
func (l *connection) do(ctx context.Context, words ...string) ([]resp.Value, error) {
	return l.answer(ctx, resp.AppendCommand(nil, words...))
}

// answer is do for an encoded command. The values belong to the caller: those
// of a reply are valid during the reply only. The channel has room for the
// answer, so that the reader never waits for a caller that has given up.
func (l *connection) answer(ctx context.Context, command []byte) ([]resp.Value, error) {
	type answer struct {
		v   []resp.Value
		err error
	}
	done := make(chan answer, 1)
	c := &adminRequest{command: command}
	again := 0
	c.reply = func(v []resp.Value, err error) {
		// It was not carried out. It goes again, behind the scripts.
		if forgotten(err) && again < maxLoads {
			again++
			l.reload(c)
			return
		}
		kept := make([]resp.Value, len(v))
		for i, w := range v {
			kept[i] = resp.Value{Int: w.Int, Str: bytes.Clone(w.Str)}
		}
		done <- answer{kept, err}
	}
	l.send(c)
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
		return nil, fault.ErrNoAnswer
	}
}

// text is the i-th value of an answer as a string, empty if there is none.
// Answers have the length that a node chose, so each access is checked here.
func text(v []resp.Value, i int) string {
	if i < 0 || i >= len(v) {
		return ""
	}
	return string(v[i].Str)
}

// reload sends c again to a node that does not know the scripts. All of them go
// before it, unless they are under way already.
func (l *connection) reload(c transport.Command) {
	if !l.loading.CompareAndSwap(false, true) {
		l.send(c)
		return
	}
	cmds := loads(script.All())
	cmds[len(cmds)-1].(*adminRequest).reply = func([]resp.Value, error) { l.loading.Store(false) }
	l.send(append(cmds, c)...)
}
