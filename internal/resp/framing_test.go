package resp_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/resp"
)

func TestFraming(t *testing.T) {
	for in, good := range map[string]bool{
		"+OK\r\n:1\r\n$3\r\nabc\r\n*2\r\n$-1\r\n*0\r\n-ERR x\r\n": true,
		"+" + strings.Repeat("x", 16<<10) + "\r\n":                false,
		"+" + strings.Repeat("x", 15<<10) + "\r\n":                true,
		"+" + strings.Repeat("x", 20<<10):                         false, // before its end
		"$9223372036854775807\r\n":                                false,
		"$1000000000000\r\n":                                      false,
		"$1048577\r\n":                                            false,
		"$-2\r\n":                                                 false,
		"$\r\n":                                                   false,
		"$12345678901234567890123\r\n":                            false,
		"*1000000000\r\n":                                         false,
		"*1000001\r\n":                                            false,
		"*2\r\n*600000\r\n:1\r\n":                                 true, // so far
		strings.Repeat("*600000\r\n", 2):                          false,
		strings.Repeat("*1\r\n", 8) + ":1\r\n+OK\r\n":             true,
		strings.Repeat("*1\r\n", 9):                               false,
		"%1\r\n+a\r\n+b\r\n":                                      true,
		"%1\r\n+a\r\n*1\r\n_\r\n#t\r\n,1.5\r\n(12\r\n~0\r\n":      true,
		">2\r\n+a\r\n=5\r\ntxt:x\r\n!3\r\nERR\r\n":                true,
		"*1\r\n>1\r\n+a\r\n":                                      false,
		"%-1\r\n":                                                 false,
		"=-1\r\n":                                                 false,
		"|1\r\n+a\r\n+b\r\n":                                      false,
		":1\n":                                                    false,
		"\r\n":                                                    false,
		"garbage\r\n":                                             false,
		strings.Repeat("$1048576\r\n"+strings.Repeat("x", 1<<20)+"\r\n", 20):             true, // each is a reply
		"*20\r\n" + strings.Repeat("$1048576\r\n"+strings.Repeat("x", 1<<20)+"\r\n", 20): false,
	} {
		var whole, cut resp.Framing
		err := whole.Check([]byte(in))
		assert.Equal(t, good, err == nil, "%.40q: %v", in, err)
		if !good {
			assert.ErrorIs(t, err, resp.ErrProtocol)
		}
		var bytewise error
		for i := 0; i < len(in) && bytewise == nil; i++ {
			bytewise = cut.Check([]byte{in[i]})
		}
		assert.Equal(t, good, bytewise == nil, "%.40q, byte by byte: %v", in, bytewise)
	}
}

// FuzzFraming: what Reader accepts passes, however it is cut, and a length that
// Reader refuses does not.
func FuzzFraming(f *testing.F) {
	for _, s := range []string{"+OK\r\n", "*2\r\n:1\r\n$1\r\na\r\n", "-ERR x\r\n", "$-1\r\n", "*1\r\n*1\r\n*-1\r\n", "$1048577\r\nx", "*1000001\r\n:1\r\n", "%1\r\n_\r\n#t\r\n>1\r\n,1\r\n=4\r\ntxt:\r\n!1\r\nx\r\n~1\r\n(1\r\n"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, at int) {
		var whole, cut resp.Framing
		err := whole.Check(in)
		at = min(max(at, 0), len(in))
		halves := cut.Check(in[:at])
		if halves == nil {
			halves = cut.Check(in[at:])
		}
		if (err == nil) != (halves == nil) {
			t.Fatalf("%v, in two parts %v", err, halves)
		}
		r := resp.NewReader(bytes.NewReader(in))
		for {
			_, e := r.Read()
			if _, reply := e.(resp.Error); e == nil || reply {
				continue
			}
			if errors.Is(e, io.EOF) && err != nil {
				t.Fatalf("the reader takes it all, the check says %v", err)
			}
			if errors.Is(e, resp.ErrProtocol) && err == nil && strings.Contains(e.Error(), " length ") {
				t.Fatalf("the reader says %v, the check nothing", e)
			}
			return
		}
	})
}
