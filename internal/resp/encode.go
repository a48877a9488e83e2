package resp

import "strconv"

// A command is an array of bulk strings: AppendArray with the number of words,
// then that many Append calls. All of them append to dst and allocate only
// when dst is too small, so one buffer serves a whole batch of commands.

// AppendArray begins a command of n words.
func AppendArray(dst []byte, n int) []byte {
	dst = append(dst, '*')
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\r', '\n')
}

// AppendString adds one word.
func AppendString(dst []byte, s string) []byte {
	dst = appendHeader(dst, len(s))
	dst = append(dst, s...)
	return append(dst, '\r', '\n')
}

// AppendJoined adds the parts as one word.
func AppendJoined(dst []byte, parts ...string) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	dst = appendHeader(dst, n)
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return append(dst, '\r', '\n')
}

// AppendBytes adds one word.
func AppendBytes(dst, b []byte) []byte {
	dst = appendHeader(dst, len(b))
	dst = append(dst, b...)
	return append(dst, '\r', '\n')
}

// AppendInt adds n in decimal as one word. The numbers of the protocol fit: a
// node keeps them below 2^53.
func AppendInt(dst []byte, n int64) []byte {
	var digits [20]byte // -9223372036854775808
	return AppendBytes(dst, strconv.AppendInt(digits[:0], n, 10))
}

// AppendCommand adds a whole command made of strings.
func AppendCommand(dst []byte, words ...string) []byte {
	dst = AppendArray(dst, len(words))
	for _, w := range words {
		dst = AppendString(dst, w)
	}
	return dst
}

func appendHeader(dst []byte, n int) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\r', '\n')
}
