package server

import "strings"

// The patterns of SCAN, byte for byte as in Redis.

// matches reports whether a pattern of SCAN matches a key.
func matches(pattern, key string) bool {
	for pattern != "" && key != "" {
		switch pattern[0] {
		case '*':
			pattern = strings.TrimLeft(pattern, "*")
			for ; key != ""; key = key[1:] {
				if pattern == "" || matches(pattern, key) {
					return true
				}
			}
			return pattern == ""
		case '[':
			rest, in := class(pattern[1:], key[0])
			if !in {
				return false
			}
			pattern = rest
		case '?':
			pattern = pattern[1:]
		default:
			if pattern[0] == '\\' && len(pattern) > 1 {
				pattern = pattern[1:]
			}
			if pattern[0] != key[0] {
				return false
			}
			pattern = pattern[1:]
		}
		key = key[1:]
	}
	return key == "" && strings.Trim(pattern, "*") == ""
}

// class reports whether a byte is one of those in brackets, and returns the
// pattern behind these. A bracket that nothing closes ends with the pattern.
func class(pattern string, c byte) (rest string, in bool) {
	pattern, not := strings.CutPrefix(pattern, "^")
	for pattern != "" && pattern[0] != ']' {
		first, last, size := pattern[0], pattern[0], 1
		switch {
		case first == '\\' && len(pattern) > 1:
			first, last, size = pattern[1], pattern[1], 2
		case len(pattern) > 2 && pattern[1] == '-':
			last, size = pattern[2], 3
		}
		in = in || min(first, last) <= c && c <= max(first, last)
		pattern = pattern[size:]
	}
	return strings.TrimPrefix(pattern, "]"), in != not
}
