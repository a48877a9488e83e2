package script_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/protocol"
	"github.com/quorate/quorate/internal/script"
	"github.com/stretchr/testify/require"
)

// FuzzParsePush reads any text that a client may publish. What is believed is
// what the scripts would have written, to the byte but for the letters of the
// id.
func FuzzParsePush(f *testing.F) {
	good := []string{
		"v 9 7 " + anID + " 640 1 0 0", "v 9 7 " + anID + " 640 0 3 4503599627370495",
		"v 9 7 " + anID + " 640 0 3 4 5 576",
		"w 9 7 " + anID + " 640", "a 9 7 " + anID + " 640", "e 9 7 " + anID + " 640",
		"r 9 7 " + anID + " 9007199254740991",
	}
	bad := []string{
		"v 9 7 " + anID + " 640 1 0 0 0", "v 9 7 " + anID + " 640 1 0 0 5 0", "v 9 7 " + anID + " 640 1 0 0 0 5",
		"v 9 7 " + anID + " 640 1 0 4503599627370496", "v 9 7 " + anID + " 640 1 00 0",
		"w 9 07 " + anID + " 640", "w 9 7 " + anID + " +640",
		"w 9 7 " + anID + " 640 ", "r 9 7 " + anID + " 9007199254740992",
		"r 8796093022209 7 " + anID + " 640", "x 9 7 " + anID + " 640",
		"v 9 7 " + anID + " 640 1 0 0" + strings.Repeat(" 0", 1000), strings.Repeat("v", 1<<16),
	}
	for i, s := range append(good, bad...) {
		_, err := script.ParsePush(s)
		require.Equal(f, i < len(good), err == nil, "%q: %v", s, err)
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := script.ParsePush(s)
		if err != nil {
			require.ErrorIs(t, err, script.ErrAnswer)
			require.Less(t, len(err.Error()), 1024, "a message and no dump")
			return
		}
		if p.Ticket == 0 || p.Ticket >= protocol.MaxTicket || p.Incarnation == 0 || p.Incarnation >= maxNumber ||
			p.Clock < 0 || p.Clock/1000 > 1<<43 ||
			p.Sum >= maxNumber || p.Digest >= protocol.DigestMod || p.Limit >= maxNumber ||
			p.LimitAt >= protocol.MaxTicket ||
			(p.Limit == 0) != (p.LimitAt == 0) || p.Vote && p.Changed {
			t.Fatalf("believed %+v", p)
		}
		id := p.ID.String()
		said := fmt.Sprintf("w %d %d %s %d", p.Clock/1000, p.Incarnation, id, p.Ticket)
		switch {
		case p.Vote:
			said = fmt.Sprintf("v%s %d %d %d", said[1:], map[bool]int{true: 1}[p.Waiters], p.Sum, p.Digest)
			if p.Limit > 0 {
				said += fmt.Sprintf(" %d %d", p.Limit, p.LimitAt)
			}
			p.Waiters = false // a vote may come with waiters
		case p.Changed:
			said = "r" + said[1:]
		case p.Ask:
			said = "a" + said[1:]
		case p.Evict:
			said = "e" + said[1:]
		}
		require.ElementsMatch(t, []bool{true, false, false, false, false},
			[]bool{p.Vote, p.Waiters, p.Changed, p.Ask, p.Evict}, "one kind")
		require.Equal(t, said, strings.Replace(s, s[strings.Index(said, id):][:len(id)], id, 1))
	})
}
