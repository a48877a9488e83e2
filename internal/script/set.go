package script

// The commands by which a node learns which set it belongs to.
// Invariant: each answer is the node's whole record, as text. A restore
// includes the text that the client has seen, and the node compares that with
// its own. So a restore never overwrites a step that another client took in
// between.

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/nodeset"
	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// OtherSet is the code of the error with which a node refuses a request that is
// based on another configuration than the node's own.
const OtherSet = "OTHERSET"

// AppendSet appends the EVALSHA of one step of recording or changing a node's
// set. If the node has lost its data, it begins a new incarnation, made from
// random. runID must not be empty.
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

// Life returns the script, keys and arguments with which a blank server stores
// word. The answer is what the server stores.
func Life(prefix, word string) (s Script, keys []string, args []any) {
	return built().set, []string{SetKey(prefix)}, []any{nodeset.SetLife.String(), word, "", "",
		protocol.ID{}.String(), "-", "0"}
}

// DecodeSet parses the answer to AppendSet.
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

// Written is a node's record without the promise.
type Written struct {
	protocol.Version
	Erased bool
	Until  time.Time // when the node forgets it; zero: never
	Value  string
}

// ParseWritten parses a record as record.lua stores it. ok is false if nothing
// was recorded or the text is malformed.
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

// ParseSuccessor parses what a node's register says about the successor of a
// configuration. It returns nil if nothing was decided or the text is
// malformed.
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
