package demo

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/testkit/judge"
)

// judge looks at what happened, and at the number that the file ended with.
func (s *story) judge(number int) *verdict {
	v := &verdict{}
	hs := s.ordered()
	s.judgeCount(v, hs, number)
	s.judgeOverlap(v, hs)
	s.judgeTokens(v, hs)
	s.judgeVictim(v)
	s.judgeNode(v, hs)

	var gaps []time.Duration
	for i, h := range hs[min(1, len(hs)):] {
		if before := hs[i]; before.fate == done && before.worker != h.worker {
			gaps = append(gaps, h.got-before.end)
		}
	}
	if v.handOver = len(gaps); v.handOver > 0 {
		slices.Sort(gaps)
		v.median, v.slowest = gaps[len(gaps)/2], gaps[len(gaps)-1]
	}
	return v
}

// judgeCount compares the number to how often it was raised. A worker that was
// killed between writing and saying so counts if the next one has read its
// number.
func (s *story) judgeCount(v *verdict, hs []*hold, number int) {
	raised := 0
	for i, h := range hs {
		next := number
		if i+1 < len(hs) {
			next = hs[i+1].from
		}
		if h.wrote || (h.fate == killed && next == h.from+1) {
			raised++
		}
	}
	if number == raised && raised > 0 {
		text := fmt.Sprintf("The file says %d, and that is how often it was raised: no update was lost.", number)
		if s.victim != nil && raised == len(hs)-1 {
			text += "\n(The killed worker held the lock once without writing.)"
		}
		v.add(true, text)
		return
	}
	v.add(false, fmt.Sprintf("The file says %d, but it was raised %d times.", number, raised))
}

// certain are what the judge of the test kit reads.
func certain(hs []*hold) []judge.Hold[*hold] {
	all := make([]judge.Hold[*hold], 0, len(hs))
	for _, h := range hs {
		all = append(all, judge.Hold[*hold]{Of: h, From: int64(h.got), To: int64(h.end), Weight: 1, Token: h.token})
	}
	return all
}

func (s *story) judgeOverlap(v *verdict, hs []*hold) {
	for _, found := range judge.Overlaps(certain(hs), 1) {
		before, h := found.Holds[0].Of, found.Holds[1].Of
		v.add(false, fmt.Sprintf("Worker %d and worker %d held the lock at the same time, at %s.",
			before.worker+1, h.worker+1, seconds(h.got)))
		return
	}
	v.add(true, fmt.Sprintf("The lock was held %d times, never by two workers at once.", len(hs)))
}

func (s *story) judgeTokens(v *verdict, hs []*hold) {
	for _, found := range judge.Falls(certain(hs), 1) {
		v.add(false, fmt.Sprintf("Worker %d got token %d after token %d had been issued.", found.Later.Of.worker+1,
			found.Later.Token, found.Earlier.Token))
		return
	}
	v.add(true, "Every holder's token was higher than the previous one.")
}

func (s *story) judgeVictim(v *verdict) {
	k, next := s.victim, s.successor
	switch {
	case k == nil:
		v.add(false, "No worker was killed while it held the lock.")
	case next == nil:
		v.add(false, fmt.Sprintf("No worker got the lock after worker %d was killed.", k.worker+1))
	case next.got < k.until:
		v.add(false, fmt.Sprintf("Worker %d got the lock before the lease of the killed worker %d had expired.",
			next.worker+1, k.worker+1))
	case next.got-k.end > s.ttl+tolerance:
		v.add(false, fmt.Sprintf("Worker %d was killed, and the lock became free only after %s.",
			k.worker+1, seconds(next.got-k.end)))
	default:
		v.add(true,
			fmt.Sprintf("Worker %d was killed while it held the lock. Worker %d got it %s later,\nshortly after the "+
				"dead worker's lease had expired.",
				k.worker+1, next.worker+1, seconds(next.got-k.end)))
	}
}

// tolerance is for machines that are busy with other things, too.
const tolerance = 2 * time.Second

func (s *story) judgeNode(v *verdict, hs []*hold) {
	if s.nodeDown < 0 {
		return
	}
	after := 0
	for _, h := range hs {
		if h.got > s.nodeDownAt {
			after++
		}
	}
	text := fmt.Sprintf("Node %d was killed. The lock kept working: %d more holds.", s.nodeDown+1, after)
	if after == 0 {
		text = fmt.Sprintf("Node %d was killed, and no worker got the lock after that.", s.nodeDown+1)
	}
	v.add(after > 0, text)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// brief prints a short time as one would say it.
func brief(d time.Duration) string {
	if d < 100*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return seconds(d)
}
