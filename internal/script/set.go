package script

// This file owns the commands by which a node learns which set it belongs to.
//
// Invariant: each answer is the whole record of the node, as text. A restore
// names that text, and the node compares it. So a step that another client took
// in between is never overwritten.

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// OtherSet is the code of the error by which a node refuses a request that
// counts on another configuration than its own.
const OtherSet = "OTHERSET"

// AppendSet appends the EVALSHA of a step of the set's register. The node
// begins another incarnation with random if it has forgotten what it was. runID
// must not be empty.
func AppendSet(dst []byte, prefix string, s protocol.RecordStep, random protocol.ID, runID string) []byte {
	op, ballot, config := s.Kind.String(), string(s.Ballot), ""
	switch {
	case s.Enters():
		op = "enter"
	case s.Kind == protocol.SetCommit && s.Ready:
		op = "ready"
	}
	var guard, retention time.Duration
	switch s.Kind {
	case protocol.SetRestore:
		ballot = s.Seen
	case protocol.SetLife:
		ballot = s.Life
	}
	if s.Config != nil {
		config, guard, retention = s.Config.String(), s.Config.Guard(), s.Config.Retention()
	}
	dst = resp.AppendArray(dst, 3+1+more(tagOf(prefix))+7)
	dst = resp.AppendString(dst, "EVALSHA")
	dst = resp.AppendString(dst, set.SHA)
	dst = appendKeys(dst, SetKey(prefix))
	dst = resp.AppendString(dst, op)
	dst = resp.AppendString(dst, ballot)
	dst = resp.AppendString(dst, s.Identity)
	dst = resp.AppendString(dst, config)
	dst = resp.AppendString(dst, random.String())
	dst = resp.AppendString(dst, runID)
	return appendPromise(dst, guard, retention)
}

// DecodeSet reads the answer to AppendSet.
func DecodeSet(v []resp.Value) (protocol.NodeSet, error) {
	if len(v) != 1 || v[0].Str == nil {
		return protocol.NodeSet{}, fmt.Errorf("%w: set", ErrAnswer)
	}
	n, ok := protocol.ParseNodeSet(string(v[0].Str))
	if !ok {
		return n, fmt.Errorf("%w: set", ErrAnswer)
	}
	return n, nil
}
