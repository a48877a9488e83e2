package script

// The format of the requests and answers of operations on records.
// lease/register_events.go decides what an answer means.
// Invariant: all four operations are one script, so a node always reads its
// marker, drops what has expired and answers with the record in the same way.

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
)

// appendRecord appends the EVALSHA of an operation on a record. A read also
// watches the record for t.ID, for t.TTL, unless t.ID is zero.
// Invariant: an erasure is a put with its flag set, not an absent value.
func appendRecord(
	dst []byte, k Keys, t *protocol.Terms, owner string, guard time.Duration, r protocol.Request,
) []byte {
	args := 8
	switch r.Op {
	case protocol.OpRead:
		args = 5
	case protocol.OpRepair:
		args = 10
	}
	dst = resp.AppendArray(dst, 3+5+more(tagOf(k.prefix))+args)
	dst = resp.AppendString(dst, "EVALSHA")
	dst = resp.AppendString(dst, built().record.SHA)
	dst = k.appendRecord(dst)
	dst = resp.AppendInt(dst, guard.Milliseconds())
	dst = resp.AppendString(dst, r.Op.String())
	id := t.ID
	if r.Op != protocol.OpRead {
		id = r.Stored.ID
	}
	text := make([]byte, 0, 2*len(id))
	if id != (protocol.ID{}) || r.Op != protocol.OpRead {
		text = hex.AppendEncode(text, id[:])
	}
	if r.Op == protocol.OpRead {
		dst = resp.AppendInt(dst, t.TTL.Milliseconds())
		dst = resp.AppendBytes(dst, text)
		return resp.AppendString(dst, owner)
	}
	s := r.Stored
	dst = resp.AppendInt(dst, int64(s.Ticket))
	dst = resp.AppendBytes(dst, text)
	dst = resp.AppendInt(dst, int64(s.Seq))
	erased := int64(0)
	if s.Erased {
		erased = 1
	}
	dst = resp.AppendInt(dst, erased)
	dst = resp.AppendInt(dst, s.Keep.Milliseconds())
	dst = resp.AppendBytes(dst, s.Value)
	if r.Op == protocol.OpRepair {
		dst = resp.AppendInt(dst, int64(r.Promise.Ticket))
		dst = resp.AppendString(dst, r.Promise.ID.String())
	}
	return dst
}

// AppendCaughtUp appends the EVALSHA that tells a node that it is caught up:
// all it lost has been repaired. The node ignores it in any incarnation but
// inc, because it has lost more data since.
func AppendCaughtUp(dst []byte, marker string, inc protocol.Incarnation) []byte {
	dst = resp.AppendArray(dst, 3+1+more(tagOf(marker))+1)
	dst = resp.AppendString(dst, "EVALSHA")
	dst = resp.AppendString(dst, built().caughtUp.SHA)
	dst = appendKeys(dst, marker)
	return resp.AppendInt(dst, int64(inc))
}

// DecodeRecord parses the answer to an operation on a record:
//
//	status and clock, incarnation caughtUp, ticket id of the promise, ticket id seq erased keep left value    OK, Missing, StatusSuperseded, Ahead
//	as in Decode                                                                          Recovering
//
// It checks every value, and rejects an answer that no script writes.
func DecodeRecord(v []resp.Value) (protocol.Answer, error) {
	if len(v) == 3 {
		if a, err := Decode(v); err != nil || a.Status == protocol.Recovering {
			return a, err
		}
	}
	bad := func(i int) (protocol.Answer, error) {
		return protocol.Answer{}, fmt.Errorf("%w: value %d of a record", ErrAnswer, i)
	}
	if len(v) != 12 {
		return bad(len(v))
	}
	for i, x := range v {
		if text := i == 4 || i == 6 || i == 11; text != (x.Str != nil) || !text &&
			(x.Int < 0 || x.Int >= exact) {
			return bad(i)
		}
	}
	a := protocol.Answer{Status: protocol.Status(v[0].Int % 8), Clock: v[0].Int / 8 * 1000,
		Incarnation: protocol.Incarnation(v[1].Int)}
	switch a.Status {
	case protocol.OK, protocol.Missing, protocol.StatusSuperseded, protocol.Ahead:
	default:
		return bad(0)
	}
	promise, ok1 := protocol.ParseID(string(v[4].Str))
	id, ok2 := protocol.ParseID(string(v[6].Str))
	switch {
	case a.Clock/1000 > maxClock:
		return bad(0)
	case a.Incarnation == 0:
		return bad(1)
	case v[2].Int > 2:
		return bad(2)
	case !ok1:
		return bad(4)
	case !ok2:
		return bad(6)
	case v[9].Int > maxKeep:
		return bad(9)
	case v[10].Int > maxWait:
		return bad(10)
	}
	e := &protocol.Entry{
		CaughtUp: v[2].Int == 1,
		Forged:   v[2].Int == 2,
		Promise:  protocol.Version{Ticket: protocol.Ticket(v[3].Int), ID: promise},
		Left:     time.Duration(v[10].Int) * time.Millisecond,
	}
	e.Version = protocol.Version{Ticket: protocol.Ticket(v[5].Int), ID: id, Seq: uint64(v[7].Int)}
	e.Erased, e.Keep = v[8].Int == 1, time.Duration(v[9].Int)*time.Millisecond
	if len(v[11].Str) > 0 {
		e.Value = append([]byte(nil), v[11].Str...)
	}
	a.Record = e
	return a, nil
}

// maxKeep is the longest Duration in milliseconds.
const maxKeep = int64(1<<63-1) / int64(time.Millisecond)
