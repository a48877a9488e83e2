package transport

// The first bytes of a connection, before it carries commands, and what the
// node is asked about itself.

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

// handshake takes one round trip if there is nothing to tell the node, else
// two. It runs on run's goroutine. No other goroutine knows the connection yet,
// so it takes no lock while it waits for answers.
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

// greet authenticates the connection and asks the node about itself. Nothing
// that it sends changes anything on the node. All questions are written before
// the first answer is read: one round trip, however many there are.
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
		// Later answers may have waited behind slow ones: the first one
		// measures the way.
		if i == 0 {
			c.info.RoundTrip = time.Since(began)
		}
		switch {
		case step.hello && err == nil && refused == nil && subscribesBeside(v):
			c.info.Protocol = 3
		case refused != nil && !step.accepts(refused):
			err = step.refused(refused) // the answers after this one say nothing more
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

// upgrade adds HELLO 3 where the node knows the user already. A node may refuse
// it: an old one, one that forbids it, or a proxy. It then goes on with RESP2.
func upgrade(login []loginStep) []loginStep {
	at := 0
	if first := login[0]; first.words[0] == "AUTH" {
		at = 1
	}
	return slices.Insert(login, at, loginStep{words: []string{"HELLO", "3"}, hello: true})
}

// subscribesBeside reports whether a server, by its answer to HELLO, is known
// to execute commands on a subscribed connection. Others may speak RESP3 and
// refuse them, as miniredis does.
func subscribesBeside(hello []resp.Value) bool {
	for i := 0; i+1 < len(hello); i += 2 {
		if string(hello[i].Str) == "server" {
			return slices.Contains([]string{"redis", "valkey", "redict", "keydb"}, string(hello[i+1].Str))
		}
	}
	return false
}

// abandon gives the commands of a handshake that failed their one Reply.
// Without it a command of Hello would stay under way forever.
func abandon(cmds []Command, cause error) {
	err := fmt.Errorf("%w: %w", ErrBroken, cause)
	for _, cmd := range cmds {
		cmd.Reply(nil, err)
	}
}

// readReply reads one answer: refused is the node's error, err the
// connection's. Nothing is subscribed yet, so a push is of no interest.
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

// whyClosed adds to the error of a write why the node has closed the
// connection, if it has said so.
// What the node has said is read before the error counts. With TLS
// 1.3 the client's side of the handshake is over before the server has seen
// that a certificate is missing.
func (c *conn) whyClosed(err error) error {
	if slow(err) {
		return err // a read would wait as long again
	}
	_, refused, why := c.readReply()
	if refused != nil {
		why = loginStep{words: []string{"AUTH"}}.refused(refused)
	} else if op, ok := errors.AsType[*net.OpError](why); !ok || op.Op != "remote error" {
		return err
	}
	return fmt.Errorf("%w: %w", err, why)
}

// identify fills c.info from the answers to questions. None is indispensable,
// so a refusal is not an error.
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
// go out with the login, so that a connection that has nothing to tell the node
// takes one round trip.
var questions = [][]string{
	{"INFO", "server"}, {"INFO", "replication"}, {"INFO", "persistence"}, {"CONFIG", "GET", "appendfsync"}, {"INFO", "memory"},
}

// parse takes one section of INFO. It ignores what it does not know: servers of
// other makes send other fields. What is missing stays zero.
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
			if value == "sentinel" { // it has no role
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

// short returns a word of a usual length, else nothing: it goes back to the
// node with every connection.
func short(s string) string {
	if len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return ""
	}
	return s
}

// aofNotReady reports whether the server was a replica until a moment ago and
// has not yet rewritten its append-only file. Until then it does not write to
// that file, so fsync=always protects nothing: a restart brings back the
// earlier data, with a marker that says that all is well. So the server must
// confirm nothing.
func (i *Info) aofNotReady() bool {
	return i.AOFEnabled && i.FsyncAlways && i.Former != "" && i.Rewriting
}
