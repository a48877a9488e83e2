package script_test

import (
	"bytes"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// The fuzz targets let a node say anything, as bytes on its connection: an
// error that wraps ErrAnswer is fine, a panic is not, nor is a belief that
// breaks the bounds on which the protocol counts, nor one that changes when the
// connection reads the next reply into the same memory.
//
// Only the place of an answer on the connection tells what it is about, and
// nothing in it does. So one that is given for another name is as good as a
// lie; what lies can do is seen in internal/process. The answer to "caughtup"
// is not read.

const (
	maxWait   = 1000 * time.Hour
	maxNumber = 1 << 53
	aTime     = int64(1_700_000_000_000 * 8) // what is added to a status
)

// reply writes numbers and texts as a node does.
func reply(values ...any) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(values))
	for _, v := range values {
		switch v := v.(type) {
		case int, int64:
			b = fmt.Appendf(b, ":%d\r\n", v)
		case string:
			b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(v), v)
		}
	}
	return b
}

// text writes numbers as a node does where there are few.
func text(numbers ...int64) []byte {
	s := strings.Trim(fmt.Sprint(numbers), "[]")
	return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(s), s)
}

// read reads what decode makes of the reply in b, if anything: twice, with
// other bytes in the values' memory after the second time.
func read[T any](t *testing.T, b []byte, decode func([]resp.Value) (T, error)) (T, bool) {
	t.Helper()
	v, err := resp.NewReader(bytes.NewReader(b)).Read()
	if err != nil {
		var none T
		return none, false
	}
	want, err := decode(v)
	if err != nil {
		require.ErrorIs(t, err, script.ErrAnswer)
		return want, false
	}
	again, _ := resp.NewReader(bytes.NewReader(b)).Read()
	got, err := decode(again)
	require.NoError(t, err)
	for _, x := range again {
		clear(x.Str)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v became %+v", want, got)
	}
	return want, true
}

// seeds gives a target some answers that must be believed, and some that must
// not.
func seeds[T any](f *testing.F, decode func([]resp.Value) (T, error), good, bad [][]byte) {
	f.Helper()
	for i, b := range append(good, bad...) {
		v, err := resp.NewReader(bytes.NewReader(b)).Read()
		require.NoError(f, err)
		_, err = decode(v)
		require.Equal(f, i < len(good), err == nil, "%q: %v", b, err)
		f.Add(b)
	}
	f.Add([]byte("+OK\r\n"))
	f.Add([]byte("-NOPERM no\r\n"))
	f.Add([]byte("*-1\r\n"))
	f.Add([]byte("*1000000\r\n:1\r\n"))
}

var anID = strings.Repeat("0a", 16)

// long is an answer with a list of claims that weigh as much as can be, and
// that says that together they weigh sum.
func long(claims int, sum int64) []byte {
	values := []any{aTime + 1, 7, 640, 25, 0, sum, 0, sum, 0}
	for range claims {
		values = append(values, anID, int64(maxNumber-1))
	}
	return reply(values...)
}

func FuzzDecode(f *testing.F) {
	seeds(f, script.Decode, [][]byte{
		reply(aTime+1, int64(1<<50), int64(1<<51), 9),
		reply(1, 7, 640, 2, 8000),
		reply(1, 7, 640, 2+128*10_000, 8000),
		reply(aTime+1, 7, 640, 24, 8000, 1, int64(0xa0a0a0a0a0a0a), 2, 9, anID, 1),
		reply(aTime+1, 7, 640, 41, 0, 0, 0, 3, 600),
		reply(aTime+1, 7, 640, 63-4, 0, 5, 9, 3, 600, 5, 9, anID, 2, anID, 3),
		reply(aTime+1, 7, 640, 4, int64(60*24*3600*1000)), // another client's key has sixty days left
		reply(aTime+2, 7, 640),
		reply(aTime+3, 7, 20000),
		reply(aTime+4, 7, 3),
		reply(aTime+6, 7, 3),
		text(1_700_000_000, 999_999, 1<<50, 1<<51, 9),
		text(1_700_000_000, 0, 7, 640, 66, 8000),
	}, [][]byte{
		reply(aTime, 7, 640, 1),
		reply(aTime+1, 7, 640, 9+128), // it has the vote, and claims before it
		text(1_700_000_000, 5, 7, 640, 9+128),
		reply(aTime+1, 7, 640, 25, 0, 1, 9, 1, 9, anID, 2),
		// These weigh less than nothing if one counts modulo 2^64.
		long(2049, maxNumber-2049),
		long(5000, maxNumber-1),
		text(1_700_000_000, 5, 7),
		text(1_700_000_000, 5, 640, 9),
		text(1_700_000_000, 5, 7, 640, 25, 0, 1),
		text(-1_700_000_000, 5, 7, 640, 9),
		text(1_700_000_000, -5, 7, 640, 9),
		text(1_700_000_000, 1_000_000, 7, 640, 9),
		text(1<<43, 5, 7, 640, 9),
		reply(aTime+1, "7 640 9"),
		reply("1700000000 5 7  640 9"),
		reply(" 1700000000 5 7 640 9"),
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, ok := read(t, b, script.Decode); ok {
			believable(t, a)
		}
	})
}

func FuzzDecodeLeave(f *testing.F) {
	seeds(f, script.DecodeLeave, [][]byte{[]byte(":1\r\n")},
		[][]byte{reply(), reply(0), []byte(":2\r\n"), text(1), reply(1, 1)})
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, ok := read(t, b, script.DecodeLeave); ok {
			require.Equal(t, protocol.Answer{Status: protocol.OK}, a)
		}
	})
}

// believable fails unless an answer keeps the bounds.
func believable(t *testing.T, a protocol.Answer) {
	t.Helper()
	bound := func(ok bool, what string) {
		t.Helper()
		if !ok {
			t.Fatalf("%s: believed %+v", what, a)
		}
	}
	bound(a.Status >= protocol.OK && a.Status <= protocol.Ahead && a.Status != protocol.StatusSuperseded &&
		a.Record == nil, "status")
	bound(a.Incarnation > 0 && a.Incarnation < maxNumber, "incarnation")
	bound(a.Clock >= 0 && a.Clock/1000 <= 1<<43, "clock")
	bound(a.Ticket < protocol.MaxTicket && (a.Ticket > 0 || !a.Vote && !a.Foreign && !a.HasTotals), "ticket")
	bound(a.Wait >= 0 && a.Wait <= maxWait, "wait")
	bound(!a.Vote || !a.Foreign, "vote and foreign")
	bound(a.Rank == 0 || a.Rank > 0 && a.Status == protocol.OK && !a.Vote, "rank")
	bound(a.HasTotals || !a.Listed && a.Sum == 0 && a.Digest == 0, "totals")
	bound(a.Listed || a.Lower == nil && a.BaseSum == 0 && a.BaseDigest == 0 && a.AllSum == 0 && a.AllDigest == 0,
		"list")
	bound(!a.Listed || a.AllSum >= a.Sum && a.AllSum < maxNumber && a.AllDigest < protocol.DigestMod,
		"totals of all")
	bound(a.Sum < maxNumber && a.Digest < protocol.DigestMod && a.BaseDigest < protocol.DigestMod,
		"sum and digest")
	bound(a.Limit < maxNumber && a.LimitAt < protocol.MaxTicket && (a.Limit == 0) == (a.LimitAt == 0), "limit")
	bound(a.Capacity < maxNumber && (a.Capacity > 0) == (a.Status == protocol.Clash), "capacity")
	if a.Status != protocol.OK {
		bound(!a.Vote && !a.Waiters && !a.Foreign && !a.HasTotals && a.Limit == 0, "status and flags")
	}
	sum := new(big.Int).SetUint64(a.BaseSum)
	for _, l := range a.Lower {
		bound(l.Weight > 0 && l.Weight < maxNumber, "weight")
		sum.Add(sum, new(big.Int).SetUint64(l.Weight))
	}
	bound(!a.Listed || sum.Cmp(new(big.Int).SetUint64(a.Sum)) == 0, "the list weighs what it says")
}

func FuzzDecodeRecord(f *testing.F) {
	none := strings.Repeat("0", 32)
	seeds(f, script.DecodeRecord, [][]byte{
		reply(aTime+1, 7, 1, 0, none, 0, none, 0, 0, 0, 0, ""),
		reply(aTime+1, 7, 0, 640, anID, 640, anID, 1, 0, 3600000, 8000, `{"once":1}`),
		reply(aTime+2, 7, 1, 640, anID, 576, anID, 0, 1, 0, 0, ""),
		reply(aTime+5, 7, 1, 640, anID, 576, anID, 2, 0, int64(1<<40), 0, "4"),
		reply(aTime+6, 7, 1, 640, anID, 640, anID, 1, 0, 0, 0, ""),
		reply(aTime+3, 7, 20000),
	}, [][]byte{
		reply(aTime+3, 7, 1, 0, none, 0, none, 0, 0, 0, 0, ""),
		reply(aTime+1, 7, 640),
		reply(aTime+4, 7, 1, 0, none, 0, none, 0, 0, 0, 0, ""),
		reply(aTime+1, 7, 1, 0, none, 0, none, 0, 0, 0, 0),
		reply(aTime+1, 7, 1, 0, none, 0, none, 0, 0, 0, 0, 4),
		reply(aTime+1, 7, 1, 0, none, 0, "", 0, 0, 0, 0, ""),
		reply(aTime+1, 7, 1, 0, none, 0, none, 0, 0, int64(1<<50), 0, ""),
		reply(aTime+1, 7, 1, 0, none, 0, none, 0, 0, 0, int64(1<<50), ""),
		reply(aTime+1, 0, 1, 0, none, 0, none, 0, 0, 0, 0, ""),
		reply(aTime+1, 7, 1, int64(maxNumber), none, 0, none, 0, 0, 0, 0, ""),
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := read(t, b, script.DecodeRecord)
		if !ok {
			return
		}
		e := a.Record
		if a.Status == protocol.Recovering {
			require.Nil(t, e)
			believable(t, a)
			return
		}
		require.Contains(t, []protocol.Status{protocol.OK, protocol.Missing,
			protocol.StatusSuperseded, protocol.Ahead}, a.Status)
		require.NotNil(t, e)
		if a.Incarnation == 0 || a.Incarnation >= maxNumber || a.Clock < 0 || a.Clock/1000 > 1<<43 ||
			e.Ticket >= protocol.MaxTicket || e.Promise.Ticket >= protocol.MaxTicket || e.Seq >= maxNumber ||
			e.Keep < 0 || e.Left < 0 || e.Left > maxWait {
			t.Fatalf("believed %+v, %+v", a, e)
		}
		a.Record = nil
		require.Equal(t, protocol.Answer{Status: a.Status, Incarnation: a.Incarnation, Clock: a.Clock},
			a, "and nothing of a claim")
	})
}

// birth is what a marker tells.
type birth struct {
	inc protocol.Incarnation
	age time.Duration
}

func decodeBirth(v []resp.Value) (b birth, err error) {
	b.inc, b.age, err = script.DecodeMarker(v)
	return b, err
}

func FuzzDecodeMarker(f *testing.F) {
	seeds(f, decodeBirth, [][]byte{
		reply(7, 20000), reply(7, -20000), reply(int64(1<<52), int64(1_700_000_000_000)),
		reply(7, int64(1-maxNumber)),
	}, [][]byte{
		reply(0, 1), reply(-1, 1), reply(7), reply(7, 1, 1), reply("7", 1), reply(7, "1"),
		reply(int64(maxNumber), 1), reply(7, int64(maxNumber)),
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := read(t, b, decodeBirth)
		if ok && (got.inc == 0 || got.inc >= maxNumber || got.age.Abs() > maxWait) {
			t.Fatalf("believed %+v", got)
		}
	})
}

func FuzzDecodeInspect(f *testing.F) {
	seeds(f, script.DecodeInspect, [][]byte{
		reply(640, 0, 0, 60000, 0, 0, 0, 0),
		reply(640, 1, 8000, 60000, 1, 1, 0, 0, anID, 640, 1, 8000, 1, "quorate:push:host:1:ABC"),
		reply(640, 7, 0, 60000, 1, 1, 0, 0, anID, 576, 1, 1, 1, "", anID, 640, 1<<30, 8000, 0, "x"),
		reply(640, 1, 0, 60000, 1, 1, 5000, 2),
		reply(640, 0, int64(1<<50), 60000, 0, 0, 0, 0), // another client's key that stays for long
	}, [][]byte{
		reply(640, 0, 0, 60000), reply(640, 0, 0, 60000, 0, 0), reply(640, 0, 0, 60000, 0, 0, -1, 0),
		reply(640, 0, 0, 60000, 0, 0, 0, int64(maxNumber)), reply(640, 1, 0, 60000, 1, 2, 0, 0),
		reply(640, 0, 0, -1, 0, 0, 0, 0), reply(640, 0, 0, int64(maxNumber), 0, 0, 0, 0),
		reply(int64(maxNumber), 0, 0, 60000, 0, 0, 0, 0), reply(640, int64(maxNumber), 0, 60000, 0, 0, 0, 0),
		reply(640, 0, -1, 60000, 0, 0, 0, 0), reply(640, 0, int64(maxNumber), 60000, 0, 0, 0, 0),
		reply(640, 1, 0, 60000, 1, 1, 0, 0, anID, int64(maxNumber), 1, 8000, 1, ""),
		reply(640, 1, 0, 60000, 1, 1, 0, 0, anID, 640, int64(maxNumber), 8000, 1, ""),
		reply(640, 1, 0, 60000, 1, 1, 0, 0, anID, 640, 1, int64(maxNumber), 1, ""),
		reply(640, 1, 0, 60000, 1, 1, 0, 0, anID, 640, 1, 8000, 1),
		reply(640, 0, 0, 60000, 1, 0, 0, 0, anID, 640, 1, 8000, 1, ""),
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		q, ok := read(t, b, script.DecodeInspect)
		if !ok {
			return
		}
		if q.Fence >= protocol.MaxTicket || q.Queued < len(q.Claims) || int64(q.Queued) >= maxNumber ||
			q.Voted > q.Queued || q.Capacity >= maxNumber || q.Foreign < 0 || q.Memory < 0 || q.Evicted.Left < 0 ||
			q.Evicted.Heard < 0 || q.Evicted.Heard > 0 && !q.Evicted.Voted {
			t.Fatalf("believed %+v", q)
		}
		for _, c := range q.Claims {
			if c.Ticket >= protocol.MaxTicket || c.Weight >= maxNumber || c.Left < 0 {
				t.Fatalf("believed %+v", c)
			}
		}
	})
}
