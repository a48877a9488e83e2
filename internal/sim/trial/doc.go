// Package trial owns what is tried on a world: a schedule is played, things
// fail in it, operators and another Redlock client act, and after every event
// the promises must hold.
package trial
