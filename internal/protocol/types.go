package protocol

import (
	"encoding/hex"
	"math"
	"time"
)

// Time is a reading of one process's monotonic clock, in nanoseconds. Two
// processes' readings are never compared.
type Time int64

// Add returns t moved by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Never is later than every reading.
const Never = Time(math.MaxInt64)

// ID names one claim. It is random and new for each attempt. Three of its bytes
// may tell observers which kind of primitive made the claim: see core.KindOf.
type ID [16]byte

// String returns the ID as 32 hexadecimal digits, the form nodes store.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads the form that String writes.
func ParseID(s string) (ID, bool) {
	var id ID
	if len(s) != 2*len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s))
	return id, err == nil
}

// Ticket is a claim's place in a name's queue and the root of its fencing
// token: microseconds, near the nodes' clocks (ticketclock.go). It is below
// 2^53 so that a Lua number and a sorted-set score hold it exactly.
type Ticket uint64

const (
	// Residues is the number of residue classes: a claim only ever gets tickets
	// congruent to its own residue, so two claims rarely propose the same one
	// and settling does not chase its own tail.
	Residues = 64
	// MaxTicket bounds the tickets that a client accepts. Above it, Lua does
	// not represent a number exactly.
	MaxTicket = Ticket(1) << 53
)

// Residue is the class of the tickets that a claim may hold: the last byte of
// its id modulo Residues.
func (id ID) Residue() Ticket { return Ticket(id[len(id)-1]) % Residues }

// Next returns the lowest ticket above fence in id's residue class.
func (id ID) Next(fence Ticket) Ticket {
	t := fence + 1
	return t + (id.Residue()-t%Residues+Residues)%Residues
}

// Incarnation is the random value of a node's marker. If it changes, the node
// has lost its data.
type Incarnation uint64

// DigestMod keeps digests exact in a Lua number: the sum of two is below 2^53.
// With 52 random bits for each claim, two different sets of claims have equal
// digests once in 2^52.
const DigestMod = 1 << 52

// Digest is a claim's contribution to a view's digest: its first 13 hexadecimal
// digits.
func (id ID) Digest() uint64 {
	var d uint64
	for _, b := range id[:6] {
		d = d<<8 | uint64(b)
	}
	return d<<4 | uint64(id[6]>>4)
}
