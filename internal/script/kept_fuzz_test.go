package script

import (
	"testing"

	"github.com/quorate/quorate/internal/resp"
)

// What a node keeps may be anything: another program, or one that lies, can
// have written it. Reading it never panics.
func FuzzParseKept(f *testing.F) {
	for _, text := range []string{"", "1 2 3", "host:12:label", "7 1000 run 5 6 w",
		"-1", "9223372036854775807 9223372036854775807"} {
		f.Add(text, int64(1700000000), text)
	}
	f.Fuzz(func(t *testing.T, text string, n int64, micros string) {
		ParseTurn(text)
		ParseSuccessor(text)
		if _, pid, _, _ := ParseOwner(text); pid < 0 {
			t.Errorf("%q has the process %d", text, pid)
		}
		for _, v := range [][]resp.Value{nil, {{Int: n}}, {{Int: n}, {Int: n}},
			{{Str: []byte(text)}, {Str: []byte(micros)}}} {
			_, _ = DecodeTime(v)
		}
	})
}
