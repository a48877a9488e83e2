package resp

// Numbers returns the values of an answer that is one text of numbers, with a
// blank between them; every other answer as it is. A node writes such a text
// with less work than a list. It is read into room, and has no more values than
// that has.
func Numbers(room, v []Value) []Value {
	if len(v) != 1 || v[0].Str == nil {
		return v
	}
	text, dst := v[0].Str, room[:0]
	for start, i := 0, 0; i <= len(text); i++ {
		if i < len(text) && text[i] != ' ' {
			continue
		}
		n, ok := parseInt(text[start:i])
		if !ok || len(dst) == cap(dst) {
			return v
		}
		dst = append(dst, Value{Int: n})
		start = i + 1
	}
	return dst
}
