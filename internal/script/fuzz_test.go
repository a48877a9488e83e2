package script_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/script"
)

// FuzzDecode lets a node say anything: an error is fine, a panic or a belief
// that breaks the bounds the protocol counts on is not.
func FuzzDecode(f *testing.F) {
	ints := func(v ...int64) (b []byte) {
		for _, x := range v {
			b = binary.AppendVarint(append(b, 0), x)
		}
		return b
	}
	text := func(s string) []byte { return append([]byte{1, byte(len(s))}, s...) }
	f.Add(ints(1, 1<<50, 1<<51, 9))
	f.Add(ints(1, 7, 640, 2, 8000))
	f.Add(append(append(ints(1, 7, 640, 24, 8000, 1, 0xa0a0a0a0a0a0a), text(strings.Repeat("0a", 16))...), ints(1)...))
	f.Add(ints(2, 7, 640))
	f.Add(ints(3, 7, 20000))
	f.Add(ints(4, 7, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		var v []resp.Value
		for len(b) > 0 {
			kind := b[0]
			b = b[1:]
			if kind&1 == 0 {
				x, n := binary.Varint(b)
				if n <= 0 {
					break
				}
				v, b = append(v, resp.Value{Int: x}), b[n:]
			} else if len(b) > 0 {
				n := min(int(b[0]), len(b)-1)
				v, b = append(v, resp.Value{Str: b[1 : n+1]}), b[n+1:]
			}
		}
		a, err := script.Decode(v)
		if err != nil {
			return
		}
		if a.Status < protocol.OK || a.Status > protocol.Clash || a.Ticket >= protocol.MaxTicket ||
			a.Wait < 0 || a.Digest >= protocol.DigestMod || a.Incarnation == 0 || (a.Vote && a.Ticket == 0) {
			t.Fatalf("believed %+v", a)
		}
	})
}

func FuzzParsePush(f *testing.F) {
	id := strings.Repeat("0a", 16)
	f.Add("v 7 " + id + " 640 1 0 0")
	f.Add("w 7 " + id + " 640")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := script.ParsePush(s)
		if err == nil && (p.Ticket == 0 || p.Ticket >= protocol.MaxTicket || p.Digest >= protocol.DigestMod || p.Incarnation == 0) {
			t.Fatalf("believed %+v", p)
		}
	})
}
