package main

import "fmt"

// overwritten is what a lost update violates.
func overwritten(l lostUpdate, ops map[string]*operation) violation {
	v := violation{At: l.at, What: fmt.Sprintf("lost update of %s: %s, token %d, has read %d and overwrites the %d of %s",
		l.name, l.op, l.token, l.base, l.value, l.other)}
	for _, op := range []string{l.op, l.other} {
		if o := ops[op]; o != nil {
			v.Ops = append(v.Ops, o)
		}
	}
	return v
}

// overslept says whether the writer was not, or no more, entitled to write, by
// what it knew itself: a lock without tokens can do nothing about that.
func overslept(l lostUpdate, ops map[string]*operation) bool {
	o := ops[l.op]
	return o != nil && l.at > o.Until
}

// torn are the readers that have seen a number change while they held the lock.
func torn(log []access) (found []violation) {
	seen := map[string]access{}
	for _, a := range log {
		if a.what != doRead || !a.ok || a.alone {
			continue
		}
		if first, again := seen[a.op]; again && first.value != a.value {
			found = append(found, violation{At: a.at, What: fmt.Sprintf(
				"%s changed under a reader: %s, token %d, has read %d and then %d", a.name, a.op, a.token, first.value, a.value)})
		}
		seen[a.op] = a
	}
	return found
}
