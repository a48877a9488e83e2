package protocol

// Rule names one rule of the client's side that safety or liveness rests on. A
// build with the tag "mutants" can switch each off, to see the simulator
// notice; in every other build Rules is empty and the checks cost nothing. 0 is
// no rule.
type Rule uint16

// The rules. The comment says what happens without each.
// docs/internals/protocol.md has for each the proof and the traces, and
// docs/internals/simulation.md the schedules that find its mutant.
const (
	RuleRecheck        Rule = iota + 1 // validity is rule 3 re-checked, not "any q acknowledgements": two holders after an amnesiac restart
	RuleAbandon                        // an attempt not settled within a ttl is given up: tokens decrease
	RuleExact                          // acknowledgements count only at exactly T: two holders
	RuleLease                          // a view is usable only while its lease runs: two holders
	RuleIncarnation                    // a view of an earlier incarnation is void: two holders
	RulePushView                       // a push counts only in the view that it belongs to, of its incarnation and at exactly its ticket: two holders
	RulePushOnce                       // a push counts only where the node cannot have stored the claim twice at its ticket: two holders
	RuleCounting                       // lower claims are counted, not only votes: three holders of two permits
	RuleDrift                          // a lease is taken to end early by the clock drift: two holders
	RuleSettleBelow                    // nodes below T are settled even after admission: two waiters block each other
	RuleFinal                          // lost is final: a lost claim comes back beside its successor
	RuleLeaveAll                       // leave goes to every node, answered or not: an orphan blocks for a lease
	RuleSpread                         // claims of one residue that keep off each other's T spread out: they chase each other until the attempt's end
	RuleRaise                          // a waiter whose exact nodes die raises T: it waits forever
	RuleBarred                         // so does one that is exact where another client's key bars all claims: two waiters block each other
	RuleHint                           // a waiter asks when the holder's lease is due to end: a dead holder is found out a beat too late
	RuleSettleMissing                  // a node that misses the claim gets a settle, not a join: a holder never gets back a node that it was cut off from
	RuleLists                          // a semaphore's holder learns the lists while all is well: it is lost with the next node that goes
	RuleMore                           // more permits count only when q views tell of them: three holders of one permit after a Resize that failed
	RuleKeep                           // a holder keeps its permits when a Resize leaves fewer: it is lost for nothing
	RuleAttest                         // a node that lost its data cannot attest that nothing is recorded: a thing is done twice
	RuleFresh                          // an answer counts for less than a guard time: the node may have forgotten since what it took, and be caught up again
	RuleLater                          // what a minority has is not brought to others once a later run may have begun: that run is recorded over
	RuleRepair                         // what a read finds on a minority is brought to a majority first: what was recorded is not found later
	RuleAdopt                          // a run that finds a record on a minority records it again: as above
	RuleOutlast                        // a holder counts what a node told it before it lost its data, until that lease ends: it is lost for nothing
	RuleOthers                         // an open also counts nodes that are caught up and do not vote for its claim: it and the repair of a node wait for each other
	RuleAfter                          // and asks them once it has q promises; a node is repaired by what others tell when its guard time is over: what was recorded in between is not found
	RuleEveryList                      // a node is repaired with the names of all nodes that may be the only one to know one: it attests that nothing is recorded, which is
	RuleRest                           // nodes that were left out at first are asked before long: a claim does not get the votes that it needs
	RuleStay                           // a try that has a vote stays until those that met it are settled: of three tries of a free name each finds another one ahead, and none is admitted
	RuleBurst                          // attempts move a client's tickets ahead of the nodes' clocks by a bound at most: nodes refuse them
	RuleOld                            // a node that takes a claim in at a ticket of half a guard time ago does not count: a token falls
	RuleCeiling                        // a ticket that is too far ahead of the claim's own is not followed: the claim settles nowhere
	RuleForged                         // a node that keeps a version of the far future cannot attest: what that has replaced is not found
	RuleClock                          // a node's time that its clock cannot show without a jump is noticed: leases end early, and two hold
	RuleBlame                          // a jump is the node's only if a majority of the other nodes has not parted from this client: a client that slept silences all nodes
	RuleExclude                        // a node has not parted only if what is known of it excludes that: a client whose clock stood still for a moment silences a node
	RuleStood                          // if a majority has parted by as much, this client's clock stood still: it has no lock for a lease after it slept
	RuleDoubt                          // a node does not vote while it is unknown whether its clock jumped: two holders
	RuleEarly                          // and leases of before end earlier: a client that slept goes on holding beside the next holder
	RuleAsked                          // what is known of the other nodes is from before the question that the suspect's upper bound rests on: a client that slept while the answer was on its way silences a node
	RuleOwnIncarnation                 // a reply of another incarnation than the connection began with does not count: a node that was a replica for a moment votes with its master's data
	RuleRoute                          // the shortest answer counts for a while only: a node whose route has become longer counts as silent always
	RuleNearest                        // the furthest of the q nearest nodes decides how long to wait: a call waits for a node that it does not need
	RuleUnknown                        // a name is free only if the nodes that have not answered could make no claim its holder: an onlooker takes a held name for free
	RuleDown                           // a claim hears that a node's connection is gone: of two waiters that are each first on one of the other nodes, none is served before its beats have failed
	RuleUrgent                         // renewals and leaves are sent before joins: a holder is lost behind the joins of its own client
	RuleNewest                         // a request that waits for room is sent in its newest form: a claim acts on what is over
	RuleWithdraw                       // a request that waits when its claim leaves is not sent: an orphan blocks for a lease
	RuleMerge                          // what is unanswered is not repeated on the same connection: a node that is late gets more to do
	RuleDepart                         // the lease of a request that waited for room counts from when it is sent: a holder is lost though its nodes renewed it
	RulePostpone                       // an attempt of which nothing has been sent is not abandoned: it starts again and again at the end of the queue for room
	RuleHopeless                       // a run that one node refuses and the others do not vote for gives up: one node with a version of the future keeps it waiting
	RuleStash                          // a push that overtakes its answer is kept: a waiter sleeps through its turn
	RuleJudged                         // a reply that does not count moves no ticket clock and starts no repair: a client's tickets follow another server's
	RuleMet                            // the bounds of a node's clock end with its incarnation: a node that has begun another one is taken to have jumped again
	RuleBegins                         // what a new incarnation ends is ended before the time of the reply that shows it is read: a jump before the next reply goes unnoticed
	RuleLanded                         // what is under way is known before the claim gets an answer: a claim takes a node that has answered for silent
	RuleAskAgain                       // a node whose push may be lost is asked although the same request is under way: a waiter sleeps through its turn
	RuleForeign                        // the head of a queue asks now and then whether another client's key is gone: it waits for as long as that could last
	RuleOpenHeld                       // a run does not begin once its claim has ended: it goes on for nothing
	RulePoll                           // nodes that are not heard of are asked for their time: a jump is not noticed
	RuleEvict                          // an eviction is the word of q nodes: one node ends holds
	RuleRecordsWait                    // operations on records wait for room at a node: a few long values, or many watches on a new connection, break the connection
	RuleReturned                       // an incarnation that another one has followed does not count again: a node whose memory of before comes back in one run of its server votes with it
	RulePatient                        // a claim that needs no vote of a node drops no claim there: a holder that was cut off from one node is lost with the next one
	RuleInsist                         // a claim has leases that have ended dropped once q nodes say that none before it lives: a waiter waits forever behind a dead holder
	RuleLeaveAgain                     // a leave that a node refuses for now is sent again: a released name stays taken for a lease
)
