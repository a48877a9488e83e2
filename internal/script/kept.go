package script

// This file owns what is read beside the answers of scripts: a node's marker
// and its time, and the channel by which a client is found.

import (
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// Marker is a node's record of its own data: its incarnation, when that began,
// and whether it is caught up. mark.lua says how it is written.
type Marker struct {
	Inc      protocol.Incarnation
	Born     time.Time // when its guard time began, by its own clock
	CaughtUp bool      // it is caught up
	Kept     bool      // it was caught up when it entered the set, and has lost nothing since
	Run      string    // of the server: see transport.Info.Run
	guard    time.Duration
}

// ParseMarker reads a marker. One that cannot be read is treated as none: the
// node is taken for one without data. That is safe: such a node does not vote.
func ParseMarker(text string) (m Marker, ok bool) {
	words := strings.Fields(text)
	if len(words) < 4 {
		return m, false
	}
	var numbers [4]int64
	for i := range numbers {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil && i != 2 { // which is the run
			return m, false
		}
		numbers[i] = n
	}
	return Marker{
		Inc: protocol.Incarnation(numbers[0]), Born: time.UnixMilli(numbers[1]), Run: words[2],
		CaughtUp: strings.HasSuffix(text, " w"), Kept: strings.HasSuffix(text, " l"), guard: millis(numbers[3]),
	}, true
}

// Recovers is what is left of the guard time when the node's clock shows now.
func (m *Marker) Recovers(now time.Time) time.Duration { return max(0, m.Born.Add(m.guard).Sub(now)) }

// DecodeTime reads the answer to TIME.
func DecodeTime(v []resp.Value) (time.Time, error) {
	if len(v) != 2 {
		return time.Time{}, ErrAnswer
	}
	s, err1 := strconv.ParseInt(string(v[0].Str), 10, 40)
	us, err2 := strconv.ParseInt(string(v[1].Str), 10, 40)
	if err1 != nil || err2 != nil {
		return time.Time{}, ErrAnswer
	}
	return time.UnixMicro(s*1e6 + us), nil
}

// A Repairing is what a client that repairs a node says there of how far it is.
type Repairing struct {
	Host string
	PID  int
	Left int // records that it has yet to bring; -1: it lists them still
}

// TurnOf is the value of the key that says whose turn it is to repair a node:
// the client's channel and how many records are left, so each client can tell
// how long it takes.
func TurnOf(channel string, left int) string { return channel + " " + strconv.Itoa(left) }

// ParseTurn reads what TurnOf has written. ok is false if no client has the
// turn. A channel has no blank: Hostname replaces those, and Settings.Check
// refuses them in a prefix. What another program wrote there may show as
// process 0, and harms nothing: only Check reads it.
func ParseTurn(value string) (r Repairing, ok bool) {
	channel, left, found := strings.Cut(value, " ")
	if !found {
		return r, false
	}
	r.Left = -1
	if n, err := strconv.Atoi(left); err == nil {
		r.Left = n
	}
	r.Host, r.PID, _ = ParseOwner(channel)
	return r, true
}

// String says how far the repair is.
func (r *Repairing) String() string {
	if r.Left < 0 {
		return fmt.Sprintf("process %d on %s lists what was recorded", r.PID, r.Host)
	}
	return fmt.Sprintf("process %d on %s brings what was recorded, %d left", r.PID, r.Host, r.Left)
}

// NewChannel returns the channel of a client. It ends in random text: hosts may
// share a name and processes a pid, as in containers.
func NewChannel(prefix, label string) string {
	channel := fmt.Sprintf("%s:push:%s:%d:%s", prefix, Hostname(), os.Getpid(), rand.Text()[:12])
	if label != "" {
		channel += "." + label
	}
	return channel
}

// Hostname lets an operator find the process by PUBSUB CHANNELS, by the queue
// of a name, or by a record. It is this host's, fit to be part of a channel's
// name: ParseOwner cuts the channel at colons, and ParseTurn at a blank.
func Hostname() string {
	h, err := os.Hostname()
	if err != nil || h == "" {
		return "unknown"
	}
	return strings.Map(func(r rune) rune {
		if r == ':' || r == ' ' {
			return '-'
		}
		return r
	}, h)
}

// ParseOwner reads host, process and label from a channel. One of another form
// has no host. Parts are counted from the end: a prefix may contain colons.
func ParseOwner(channel string) (host string, pid int, label string) {
	parts := strings.Split(channel, ":")
	if len(parts) < 3 {
		return "", 0, ""
	}
	if n, err := strconv.Atoi(parts[len(parts)-2]); err == nil && n > 0 {
		pid = n
	}
	_, label, _ = strings.Cut(parts[len(parts)-1], ".")
	return parts[len(parts)-3], pid, label
}
