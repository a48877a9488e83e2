package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/resp"
)

// This file owns the hooks of the given client: dial hooks run for each
// connection, process hooks see each command.
//
// go-redis keeps hooks to itself. A Conn of the client has the same hooks, and
// one that is added to the Conn is the innermost: it ends the chain, so that
// go-redis sends nothing.
//
// Invariant: no hook runs on a goroutine that reads or writes, and none delays,
// changes or prevents a command. Without that a slow hook would break the order
// of commands, or hold up a leave. go-redis's own full-duplex pipeline treats
// its hooks in the same way. A hook can refuse a connection, because no command
// is on it yet.

// How a command gets to the hooks:
//
//	show -> Conn.Process -> hooks of the client -> inner -> command.run, which waits for finish
//
// and how a connection is opened:
//
//	ping -> Conn.Process -> hooks of the client -> catch (notes itself) -> inner -> open -> openPlain
//	                                                                                or openHooked
//	openHooked -> Client.Subscribe -> dial hooks of the client -> catch.DialHook -> lend
//
// command is what hooks see. It is a redis.Cmder that the innermost hook knows.
type command struct {
	*redis.Cmd
	run    func(ctx context.Context) error
	caught bool // the client has the hook that catches dials
}

// inner is the innermost hook of a Conn. It runs a command of ours and never
// calls next for it, so the Conn opens no connection.
type inner struct{}

func (inner) DialHook(next redis.DialHook) redis.DialHook                               { return next }
func (inner) ProcessPipelineHook(n redis.ProcessPipelineHook) redis.ProcessPipelineHook { return n }

func (inner) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if c, ok := cmd.(*command); ok {
			return c.run(ctx)
		}
		return next(ctx, cmd)
	}
}

// catch is the hook that a client with hooks gets from us, to take over what it
// dials for us. It does nothing for the client's own connections.
type catch struct{}

// catching is the key of the handle in the context of a dial of ours. A hook
// that dials with another context hides the handle: see errDialed.
type catching struct{}

func (catch) ProcessPipelineHook(n redis.ProcessPipelineHook) redis.ProcessPipelineHook { return n }

func (catch) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if c, ok := cmd.(*command); ok {
			c.caught = true
		}
		return next(ctx, cmd)
	}
}

func (catch) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := next(ctx, network, addr)
		h, ours := ctx.Value(catching{}).(*borrowed)
		if err != nil || !ours || nc == net.Conn(h) { // two connections that begin at once may both have added the hook
			return nc, err
		}
		return h.lend(nc)
	}
}

// hooks are those that a client had when a connection was opened.
//
// Hooks that the owner adds later count from the next connection on, because
// go-redis copies them to the Conn.
type hooks struct {
	l      *Ordered
	conn   *redis.Conn
	room   chan struct{} // as many places as commands may be shown at a time
	behind bool          // there was none. Guarded by Ordered.mu
}

// shownAtOnce bounds the goroutines in which hooks run. A command that finds no
// place is sent all the same: only the hooks miss it, and the owner is notified
// once for each connection.
const shownAtOnce = 1024

// newHooks copies the client's hooks as they are now. inner is added last,
// which makes it the innermost.
func newHooks(l *Ordered) *hooks {
	h := &hooks{l: l, conn: l.to().client.Conn(), room: make(chan struct{}, shownAtOnce)}
	h.conn.AddHook(inner{})
	return h
}

// ping shows the PING that a connection begins with to the hooks, and opens the
// connection inside. present says whether there is any hook.
func (h *hooks) ping(ctx context.Context, open func(ctx context.Context, present, caught bool) (*opened, error)) (*opened, error) {
	var o *opened
	cmd := &command{Cmd: redis.NewCmd(ctx, "ping")}
	cmd.run = func(ctx context.Context) (err error) {
		if o == nil { // a hook may try again
			o, err = open(ctx, !direct(), cmd.caught)
		}
		cmd.SetVal("PONG")
		return err
	}
	err := h.conn.Process(ctx, cmd)
	if err == nil && o == nil {
		err = errSwallowed
	}
	if err != nil && o != nil {
		o.close()
		o = nil
	}
	return o, err
}

// The packages whose functions a call passes through if no hook is present.
var (
	goRedis = reflect.TypeFor[redis.Client]().PkgPath()
	own     = reflect.TypeFor[command]().PkgPath() + "."
)

// direct reports whether go-redis has called the innermost hook, and no other
// hook has: between its functions on the stack and ours there is no other.
func direct() bool {
	return calledBy(own, goRedis+".", own)
}

// handedOver reports whether a call comes from go-redis itself. Another hook's
// connection around the handle may encrypt or count, and is not there once the
// handle is taken back.
func handedOver() bool {
	return calledBy(own, "bufio.", goRedis)
}

// calledBy reports whether the functions on the stack, from here on outwards,
// are of the given packages, and reach the last one. Each but the last may be
// missing.
func calledBy(packages ...string) bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	f, more := frames.Next()
	for ; len(packages) > 1; packages = packages[1:] {
		for more && strings.HasPrefix(f.Function, packages[0]) {
			f, more = frames.Next()
		}
	}
	return strings.HasPrefix(f.Function, packages[0])
}

// openHooked opens a connection as the client opens one for a subscription, so
// that its dial hooks run, and its process hooks see how it logs in. go-redis
// then has a handle that has ceased to work, until the connection ends.
func (l *Ordered) openHooked(ctx context.Context, caught bool, timeout time.Duration) (*opened, error) {
	if !caught {
		l.to().client.AddHook(catch{})
	}
	h := &borrowed{hooked: true}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, catching{}, h), timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, h.drop)
	sub := l.to().client.Subscribe(ctx) // connects with Ping
	err := sub.Ping(ctx)
	h.back.Store(true)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	nc, bad := h.result()
	if err = cmp.Or(bad, err); err == nil && nc == nil {
		err = errDialed
	}
	if err != nil {
		h.drop()
		_ = sub.Close()
		return nil, err
	}
	o := &opened{nc: nc, login: []loginStep{{words: []string{"PING"}, sent: true}}, end: func() { _ = sub.Close() }}
	if l.to().opts.StreamingCredentialsProvider != nil {
		o.end() // else go-redis would authenticate again by itself
		o.end = nil
	}
	return o, nil
}

// lend takes what was dialed, and returns the handle that go-redis gets of it.
// A second connection is closed: the handle stands for one.
func (b *borrowed) lend(nc net.Conn) (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Conn != nil {
		discard(nc)
		return nil, errors.New("a DialHook dials twice")
	}
	b.Conn = nc
	return b, nil
}

// drop ends the connection, if there is one. It is called by the end of a
// context as well, so a hook that ignores its context has its reads and writes
// ended.
func (b *borrowed) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Conn != nil {
		discard(b.Conn)
	}
}

// result is the connection that was lent, and why it cannot be used.
func (b *borrowed) result() (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.bad != nil:
		return nil, b.bad
	case b.wrapped:
		return nil, errWrapped
	case b.Conn == nil:
		return nil, nil // go-redis says why
	case !b.framing.Between():
		return nil, errors.New("the node sends something unasked during the handshake")
	}
	return b.Conn, nil
}

// shown is a command that hooks see.
//
// Invariant: it is finished exactly once, by the reader with the answer, or by
// settle when the connection has broken. Without it a goroutine of show would
// wait forever, and so would each Close, until its bound.
type shown struct {
	done chan struct{}
	val  []any
	err  error
}

// show has the hooks see a command that has been encoded. Ordered.mu is held,
// so it starts a goroutine and waits for nothing. The goroutine ends when the
// hooks have returned and finish was called. The words are copied: out is
// reused after the write.
func (h *hooks) show(encoded []byte) *shown {
	l := h.l
	select {
	case h.room <- struct{}{}:
	default:
		if !h.behind {
			h.behind = true
			l.guests.Go(func() {
				l.cfg.Notice(errors.New("the hooks of the client are too slow, and do not see every command"))
			})
		}
		return nil
	}
	s := &shown{done: make(chan struct{})}
	ctx := context.Background()
	cmd := &command{Cmd: redis.NewCmd(ctx, words(encoded)...)}
	cmd.run = func(context.Context) error {
		<-s.done
		cmd.SetVal(s.val)
		return s.err
	}
	l.guests.Go(func() {
		defer func() { // also where a hook ends the goroutine, or hooks would see 1,024 more commands and then none
			<-s.done // a hook may keep the command to itself
			<-h.room
		}()
		_ = h.conn.Process(ctx, cmd)
	})
	return s
}

// finish ends the command for the hooks. The values are copied: the reader's
// are valid until its next read, and hooks may keep theirs. The close orders
// val and err before their readers.
func (s *shown) finish(v []resp.Value, err error) {
	for _, x := range v {
		if x.Str != nil {
			s.val = append(s.val, string(x.Str))
		} else {
			s.val = append(s.val, int64(x.Int))
		}
	}
	s.err = err
	close(s.done)
}

// words are those of a command that this package has encoded: *2 $3 GET $3 key.
// It checks nothing, because the bytes are our own.
func words(encoded []byte) (ws []any) {
	_, rest, _ := bytes.Cut(encoded, crlf)
	for len(rest) > 0 {
		length, after, _ := bytes.Cut(rest[1:], crlf)
		n, _ := strconv.Atoi(string(length))
		ws = append(ws, string(after[:n]))
		rest = after[n+len(crlf):]
	}
	return ws
}

var crlf = []byte("\r\n")

// Why hooks fail a connection. Each names the remedy where there is one: a hook
// that works for go-redis's own connections may not work for one that is taken
// over.
var (
	errSwallowed = errors.New("a ProcessHook of the client keeps the PING that a connection begins with")
	errDialed    = errors.New("a DialHook of the client connects by itself, or does not pass on its context; let Options.Dialer connect")
	errWrapped   = errors.New("a DialHook of the client wraps the connection; let Options.Dialer return it wrapped")
)
