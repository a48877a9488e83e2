package script

// This file owns the commands by which a node learns which set it belongs to.
// Invariant: each answer is the whole record of the node, as text. A restore
// names that text, and the node compares it. So a step that another client took
// in between is never overwritten.

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// OtherSet is the code of the error by which a node refuses a request that
// counts on another configuration than its own.
const OtherSet = "OTHERSET"

// AppendSet appends the EVALSHA of a step of the set's register. The node
// begins another incarnation with random if it has forgotten what it was. runID
// must not be empty.
func AppendSet(dst []byte, prefix string, s nodeset.RecordStep, random protocol.ID, runID string) []byte {
	op, ballot, config := s.Kind.String(), string(s.Ballot), ""
	switch {
	case s.Enters():
		op = "enter"
	case s.Kind == nodeset.SetCommit && s.Ready:
		op = "ready"
	}
	var guard time.Duration
	switch s.Kind {
	case nodeset.SetRestore:
		ballot = s.Seen
	case nodeset.SetLife:
		ballot = s.Life
	}
	if s.Config != nil {
		config, guard = s.Config.String(), s.Config.Guard()
	}
	dst = resp.AppendArray(dst, 3+1+more(tagOf(prefix))+7)
	dst = resp.AppendString(dst, "EVALSHA")
	dst = resp.AppendString(dst, built().set.SHA)
	dst = appendKeys(dst, SetKey(prefix))
	dst = resp.AppendString(dst, op)
	dst = resp.AppendString(dst, ballot)
	dst = resp.AppendString(dst, s.Identity)
	dst = resp.AppendString(dst, config)
	dst = resp.AppendString(dst, random.String())
	dst = resp.AppendString(dst, runID)
	return resp.AppendInt(dst, guard.Milliseconds())
}

// Life returns the script that has a blank server keep a word, and what it is
// called with. The answer is what the server keeps.
func Life(prefix, word string) (s Script, keys []string, args []any) {
	return built().set, []string{SetKey(prefix)}, []any{nodeset.SetLife.String(), word, "", "", protocol.ID{}.String(), "-", "0"}
}

// DecodeSet reads the answer to AppendSet.
func DecodeSet(v []resp.Value) (nodeset.NodeSet, error) {
	if len(v) != 1 || v[0].Str == nil {
		return nodeset.NodeSet{}, fmt.Errorf("%w: set", ErrAnswer)
	}
	n, ok := nodeset.ParseNodeSet(string(v[0].Str))
	if !ok {
		return n, fmt.Errorf("%w: set", ErrAnswer)
	}
	return n, nil
}

// Written is what a node keeps of a record, beside the promise.
type Written struct {
	protocol.Version
	Erased bool
	Until  time.Time // when the node forgets it; zero: never
	Value  string
}

// ParseWritten reads a record as record.lua keeps it. ok is false where nothing
// was recorded, and for a text that makes no sense.
func ParseWritten(text string) (w Written, ok bool) {
	words := strings.SplitN(text, " ", 9)
	if len(words) != 9 {
		return w, false
	}
	ticket, err1 := strconv.ParseUint(words[3], 10, 64)
	id, ok := protocol.ParseID(words[4])
	seq, err2 := strconv.ParseUint(words[5], 10, 64)
	until, err3 := strconv.ParseUint(words[7], 10, 63)
	if err1 != nil || err2 != nil || err3 != nil || !ok || ticket == 0 {
		return w, false
	}
	w.Ticket, w.ID, w.Seq = protocol.Ticket(ticket), id, seq
	w.Erased, w.Value = words[6] != "0", words[8]
	if until > 0 {
		w.Until = time.UnixMilli(int64(until))
	}
	return w, true
}

// ParseSuccessor reads what a node's register says of what follows a
// configuration. It returns nil where that is nothing, or makes no sense.
func ParseSuccessor(text string) (protocol.Version, *nodeset.Configuration) {
	w, ok := ParseWritten(text)
	if !ok || w.Erased {
		return protocol.Version{}, nil
	}
	c, ok := nodeset.ParseConfiguration(w.Value)
	if !ok {
		return protocol.Version{}, nil
	}
	return w.Version, c
}
