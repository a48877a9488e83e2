package nodeset

import "time"

// How long a client waits before it tries again. The pauses double, so that an
// attempt that others disturb will eventually run alone.

// JudgePause returns for how long the connection to a node without a vote goes
// on before the node is judged again. was is the pause before, 0 for none. What
// is under way takes a few round trips, so the first pauses are short.
func JudgePause(was, nodeTimeout time.Duration) time.Duration {
	return doubled(was, nodeTimeout/4, 5*nodeTimeout)
}

// RecordPause returns how long a client waits at most before it tries to record
// a set, and LongestRecordPause is the longest one. was is the pause before, 0
// for none. The client waits for a random part of it, at least for half. So one
// of several clients of a list begins alone, and others do not supersede it.
func RecordPause(was, nodeTimeout time.Duration) time.Duration {
	return doubled(was, nodeTimeout/4, LongestRecordPause(nodeTimeout))
}

func LongestRecordPause(nodeTimeout time.Duration) time.Duration { return 32 * nodeTimeout }

func doubled(was, first, longest time.Duration) time.Duration {
	if was == 0 {
		return first
	}
	return min(2*was, longest)
}
