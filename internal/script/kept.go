package script

// What clients read from a node besides the answers of scripts: its marker, its
// time, whose turn it is to repair it, and the channels of clients.

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
// and whether the node is caught up. mark.lua describes how it is written.
type Marker struct {
	Inc      protocol.Incarnation
	Born     time.Time // when its guard time began, by its own clock
	CaughtUp bool      // the node is caught up
	Kept     bool      // the node was caught up when it entered the set and has lost nothing since
	Run      string    // the server's run_id: see transport.Info.Run
	guard    time.Duration
}

// ParseMarker parses a marker. ok is false if it is missing or unreadable, and the
// caller treats the node as one without data. That is safe, because the scripts
// refuse every request on such a node, so it does not vote.
func ParseMarker(text string) (m Marker, ok bool) {
	words := strings.Fields(text)
	if len(words) < 4 {
		return m, false
	}
	var numbers [4]int64
	for i := range numbers {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil && i != 2 { // words[2] is the run_id
			return m, false
		}
		numbers[i] = n
	}
	return Marker{
		Inc: protocol.Incarnation(numbers[0]), Born: time.UnixMilli(numbers[1]), Run: words[2],
		CaughtUp: strings.HasSuffix(text, " w"), Kept: strings.HasSuffix(text, " l"), guard: millis(numbers[3]),
	}, true
}

// Names reports whether the marker names that run of the server, as mark.lua
// does. A server that has had no replica for repl-backlog-ttl, an hour by
// default, forgets the master that it replicated: its run is "r" and no longer
// "r+former". It has lost nothing then.
func (m *Marker) Names(run string) bool {
	return strings.HasPrefix(m.Run+"+", run+"+") //mutant:Restart=true
}

// Recovers returns how much of the guard time is left when the node's clock
// shows now.
func (m *Marker) Recovers(now time.Time) time.Duration { return max(0, m.Born.Add(m.guard).Sub(now)) }

// IsReleased reports whether the state of a name is only a retained ticket: no
// claim is there. See scripts/open.lua.
func IsReleased(state string) bool { return strings.HasPrefix(state, "R") }

// DecodeTime parses the answer to TIME.
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

// Repairing is the progress of the client that is repairing a node, as that
// client writes it to the node.
type Repairing struct {
	Host string
	PID  int
	Left int // records left to copy; -1 while the client is still listing them
}

// TurnOf returns the value of the key that says whose turn it is to repair a
// node: the client's channel and how many records are left. From it, every
// client can tell how long the repair will take.
func TurnOf(channel string, left int) string { return channel + " " + strconv.Itoa(left) }

// ParseTurn parses a value of TurnOf. ok is false if no client has the turn. A
// channel contains no space: Hostname replaces them, and Settings.Check rejects
// them in a prefix. A value that another program wrote may show as process 0.
// That is harmless, because only Check reads it.
func ParseTurn(value string) (r Repairing, ok bool) {
	channel, left, found := strings.Cut(value, " ")
	if !found {
		return r, false
	}
	r.Left = -1
	if n, err := strconv.Atoi(left); err == nil {
		r.Left = n
	}
	r.Host, r.PID, _, _ = ParseOwner(channel)
	return r, true
}

// String describes the progress of the repair.
func (r *Repairing) String() string {
	if r.Left < 0 {
		return fmt.Sprintf("process %d on %s lists what was recorded", r.PID, r.Host)
	}
	return fmt.Sprintf("process %d on %s brings what was recorded, %d left", r.PID, r.Host, r.Left)
}

// NewChannel returns a new channel for a client. It ends in random text because
// hosts can share a name and processes a PID, as in containers.
func NewChannel(prefix, label string) string {
	channel := fmt.Sprintf("%s:push:%s:%d:%s", prefix, Hostname(), os.Getpid(), rand.Text()[:12])
	if label != "" {
		channel += "." + label
	}
	return channel
}

// Hostname returns this host's name, with which an operator can find the
// process in PUBSUB CHANNELS, in the queue of a name or in a record. Colons and
// spaces are replaced, because ParseOwner splits a channel at colons and
// ParseTurn at a space.
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

// Candidate returns what precedes the note in the owner of a claim that belongs
// to a candidate of an election. Neither the ID nor a note contains a tab.
func Candidate(id string, priority int) string { return fmt.Sprintf("\t%d\t%s\t", priority, id) }

// ParseCandidate is the inverse of Candidate. If the owner is not a
// candidate's, the ID is "".
func ParseCandidate(owner string) (id string, priority int) {
	if parts := strings.Split(owner, "\t"); len(parts) == 4 {
		priority, _ = strconv.Atoi(parts[1])
		id = parts[2]
	}
	return id, priority
}

// ParseOwner parses the owner of a claim: a channel of NewChannel, which is
// PREFIX:push:HOST:PID:RANDOM[.LABEL], then a space and the note if there is
// one. It counts fields from the end because PREFIX may contain colons. With
// fewer than three fields it returns only the note; an unreadable PID is 0.
func ParseOwner(owner string) (host string, pid int, label, note string) {
	channel, note, _ := strings.Cut(owner, " ")
	note = note[strings.LastIndexByte(note, '\t')+1:]
	parts := strings.Split(channel, ":")
	if len(parts) < 3 {
		return "", 0, "", note
	}
	if n, err := strconv.Atoi(parts[len(parts)-2]); err == nil && n > 0 {
		pid = n
	}
	_, label, _ = strings.Cut(parts[len(parts)-1], ".")
	return parts[len(parts)-3], pid, label, note
}
