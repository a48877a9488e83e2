// Package sim plays schedules against the protocol: a seeded discrete-event
// simulation of clients, links and nodes around one name or several, without
// goroutines and without a clock, so that a seed is a schedule and can be
// played again.
//
// The processes run the state machines that run in production: a
// process.Client each, and a process.Attempt for each claim. They are driven
// as the runtime drives them: every event is followed by sending what is in
// Out, and a Tick comes at Wake. The nodes are model.Node, the reference to
// which the Lua scripts are held.
//
// # What is simulated
//
//   - 1 to 5 nodes, 2 to 5 processes with one or two participants each, which
//     acquire, hold, renew, shrink, release, cancel and try: a mutex, a
//     read-write lock, or a semaphore.
//   - Clocks: each process and node has its own, with an offset and a drift
//     within what the protocol allows; the clients' wall clocks differ by the
//     skew at most and are set again now and then. The clocks of nodes jump, of a
//     minority within a time, and those of processes stand still. A process knows
//     of both what the nodes' answers show (process.Client).
//   - Links: ordered and slow by chance; partitions of requests, of answers, or
//     of both; breaks that leave requests behind to arrive late, or twice;
//     leaves that are kept for the next connection; pushes on a path of their
//     own that are late, lost, or ahead of the answers they belong to.
//   - Nodes that crash, stop for a while, are slow, refuse everything for good or
//     for now, go for good, or restart: with all their memory, with none, or with
//     an old one that the first client to connect marks (INFO).
//   - Room: in some schedules a process sends each node one to four requests at a
//     time, for claims and records alike. The others wait at the process, in the code
//     that does so in production (process.Attempt, lease.RegisterOp, process.Backlog).
//   - Repair of nodes that lost their data: each process runs the attempts of production
//     (repair.Attempt), and their questions are messages. Aims give nodes further names.
//   - Exchanges of nodes, in the aims of that name: operators add, remove and replace nodes
//     while claims go on, with the code of production (change.Exchange, nodeset.Membership).
//     Clients follow, operators crash and undo, and members lose their data meanwhile.
//   - Several names, in some schedules: each process claims up to four at once, which share its
//     connections, the room at the nodes and the nodes' markers. One of them has a record.
//   - Another Redlock client on the same redlock key, alone or among all faults
//     that Redlock tolerates: its messages are late or lost as well. Redlock does not
//     tolerate a node that forgets.
//   - Callers, in some schedules: goroutines of one process that share a value under a
//     claim (process.LocalQueue). They lock, try, wait, cancel, downgrade and unlock, for
//     reading and for writing. Other events come between where goroutines and locks allow
//     that in production.
//   - Processes that close: all their claims leave. And holds whose renewal ends after a while
//     (WithMaxHold).
//   - Processes that stop for a while (their timers and messages are handled
//     afterwards, in either order) or crash, and are started again.
//
// # What is checked, after every event
//
//   - capacity: the weights of the valid holders fit. A holder is valid while its
//     phase is Holding and its own clock is before its deadline.
//   - token: of two holders that exclude each other the later one has the
//     higher ticket.
//   - ahead: of several names, no claim begins with a ticket that is ahead for another name's sake.
//     All other checks hold for each name by itself.
//   - final: a final phase does not change, and a hold whose deadline has passed
//     is never valid again.
//   - evicted: no hold is ended by an operator's word at fewer nodes than a quorum; where nothing fails,
//     the word of a quorum ends it.
//   - busy: no claim wants a Tick at once after a Tick, sends without end, or repeats
//     what is unanswered on the same connection.
//   - newest: a request that has waited for room is sent in its newest form.
//   - unsent: no attempt is abandoned of which nothing has been sent.
//   - free: of claims that try a free name at the same moment, one is admitted.
//   - stuck: when the faults have stopped, every waiter is served.
//   - with callers: capacity and token hold from caller to caller; unaware: no caller goes
//     on in a hold that is lost and has not learned so; order: the caller that has waited
//     for longest is next; where nothing fails, late: no caller waits for longer than the
//     hand-overs of others may take.
//   - held: an Unlock of what is held succeeds.
//   - silenced: no node whose clock has not jumped is marked for a jump.
//   - overlong: no hold outlasts its bound by more than a lease; closed: of a process that has
//     closed no node keeps a claim, where nothing fails.
//   - set: a set of nodes that one node takes for recorded is that of all its members; no process counts on a
//     configuration that was not recorded or decided, and one follows another at most.
//   - orphan: when all claims have left, no node keeps anything; where something
//     has failed, after one more lease.
//   - order: no claim is admitted past claims that a majority of the nodes has
//     before it, whatever fails.
//   - late, also where a minority of the nodes fails: room is used within a lease
//     and a beat.
//   - where nothing fails, also lost (no claim is lost), late (room is used
//     within a few message delays), order (the claim that settled first goes first) and
//     rounds (a residue of one's own means one round after the join).
//
// # How schedules are made
//
// A generator draws a setting and plans what happens. "calm" and "storm" are
// random, without faults and with any. In half of its schedules storm harms
// holders: it cuts one off from a node, and then another node of its majority
// fails. The other generators are aims: each walks towards one way in which the
// protocol would break if a rule were missing, and leaves the details to chance,
// since random schedules alone do not get there. A failure that takes no chance
// is a trace, and has no aim. TestMutants (make mutants) leaves out rules, one at
// a time, and demands that a generator find the violation within so many seeds.
// TestTracesFindMutants demands that of the traces.
//
// # What is not simulated
//
// Bytes on the wire, Lua and Redis themselves (internal/script holds the
// scripts to model.Node); a process that connects for the first time just after
// a node's clock has jumped. Package exhaustive, below this one, searches all
// schedules of small cases.
//
// # The rooms
//
// This one has the generators: generate.go, and the aims by what they are
// about.
//
//	course      settings, time, chance, and what is recorded of a schedule
//	world       clients, links and nodes
//	trial       how a schedule of them is played, what fails, and what must hold
//	play        a trace, that is a schedule that a person writes, and its commands
//	exhaustive  every schedule of small cases
//	testdata    the traces
package sim
