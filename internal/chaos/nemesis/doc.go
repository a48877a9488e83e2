// Package nemesis injects faults: into servers, their data and clocks, the
// network, clients, and the set of nodes. The seed alone determines the faults
// and their order.
//
//	nemesis.go         tracks, and the run of each
//	faults_members.go  exchanges of nodes during all other faults
//	members.go         how operators exchange nodes, and which set counts afterwards
//	faults_server.go   servers killed and stopped; disks
//	faults_client.go   clients killed, stopped, asleep; holders evicted
//	faults_clock.go    clocks that jump and drift
//	faults_net.go      partitions, loss, latency, late delivery
//	faults_data.go     data lost, replaced, or in the way
//	harm.go            shared by all faults: the plan, choices of nodes and times
//	operator.go        the process that exchanges nodes once
//
// A harm is a kind of fault. It undoes the fault that it has injected. The
// harms of one track run one at a time; tracks run concurrently.
package nemesis
