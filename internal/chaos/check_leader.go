package main

import "fmt"

// mistaken finds wrong answers to the question for the leader: a term when a
// later one had begun before the client asked, and one that had not begun
// yet, as an earlier one was still going on when they had the answer.
func mistaken(ops []*operation, told []sighting) (found []violation) {
	for _, s := range told {
		for _, o := range ops {
			switch {
			case !o.held():
			case o.Token > s.Token && o.Begin < s.From:
				found = append(found, violation{At: s.To, What: fmt.Sprintf(
					"%s asked for the leader from %s to %s, and got term %d, though a later one had begun", s.By, seconds(s.From), seconds(s.To), s.Token), Ops: []*operation{o}})
			case o.Token < s.Token && o.valid() > s.To:
				found = append(found, violation{At: s.To, What: fmt.Sprintf(
					"%s asked for the leader from %s to %s, and got term %d, though an earlier one was not over", s.By, seconds(s.From), seconds(s.To), s.Token), Ops: []*operation{o}})
			}
		}
	}
	return found
}
