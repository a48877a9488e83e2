package resp

import (
	"fmt"
	"strings"
)

// Framing checks a stream of replies for another reader, one that allocates
// what a length announces. Invariant: a length that Reader would refuse is
// refused before the other reader sees it. Framing keeps no data. The zero
// value is ready for one stream. It is not safe for concurrent use.
type Framing struct {
	kind   byte          // of the line that is being read; 0: the line has not begun
	digits [20]byte      // what the line says, where that is a number
	length int           // of the line, without its type
	last   byte          // the byte before this one
	skip   int           // bytes left of a string, its end included
	open   [maxDepth]int // values left in each of the arrays that are open
	depth  int
	values int // announced by the arrays of this reply
	used   int // bytes of this reply's strings
}

// Check takes the next bytes of the stream. After an error, which wraps
// ErrProtocol, nothing that follows can be interpreted.
func (f *Framing) Check(b []byte) error {
	for i := 0; i < len(b); {
		if f.skip > 0 {
			n := min(f.skip, len(b)-i)
			f.skip -= n
			if i += n; f.skip == 0 {
				f.complete()
			}
			continue
		}
		if err := f.next(b[i]); err != nil {
			return err
		}
		i++
	}
	return nil
}

// ends reports whether a reply ends in the next bytes, or what cannot be one.
func (f *Framing) ends(b []byte) bool {
	for i := range b {
		if f.Check(b[i:i+1]) != nil || f.kind == 0 && f.skip == 0 && f.depth == 0 {
			return true
		}
	}
	return false
}

// next takes one byte of a line.
func (f *Framing) next(c byte) error {
	last := f.last
	f.last = c
	switch {
	case f.kind == 0:
		if strings.IndexByte("+-:$*_,#(=!~%>", c) < 0 {
			return fmt.Errorf("%w: type byte %q", ErrProtocol, c)
		}
		f.kind, f.length = c, 0
		return nil
	case c != '\n':
		if f.length >= lineSize {
			return fmt.Errorf("%w: line longer than %d bytes", ErrProtocol, lineSize)
		}
		if f.length < len(f.digits) {
			f.digits[f.length] = c
		}
		f.length++
		return nil
	case last != '\r':
		return fmt.Errorf("%w: a line ends without CR", ErrProtocol)
	}
	return f.line()
}

// line takes the end of a line.
func (f *Framing) line() error {
	kind := f.kind
	f.kind = 0
	bulk := kind == '$' || kind == '=' || kind == '!'
	if !bulk && strings.IndexByte("*~%>", kind) < 0 {
		return f.count(f.length - 1)
	}
	n, ok := int64(0), f.length <= len(f.digits)
	if ok {
		n, ok = parseInt(f.digits[:f.length-1])
	}
	switch {
	case !ok || n < -1 || n < 0 && kind != '$' && kind != '*' || kind == '>' && f.depth > 0:
		return fmt.Errorf("%w: length %.20q", ErrProtocol, f.digits[:min(f.length, len(f.digits))])
	case n == -1:
		f.complete()
	case bulk:
		if n > MaxBulk {
			return fmt.Errorf("%w: string length %d", ErrProtocol, n)
		}
		f.used += int(n)
		f.skip = int(n) + 2
		return f.bound()
	case n == 0:
		f.complete()
	case f.depth == maxDepth:
		return fmt.Errorf("%w: nested deeper than %d", ErrProtocol, maxDepth)
	case n > MaxValues:
		return fmt.Errorf("%w: array length %d", ErrProtocol, n)
	default:
		if kind == '%' {
			n *= 2
		}
		f.values += int(n)
		f.open[f.depth] = int(n)
		f.depth++
		return f.bound()
	}
	return nil
}

// count takes a value that was one line.
func (f *Framing) count(size int) error {
	f.used += size
	err := f.bound()
	f.complete()
	return err
}

func (f *Framing) bound() error {
	if f.used > MaxReply || f.values > MaxValues {
		return fmt.Errorf("%w: a reply of more than %d bytes or %d values", ErrProtocol, MaxReply, int(MaxValues))
	}
	return nil
}

// complete ends a value, and with it each array of which it was the last one.
func (f *Framing) complete() {
	for f.depth > 0 {
		if f.open[f.depth-1]--; f.open[f.depth-1] > 0 {
			return
		}
		f.depth--
	}
	f.values, f.used = 0, 0
}
