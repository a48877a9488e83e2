package inspect

// The listing of one node, and the limits at which it stops: a node may answer
// SCAN without end.

import (
	"errors"
	"fmt"
	"strconv"
)

// What one node may list. 1<<20 portions are a hundred million keys, and
// mostBytes some 600,000 names.
const (
	mostPortions = 1 << 20
	mostBytes    = 64 << 20
	nameBytes    = 64 // that a name takes in addition to its text
)

var (
	errRepeats  = errors.New("lists its keys over and over: SCAN returned a cursor for the second time")
	errEndless  = fmt.Errorf("lists its keys without end: SCAN has not ended after %d portions", mostPortions)
	errTooMany  = errors.New("has more names than can be listed at once; use a pattern such as 'job:*'")
	errCursor   = errors.New("answered SCAN with a cursor that is not a number")
	errSlowScan = errors.New("is still being listed; the other nodes were enough")
)

// scan is how far the listing of a node is.
type scan struct {
	cursor   string // of the portion that is due; empty: the listing has ended
	portions int
	mark     string // an earlier cursor; see advance
	bytes    int    // of the names that no other node had listed before
}

// advance takes the cursor that came with a portion. A node whose cursors go
// round in a circle meets the mark: that is moved to the newest cursor after 1,
// 2, 4, 8 … portions, so it is in the circle sometime, and then stays for longer
// than one turn takes. No cursor but the mark is kept.
func (s *scan) advance(next string) error {
	if next == "0" {
		s.cursor = ""
		return nil
	}
	if _, err := strconv.ParseUint(next, 10, 64); err != nil {
		return errCursor
	}
	s.portions++
	switch {
	case next == s.mark:
		return errRepeats
	case s.portions > mostPortions:
		return errEndless
	case s.portions&(s.portions-1) == 0:
		s.mark = next
	}
	s.cursor = next
	return nil
}

// add counts a name that no other node had listed before.
func (s *scan) add(name string) error {
	if s.bytes += len(name) + nameBytes; s.bytes > mostBytes {
		return errTooMany
	}
	return nil
}
