package resp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// What one Reader keeps between replies; more than this goes back to the heap.
const (
	keepArena  = 64 << 10
	keepValues = 4096
)

// Reader decodes replies from a stream.
type Reader struct {
	br    *bufio.Reader
	vals  []Value
	arena []byte  // the strings of the current reply, one after the other
	used  int     // bytes of the current reply's strings
	push  bool    // the current reply is none, but a push
	ahead *Reader // of what has come and is not taken; nil before Await is called
}

// NewReader returns a Reader that buffers r.
func NewReader(r io.Reader) *Reader {
	return &Reader{br: bufio.NewReaderSize(r, lineSize)}
}

// Read returns the next reply: one value for a scalar, the elements for an
// array or a set, keys and values for a map, those of nested ones in their
// place. A nil is the zero Value, also a nil array; an error inside an array is
// a string; a boolean is 1 or 0. The values are valid until the next Read. A
// RESP3 push is read like a reply: see IsPush.
//
// An error reply is returned as an Error; any other error is final.
func (r *Reader) Read() ([]Value, error) {
	// Values of an outgrown arena keep the old array alive, so growing the
	// arena in the middle of a reply invalidates nothing.
	r.vals, r.arena, r.used, r.push = r.vals[:0], r.arena[:0], 0, false
	if cap(r.arena) > keepArena {
		r.arena = nil
	}
	if cap(r.vals) > keepValues {
		r.vals = nil
	}
	if _, err := r.br.Peek(1); err != nil {
		return nil, err // a clean end, io.EOF, happens only between replies
	}
	if err := r.read(0); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return r.vals, nil
}

// Await waits until a whole reply has come, or what cannot be one, and takes
// nothing of it. One that is longer than the buffer is bufio.ErrBufferFull.
func (r *Reader) Await() error {
	if r.ahead == nil {
		r.ahead = NewReader(nil)
	}
	var come bytes.Reader
	for {
		b, _ := r.br.Peek(r.br.Buffered())
		come.Reset(b)
		r.ahead.br.Reset(&come)
		if _, err := r.ahead.Read(); err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if _, err := r.br.Peek(len(b) + 1); err != nil {
			return err
		}
	}
}

// IsPush reports whether what Read returned last answers no command.
func (r *Reader) IsPush() bool { return r.push }

func (r *Reader) read(depth int) error {
	line, err := r.line()
	if err != nil {
		return err
	}
	switch kind, rest := line[0], line[1:]; kind {
	case '+', ',', '(':
		return r.addLine(rest)
	case '-':
		if depth == 0 {
			return Error(OneLine(string(rest)))
		}
		return r.addLine(rest)
	case ':':
		n, ok := parseInt(rest)
		if !ok {
			return fmt.Errorf("%w: integer %.32q", ErrProtocol, rest)
		}
		return r.add(Value{Int: n})
	case '$', '=', '!':
		return r.readBulk(kind, rest, depth)
	case '*', '~', '%', '>':
		return r.readElements(kind, rest, depth)
	case '_':
		if len(rest) == 0 {
			return r.add(Value{})
		}
	case '#':
		if len(rest) == 1 && (rest[0] == 't' || rest[0] == 'f') {
			v := Value{}
			if rest[0] == 't' {
				v.Int = 1
			}
			return r.add(v)
		}
	}
	return fmt.Errorf("%w: %.32q", ErrProtocol, line)
}

// readBulk reads a string whose length comes first.
func (r *Reader) readBulk(kind byte, length []byte, depth int) error {
	n, ok := parseInt(length)
	switch {
	case !ok || n < -1 || n > MaxBulk || n < 0 && kind != '$':
		return fmt.Errorf("%w: string length %.32q", ErrProtocol, length)
	case n == -1:
		return r.add(Value{})
	}
	if err := r.addBulk(int(n)); err != nil {
		return err
	}
	v := &r.vals[len(r.vals)-1]
	switch {
	case kind == '=' && n >= 4:
		v.Str = v.Str[4:] // the text's form, such as txt:
	case kind == '!' && depth == 0:
		return Error(OneLine(string(v.Str)))
	}
	return nil
}

// readElements reads what consists of several values.
func (r *Reader) readElements(kind byte, length []byte, depth int) error {
	n, ok := parseInt(length)
	if kind == '%' { // of pairs
		n *= 2
	}
	switch {
	case !ok || n < -1 || n > MaxValues || n < 0 && kind != '*' || kind == '>' && depth > 0:
		return fmt.Errorf("%w: array length %.32q", ErrProtocol, length)
	case n == -1:
		return r.add(Value{})
	case depth == maxDepth:
		return fmt.Errorf("%w: nested deeper than %d", ErrProtocol, maxDepth)
	case kind == '>':
		r.push = true
	}
	for range n {
		if err := r.read(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// line returns the next line without its end; it is not empty, and valid until
// the next read.
func (r *Reader) line() ([]byte, error) {
	line, err := r.br.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		return nil, fmt.Errorf("%w: line longer than %d bytes", ErrProtocol, lineSize)
	}
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("%w: line %.32q", ErrProtocol, line)
	}
	return line[:len(line)-2], nil
}

func (r *Reader) add(v Value) error {
	if len(r.vals) >= MaxValues {
		return fmt.Errorf("%w: more than %d values", ErrProtocol, int(MaxValues))
	}
	r.vals = append(r.vals, v)
	return nil
}

// room makes the next n bytes of the arena writable and returns them; they are
// never nil, for an empty string is not a nil one.
func (r *Reader) room(n int) ([]byte, error) {
	if r.used += n; r.used > MaxReply {
		return nil, fmt.Errorf("%w: reply longer than %d bytes", ErrProtocol, MaxReply)
	}
	if r.arena == nil {
		r.arena = make([]byte, 0, max(n, 512))
	}
	r.arena = slices.Grow(r.arena, n)
	start := len(r.arena)
	r.arena = r.arena[:start+n]
	return r.arena[start : start+n : start+n], nil
}

func (r *Reader) addLine(s []byte) error {
	b, err := r.room(len(s))
	if err != nil {
		return err
	}
	copy(b, s)
	return r.add(Value{Str: b})
}

func (r *Reader) addBulk(n int) error {
	b, err := r.room(n)
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(r.br, b); err != nil {
		return err
	}
	end, err := r.br.Peek(2)
	if err != nil {
		return err
	}
	if end[0] != '\r' || end[1] != '\n' {
		return fmt.Errorf("%w: string of %d bytes does not end there", ErrProtocol, n)
	}
	if _, err := r.br.Discard(2); err != nil {
		return err
	}
	return r.add(Value{Str: b})
}

// longestText is how many bytes of a text that a node chose are kept.
const longestText = 1024

// OneLine returns a text that a node chose as one line that is not too long for
// a log. It replaces what is not printable, and cuts what is longer than 1 kB.
func OneLine(text string) string {
	cut := ""
	if len(text) > longestText {
		text, cut = text[:longestText], "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text) + cut
}
