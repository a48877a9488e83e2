// Package resp speaks the part of the Redis protocol (RESP2 and RESP3) that
// scripts, their answers and pushes need, without allocating per value.
package resp

// Value is one element of a reply: an integer, or a string when Str is not nil.
type Value struct {
	Int int64
	Str []byte // valid until the callback that was given it returns
}
