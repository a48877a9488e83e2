//go:build linux

package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/judge"
)

// tenure names a term.
type tenure struct {
	term uint64
	of   string
}

func (t tenure) String() string { return fmt.Sprintf("term %d of %s", t.term, t.of) }

// judgeTerms reads what processes have written down. It fails unless the terms
// rise and none begins before the one before it has ended; and unless every
// process has seen rising terms, and only such that there were. If processes are
// harmed as they win, a term may be seen that nobody began: it was recorded, and
// then the process was killed, or cut off from the answers.
func judgeTerms(logs map[string][]string, harmedAsTheyWin bool) ([]judge.Hold[tenure], error) {
	all, err := tenures(logs)
	if err != nil {
		return nil, err
	}
	for _, found := range judge.Falls(all, 1) {
		return nil, errors.New(found.String())
	}
	for _, found := range judge.Overlaps(all, 1) {
		return nil, errors.New(found.String())
	}
	there := map[uint64]bool{}
	for _, t := range all {
		there[t.Token] = true
	}
	for of, lines := range logs {
		last := uint64(0)
		for _, line := range lines {
			var term uint64
			if n, _ := fmt.Sscanf(line, "sees %d", &term); n == 0 {
				continue
			}
			if term <= last || !there[term] && !harmedAsTheyWin {
				return nil, fmt.Errorf("%s sees term %d after %d; there was one: %t", of, term, last, there[term])
			}
			last = term
		}
	}
	return all, nil
}

// tenures are the terms that processes have written down.
func tenures(logs map[string][]string) (all []judge.Hold[tenure], err error) {
	for of, lines := range logs {
		var open *judge.Hold[tenure]
		end := func(at int64) {
			open.To = at
			all, open = append(all, *open), nil
		}
		for _, line := range lines {
			var word string
			var term uint64
			var at int64
			switch n, _ := fmt.Sscan(line, &word, &term, &at); {
			case word == "up" && n == 3 && open == nil:
				open = &judge.Hold[tenure]{Of: tenure{term, of}, From: at, Weight: 1, Token: term}
			case word == "down" && n == 3 && open != nil && open.Token == term:
				end(at)
			case word == "killed" && n == 2:
				if open != nil {
					end(int64(term))
				}
			case word == "sees" && n == 2:
			default:
				return nil, fmt.Errorf("%s has written %q", of, line)
			}
		}
		if open != nil {
			return nil, fmt.Errorf("%v has no end", open.Of)
		}
	}
	return all, nil
}

// Each fault of what is written down is reported.
func TestJudgeTerms(t *testing.T) {
	t.Parallel()
	good := map[string][]string{
		"a": {"up 10 100", "sees 10", "down 10 200", "sees 30", "up 40 400", "killed 450"},
		"b": {"sees 10", "up 30 200", "down 30 300", "killed 500"},
	}
	all, err := judgeTerms(good, false)
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Contains(t, all, judge.Hold[tenure]{Of: tenure{40, "a"}, From: 400, To: 450, Weight: 1, Token: 40})
	for why, logs := range map[string]map[string][]string{
		"began":      {"a": {"up 10 100", "down 10 201"}, "b": {"up 30 200", "down 30 300"}},
		"ended":      {"a": {"up 10 100", "killed 201"}, "b": {"up 30 200", "down 30 300"}},
		"comes":      {"a": {"up 10 100", "down 10 200"}, "b": {"up 9 200", "down 9 300"}},
		"no end":     {"a": {"up 10 100"}},
		"written":    {"a": {"up 10 100", "up 11 110"}},
		"sees":       {"a": {"up 10 100", "down 10 200"}, "b": {"sees 11"}},
		"sees again": {"a": {"up 10 100", "down 10 200"}, "b": {"sees 10", "sees 10"}},
	} {
		_, err := judgeTerms(logs, false)
		word, _, _ := strings.Cut(why, " again")
		require.ErrorContains(t, err, word)
	}
}
