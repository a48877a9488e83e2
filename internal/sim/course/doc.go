// Package course owns the course of a schedule, whatever it is of: its setting,
// true time and the clocks, chance, what is going to happen, the trace and the
// tape of what has happened, and the violation that shows.
package course
