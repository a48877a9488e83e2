package course

import "fmt"

// Stats says how much was played.
type Stats struct {
	Schedules, Events, Claims, Admissions, Rounds, Requests, Lost, Restarts, Leaps, Sleeps, Excused, RegisterOps, Turns int
	// Requests of one claim to each node within a second.
	Busiest int
}

func (s *Stats) Add(o Stats) {
	s.Schedules += o.Schedules
	s.Events += o.Events
	s.Claims += o.Claims
	s.Admissions += o.Admissions
	s.Rounds += o.Rounds
	s.Requests += o.Requests
	s.Lost += o.Lost
	s.Restarts += o.Restarts
	s.Leaps += o.Leaps
	s.Sleeps += o.Sleeps
	s.Excused += o.Excused
	s.RegisterOps += o.RegisterOps
	s.Turns += o.Turns
	s.Busiest = max(s.Busiest, o.Busiest)
}

func (s Stats) String() string {
	return fmt.Sprintf("%d schedules: %d events, %d claims, %d admissions (%.2f rounds each), %d requests, %d "+
		"lost, %d node crashes, %d leaps of a clock, %d sleeps, %d schedules with a leap that could not be "+
		"noticed, %d operations on records, %d turns in local queues, at most %d requests of a claim to a node "+
		"within a second",
		s.Schedules, s.Events, s.Claims, s.Admissions, float64(s.Rounds)/float64(max(1, s.Admissions)), s.Requests,
		s.Lost, s.Restarts, s.Leaps, s.Sleeps, s.Excused, s.RegisterOps, s.Turns, s.Busiest)
}
