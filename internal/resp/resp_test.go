package resp_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/resp"
)

// show writes values in a form a test can state: 7 "abc" nil (which is also 0).
func show(vals []resp.Value) string {
	var words []string
	for _, v := range vals {
		if v.Str != nil {
			words = append(words, fmt.Sprintf("%q", v.Str))
		} else {
			words = append(words, fmt.Sprint(v.Int))
		}
	}
	return strings.Join(words, " ")
}

func TestEncode(t *testing.T) {
	b := resp.AppendArray(nil, 5)
	b = resp.AppendString(b, "EVALSHA")
	b = resp.AppendBytes(b, []byte{0, '\r', '\n'})
	b = resp.AppendInt(b, math.MinInt64)
	b = resp.AppendInt(b, math.MaxInt64)
	b = resp.AppendString(b, "")
	assert.Equal(t,
		"*5\r\n$7\r\nEVALSHA\r\n$3\r\n\x00\r\n\r\n$20\r\n-9223372036854775808\r\n$19\r\n9223372036854775807\r\n$0\r\n\r\n", string(b))
	assert.Equal(t, "*1\r\n$4\r\nPING\r\n", string(resp.AppendCommand(nil, "PING")))
}

func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		"+OK\r\n":                                `"OK"`,
		"+\r\n":                                  `""`,
		":0\r\n":                                 "0",
		":-9223372036854775808\r\n":              "-9223372036854775808",
		":9223372036854775807\r\n":               "9223372036854775807",
		":9223372036854775808\r\n":               "malformed",
		":12x\r\n":                               "malformed",
		":\r\n":                                  "malformed",
		"$0\r\n\r\n":                             `""`,
		"$-1\r\n":                                "0",
		"$3\r\na\r\n\r\n":                        `"a\r\n"`,
		"$3\r\nabcd\r\n":                         "malformed",
		"$1048577\r\n":                           "malformed",
		"$-2\r\n":                                "malformed",
		"*0\r\n":                                 "",
		"*-1\r\n":                                "0",
		"*3\r\n:1\r\n$-1\r\n+x\r\n":              `1 0 "x"`,
		"*2\r\n*2\r\n:1\r\n:2\r\n*1\r\n-bad\r\n": `1 2 "bad"`,
		"*1000001\r\n":                           "malformed",
		strings.Repeat("*1\r\n", 9) + ":1\r\n":   "malformed",
		"-NOSCRIPT No matching script.\r\n":      "error NOSCRIPT: NOSCRIPT No matching script.",
		"%1\r\n+a\r\n+b\r\n":                     `"a" "b"`,
		"*4\r\n_\r\n#t\r\n#f\r\n,1.5\r\n":        `0 1 0 "1.5"`,
		"~2\r\n(12\r\n=5\r\ntxt:x\r\n":           `"12" "x"`,
		"!8\r\nERR hey!\r\n":                     "error ERR: ERR hey!",
		">2\r\n+a\r\n:1\r\n":                     `"a" 1`,
		"*1\r\n>1\r\n+a\r\n":                     "malformed",
		"#x\r\n":                                 "malformed",
		"_x\r\n":                                 "malformed",
		"%-1\r\n":                                "malformed",
		"=-1\r\n":                                "malformed",
		"|1\r\n+a\r\n+b\r\n:1\r\n":               "malformed",
		"\r\n":                                   "malformed",
		":1\n":                                   "malformed",
		"+" + strings.Repeat("x", 20<<10) + "\r\n": "malformed",
		"*2\r\n:1\r\n": "unexpected EOF",
		"$5\r\nab":     "unexpected EOF",
		"":             "EOF",
	} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytewise": iotest.OneByteReader,
		} {
			r := resp.NewReader(wrap(strings.NewReader(in)))
			vals, err := r.Read()
			got := show(vals)
			var reply resp.Error
			switch {
			case errors.As(err, &reply):
				got = "error " + reply.Code() + ": " + reply.Error()
			case errors.Is(err, resp.ErrProtocol):
				got = "malformed"
			case err != nil:
				got = err.Error()
			}
			assert.Equal(t, want, got, "%s %.40q", name, in)
		}
	}
}

// IsPush distinguishes a push from the replies around it.
func TestReadPush(t *testing.T) {
	r := resp.NewReader(strings.NewReader(":1\r\n>1\r\n+a\r\n:2\r\n"))
	for _, push := range []bool{false, true, false} {
		_, err := r.Read()
		require.NoError(t, err)
		assert.Equal(t, push, r.IsPush())
	}
}

func TestReadOn(t *testing.T) {
	in := "*2\r\n$1\r\na\r\n$1\r\nb\r\n-ERR no\r\n:7\r\n"
	r := resp.NewReader(iotest.HalfReader(strings.NewReader(in)))
	vals, err := r.Read()
	require.NoError(t, err)
	assert.Equal(t, `"a" "b"`, show(vals))
	_, err = r.Read()
	assert.Equal(t, resp.Error("ERR no"), err)
	vals, err = r.Read()
	require.NoError(t, err)
	assert.Equal(t, "7", show(vals))
	_, err = r.Read()
	assert.Equal(t, io.EOF, err)
}

// Values stay what they were when the arena grows within a reply.
func TestGrowth(t *testing.T) {
	var in []byte
	in = append(in, "*2000\r\n"...)
	for i := range 2000 {
		in = resp.AppendString(in, fmt.Sprintf("%0200d", i))
	}
	vals, err := resp.NewReader(bytes.NewReader(in)).Read()
	require.NoError(t, err)
	require.Len(t, vals, 2000)
	for i, v := range vals {
		require.Equal(t, fmt.Sprintf("%0200d", i), string(v.Str))
	}
}

// A node that sends megabytes is cut off at MaxReply.
func TestMaxReply(t *testing.T) {
	mega := resp.AppendString(nil, strings.Repeat("x", resp.MaxBulk))
	parts := []io.Reader{strings.NewReader("*1000\r\n")}
	for range 20 {
		parts = append(parts, bytes.NewReader(mega))
	}
	_, err := resp.NewReader(io.MultiReader(parts...)).Read()
	assert.ErrorIs(t, err, resp.ErrProtocol)
}

func TestReadAllocates(t *testing.T) {
	in := []byte("*3\r\n:1\r\n$3\r\nabc\r\n:123456\r\n")
	src := &loop{b: in}
	r := resp.NewReader(src)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		if _, err := r.Read(); err != nil {
			t.Fatal(err)
		}
	}))
}

// loop is an endless stream of b.
type loop struct {
	b   []byte
	pos int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.b[l.pos:])
	l.pos = (l.pos + n) % len(l.b)
	return n, nil
}

func BenchmarkRead(b *testing.B) {
	r := resp.NewReader(&loop{b: []byte("*3\r\n:1\r\n$3\r\nabc\r\n:123456\r\n")})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Read(); err != nil {
			b.Fatal(err)
		}
	}
}

// Whatever arrives: no panic, bounded values, and the same result however the
// bytes are cut.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"+OK\r\n", "*2\r\n:1\r\n$1\r\na\r\n", "-ERR x\r\n", "$-1\r\n",
		"*1\r\n*1\r\n*-1\r\n", "$1048576\r\nx", "*1000000\r\n:1\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole := resp.NewReader(bytes.NewReader(in))
		cut := resp.NewReader(iotest.OneByteReader(bytes.NewReader(in)))
		for range len(in) + 1 {
			v1, err1 := whole.Read()
			v2, err2 := cut.Read()
			if show(v1) != show(v2) || (err1 == nil) != (err2 == nil) {
				t.Fatalf("%v %v\n%v %v", v1, err1, v2, err2)
			}
			if _, reply := err1.(resp.Error); err1 != nil && !reply {
				return
			}
		}
		t.Fatal("more replies than bytes")
	})
}

// tired is a reader that has one byte at a time, and an error in between.
type tired struct {
	bytes []byte
	next  bool
}

func (r *tired) Read(p []byte) (int, error) {
	if r.next = !r.next; !r.next || len(r.bytes) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(p[:1], r.bytes)
	r.bytes = r.bytes[n:]
	return n, nil
}

// Await takes nothing of an answer before all of it is there.
func TestAwait(t *testing.T) {
	for _, in := range []string{
		"+OK\r\n", "-ERR x\r\n", ":1\r\n", "$-1\r\n", "$0\r\n\r\n", "$5\r\nhe\r\no\r\n",
		"*0\r\n", "*-1\r\n", "_\r\n", "#t\r\n",
		"*2\r\n*1\r\n:1\r\n$1\r\na\r\n", "%1\r\n+a\r\n*2\r\n:1\r\n:2\r\n",
		">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n",
	} {
		src := &tired{bytes: []byte(in + in)}
		r := resp.NewReader(src)
		for range 2 {
			waits := 0
			for r.Await() != nil {
				waits++
			}
			assert.GreaterOrEqual(t, waits, len(in)-1, "%q", in)
			_, err := r.Read()
			_, reply := err.(resp.Error)
			assert.True(t, err == nil || reply, "%q: %v", in, err)
		}
	}
	r := resp.NewReader(strings.NewReader("$100000\r\n" + strings.Repeat("x", 1<<17)))
	assert.ErrorIs(t, r.Await(), bufio.ErrBufferFull)
	r = resp.NewReader(strings.NewReader("nonsense\r\n"))
	assert.NoError(t, r.Await())
	_, err := r.Read()
	assert.ErrorIs(t, err, resp.ErrProtocol)
}

// A map announces pairs. One of too many values is refused as it begins: to
// read on would be to wait for what no server sends.
func TestReaderRefusesAMapOfTooManyPairs(t *testing.T) {
	t.Parallel()
	_, err := resp.NewReader(strings.NewReader("%600000\r\n:1\r\n")).Read()
	assert.ErrorIs(t, err, resp.ErrProtocol)
}
