// Package nemesis breaks things: servers, their data and clocks, the network,
// clients, and the set of nodes. What it does, and in which order, is drawn
// from the seed alone.
//
//	nemesis.go         tracks, and the run of each
//	faults_members.go  exchanges of nodes, while all else fails
//	members.go         how operators exchange nodes, and which set counts then
//	faults_server.go   servers killed and stopped; disks
//	faults_client.go   clients killed, stopped, asleep; holders evicted
//	faults_clock.go    clocks that jump and drift
//	faults_net.go      partitions, loss, latency; what comes late
//	faults_data.go     data lost, replaced, or in the way
//	harm.go            what all faults share: the plan, choices of nodes and times
//	operator.go        the process that exchanges nodes once
//
// A harm is a kind of fault. It undoes what it has done. Harms of one track
// take turns; tracks run side by side.
package nemesis
