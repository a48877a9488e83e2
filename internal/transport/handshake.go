package transport

// The handshake of a connection, before it carries commands, and the questions
// to the node about itself.

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/quorate/quorate/internal/resp"
)

// handshake takes two round trips, or one if Hello has nothing to send. It runs
// on run's goroutine. No other goroutine knows the connection yet, so handshake
// needs no lock.
func (l *Ordered) handshake(c *conn, w io.Writer, login []loginStep) error {
	if err := l.greet(c, w, login); err != nil {
		return err
	}
	if c.info.aofNotReady() {
		return errAOFNotReady
	}
	c.greeted = true
	hello, err := l.cfg.Hello(*c.info)
	if err != nil {
		return err
	}
	c.noVote = l.cfg.Votes != nil && !l.cfg.Votes()
	var out []byte
	for _, cmd := range hello {
		out = cmd.Append(out)
	}
	if len(out) > 0 {
		if _, err := w.Write(out); err != nil {
			abandon(hello, err)
			return c.whyClosed(err)
		}
	}
	var failed error
	for i, cmd := range hello {
		v, refused, err := c.readReply()
		if err != nil {
			abandon(hello[i:], err)
			return err
		}
		cmd.Reply(v, refused)
		if refused != nil && failed == nil {
			failed = refused
		}
	}
	return failed
}

// greet authenticates the connection and asks the node about itself. It changes
// nothing on the node. All questions are written before the first answer is
// read, so they take one round trip in all.
func (l *Ordered) greet(c *conn, w io.Writer, login []loginStep) error {
	out := appendSteps(nil, login)
	for _, words := range questions {
		out = resp.AppendCommand(out, words...)
	}
	probe := l.cfg.Probe()
	for _, cmd := range probe {
		out = cmd.Append(out)
	}
	began := time.Now()
	_, err := w.Write(out)
	if err != nil {
		err = c.whyClosed(err)
	}
	var turned error // away: why the server may close the connection
	for i, step := range login {
		if err != nil {
			break
		}
		var refused error
		var v []resp.Value
		v, refused, err = c.readReply()
		// Only the first answer measures the round trip: later ones may have
		// waited behind slow answers.
		if i == 0 {
			c.info.RoundTrip = time.Since(began)
		}
		switch {
		case step.hello && err == nil && refused == nil && subscribesBeside(v):
			c.info.Protocol = 3
		case refused != nil && !step.accepts(refused):
			err = step.refused(refused) // later answers add nothing
		case refused != nil && step.hello && !strings.HasPrefix(refused.Error(), "ERR unknown command"):
			turned = step.refused(refused)
		case err != nil && turned != nil:
			err = fmt.Errorf("the server refused the client: %w, and closed the connection: %w", turned, err)
		}
	}
	if err == nil {
		err = c.identify()
	}
	for err == nil && len(probe) > 0 {
		var v []resp.Value
		var refused error
		if v, refused, err = c.readReply(); err == nil {
			probe[0].Reply(v, refused)
			probe = probe[1:]
		}
	}
	if err != nil {
		abandon(probe, err)
	}
	return err
}

// upgrade adds HELLO 3 at the point where the node already knows the user. Old
// nodes, proxies and nodes that forbid HELLO refuse it, and the connection goes
// on with RESP2.
func upgrade(login []loginStep) []loginStep {
	at := 0
	if first := login[0]; first.words[0] == "AUTH" {
		at = 1
	}
	return slices.Insert(login, at, loginStep{words: []string{"HELLO", "3"}, hello: true})
}

// subscribesBeside reports whether a server, judging by its answer to HELLO,
// executes commands on a subscribed connection. Other servers, such as
// miniredis, may speak RESP3 and still refuse such commands.
func subscribesBeside(hello []resp.Value) bool {
	for i := 0; i+1 < len(hello); i += 2 {
		if string(hello[i].Str) == "server" {
			return slices.Contains([]string{"redis", "valkey", "redict", "keydb"}, string(hello[i+1].Str))
		}
	}
	return false
}

// abandon calls Reply for the commands of a failed handshake. Without this a
// command from Hello would seem to be in flight forever.
func abandon(cmds []Command, cause error) {
	err := fmt.Errorf("%w: %w", ErrBroken, cause)
	for _, cmd := range cmds {
		cmd.Reply(nil, err)
	}
}

// readReply reads one answer: refused is the node's error, err the
// connection's. Nothing is subscribed yet, so pushes are ignored.
func (c *conn) readReply() (v []resp.Value, refused, err error) {
	for v, err = c.rd.Read(); err == nil && c.rd.IsPush(); v, err = c.rd.Read() {
	}
	if gone := c.elsewhere(err); gone != nil {
		return nil, nil, gone
	}
	if e, ok := err.(resp.Error); ok {
		return nil, e, nil
	}
	return v, nil, err
}

// whyClosed adds the node's reason to the error of a failed write, if the node
// has sent one before it closed the connection. With TLS 1.3, for example, the
// client's side of the handshake ends before the server notices that a
// certificate is missing.
func (c *conn) whyClosed(err error) error {
	if slow(err) {
		return err // a read would take just as long again
	}
	_, refused, why := c.readReply()
	if refused != nil {
		why = loginStep{words: []string{"AUTH"}}.refused(refused)
	} else if op, ok := errors.AsType[*net.OpError](why); !ok || op.Op != "remote error" {
		return err
	}
	return fmt.Errorf("%w: %w", err, why)
}

// identify fills c.info from the answers to questions. None of them is
// indispensable, so a refusal is not an error.
func (c *conn) identify() error {
	for i := range questions {
		v, refused, err := c.readReply()
		switch {
		case err != nil:
			return err
		case i == 0 && refused != nil:
			c.info.NoInfo, _ = refused.(resp.Error)
		case refused != nil || len(v) == 0:
		case i == 3:
			c.info.FsyncAlways = len(v) == 2 && string(v[1].Str) == "always"
		default:
			c.info.parse(string(v[0].Str))
		}
	}
	return nil
}

// questions ask a node about itself. identify knows them by their index. They
// are sent together with the login, so that a handshake takes one round trip if
// Hello has nothing to send.
var questions = [][]string{
	{"INFO", "server"}, {"INFO", "replication"}, {"INFO", "persistence"},
	{"CONFIG", "GET", "appendfsync"}, {"INFO", "memory"},
}

// parse reads one section of INFO. It ignores unknown fields, which other kinds
// of servers send. Missing fields stay zero.
func (i *Info) parse(section string) {
	host := ""
	for line := range strings.Lines(section) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "run_id":
			i.RunID = short(value)
		case "redis_version":
			i.Version = short(value)
		case "role":
			i.Role = short(value)
		case "redis_mode":
			if value == "sentinel" { // a Sentinel reports no role
				i.Role = value
			}
		case "master_host":
			host = short(value)
		case "master_port":
			i.Master = net.JoinHostPort(host, short(value))
		case "maxmemory_policy":
			i.Eviction = short(value)
		case "aof_enabled":
			i.AOFEnabled = value == "1"
		case "master_replid2":
			if strings.Trim(value, "0") != "" {
				i.Former = short(value[:min(len(value), 16)])
			}
		case "aof_rewrite_in_progress", "aof_rewrite_scheduled":
			i.Rewriting = i.Rewriting || value == "1"
		}
	}
}

// short returns s if it is a word of the usual length, otherwise "". The word
// is sent back to the node with every connection.
func short(s string) string {
	if len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) ||
			!unicode.IsPrint(r)
	}) {
		return ""
	}
	return s
}

// aofNotReady reports whether the server was a replica until a moment ago and
// has not yet rewritten its append-only file. Until it has, it does not write
// to that file, so fsync=always protects nothing: a restart would bring back
// the earlier data, with a marker that says that nothing is missing. So such a
// server must not confirm anything.
func (i *Info) aofNotReady() bool {
	return i.AOFEnabled && i.FsyncAlways && i.Former != "" && i.Rewriting
}
