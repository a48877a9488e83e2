package mutant

// Lists are the rules by what they are about. Without says what happens without
// a rule, and of a constant what comes of half of it, and of twice it.
// docs/internals/protocol.md has for each rule the proof and the traces, and
// docs/internals/simulation.md the schedules that find its mutant.
var Lists = []struct {
	About string
	Rules []Rule
}{
	{"Claims, records and clocks", claims},
	{"The local queue", localQueue},
	{"Repairs", repairs},
	{"Sets of nodes", sets},
	{"The runtime", runtime},
	{"Constants", constants},
}

var claims = []Rule{
	{"RuleRecheck",
		"validity is rule 3 re-checked, not \"any q acknowledgements\": two holders after an amnesiac restart"},
	{"RuleAbandon", "an attempt not settled within a ttl is given up: tokens decrease"},
	{"RuleExact", "acknowledgements count only at exactly T: two holders"},
	{"RuleLease", "a view is usable only while its lease runs: two holders"},
	{"RuleIncarnation", "a view of an earlier incarnation is void: two holders"},
	{"RulePushView",
		"a push counts only in the view that it belongs to, of its incarnation and at exactly its " +
			"ticket: two holders"},
	{"RulePushOnce",
		"a push counts only where the node cannot have stored the claim twice at its ticket: two holders"},
	{"RuleCounting", "lower claims are counted, not only votes: three holders of two permits"},
	{"RuleDrift", "a lease is taken to end early by the clock drift: two holders"},
	{"RuleSettleBelow", "nodes below T are settled even after admission: two waiters block each other"},
	{"RuleFinal", "lost is final: a lost claim comes back beside its successor"},
	{"RuleLeaveAll", "leave goes to every node, answered or not: an orphan blocks for a lease"},
	{"RuleSpread",
		"claims of one residue that keep off each other's T spread out: they chase each other until " +
			"the attempt's end"},
	{"RuleRaise", "a waiter whose exact nodes die raises T: it waits forever"},
	{"RuleBarred",
		"so does one that is exact where another client's key bars all claims: two waiters block each other"},
	{"RuleHint",
		"a waiter asks when the holder's lease is due to end: a dead holder is found out a beat too late"},
	{"RuleSettleMissing", "a node that misses the claim gets a settle, not a join: a holder never gets back a " +
		"node that it was cut off from"},
	{"RuleLists",
		"a semaphore's holder learns the lists while all is well: it is lost with the next node that goes"},
	{"RuleMore", "more permits count only when q views tell of them: three holders of one permit after a " +
		"Resize that failed"},
	{"RuleKeep", "a holder keeps its permits when a Resize leaves fewer: it is lost for nothing"},
	{"RuleAttest", "a node that lost its data cannot attest that nothing is recorded: a thing is done twice"},
	{"RuleFresh", "an answer about a record counts for a limited time: the node may have forgotten since what it " +
		"took, and be caught up again"},
	{"RuleFreshHalf", "and for less than half of a guard time: a reader combines what a node told it before a run began " +
		"with what a node tells that has forgotten that run"},
	{"RuleLongRun", "a run of once that takes long records that the work is not done yet: the nodes have forgotten " +
		"its promise, and readers find what an earlier run recorded"},
	{"RuleLateTake",
		"what a node that is not caught up takes after the claim is lost does not count: a settle " +
			"that arrived late has brought it the claim, and it has forgotten a later run"},
	{"RuleLateRead", "once a later run has begun, a value that a node has that is not caught up does not count: the node may have taken it after that run had looked for it"},
	{"RuleLater",
		"what a minority has is not brought to others once a later run may have begun: that run is recorded over"},
	{"RuleRepair",
		"what a read finds on a minority is brought to a majority first: what was recorded is not found later"},
	{"RuleAdopt", "a run that finds a record on a minority records it again: as above"},
	{"RuleOutlast",
		"a holder counts what a node told it before it lost its data, until that lease ends: it is " +
			"lost for nothing"},
	{"RuleAfter", "an open asks nodes that have not promised again once a majority has: a run whose clock stood still " +
		"does not find what was recorded in between"},
	{"RuleEveryList",
		"a node is repaired with the names of all nodes that may be the only one to know one: it " +
			"attests that nothing is recorded, which is"},
	{"RuleRest",
		"nodes that were left out at first are asked before long: a claim does not get the votes that it needs"},
	{"RuleStay", "a try that has a vote stays until those that met it are settled: of three tries of a free " +
		"name each finds another one ahead, and none is admitted"},
	{"RuleBurst",
		"attempts move a client's tickets ahead of the nodes' clocks by a bound at most: nodes refuse them"},
	{"RuleOld",
		"a node that takes a claim in at a ticket of half a guard time ago does not count: a token falls"},
	{"RuleCeiling",
		"a ticket that is too far ahead of the claim's own is not followed: the claim settles nowhere"},
	{"RuleForged",
		"a node that keeps a version of the far future cannot attest: what that has replaced is not found"},
	{"RuleClock",
		"a node's time that its clock cannot show without a jump is noticed: leases end early, and two hold"},
	{"RuleBlame",
		"a jump is the node's only if a majority of the other nodes has not parted from this client: " +
			"a client that slept silences all nodes"},
	{"RuleExclude", "a node has not parted only if what is known of it excludes that: a client whose clock " +
		"stood still for a moment silences a node"},
	{"RuleStood", "if a majority has parted by as much, this client's clock stood still: it has no lock for a " +
		"lease after it slept"},
	{"RuleDoubt", "a node does not vote while it is unknown whether its clock jumped: two holders"},
	{"RuleEarly",
		"and leases of before end earlier: a client that slept goes on holding beside the next holder"},
	{"RuleAsked",
		"what is known of the other nodes is from before the question that the suspect's upper bound " +
			"rests on: a client that slept while the answer was on its way silences a node"},
	{"RuleOwnIncarnation", "a reply of another incarnation than the connection began with does not count: a " +
		"node that was a replica for a moment votes with its master's data"},
	{"RuleRoute",
		"the shortest answer counts for a while only: a node whose route has become longer counts as " +
			"silent always"},
	{"RuleNearest", "the furthest of the q nearest nodes decides how long to wait: a call waits for a node " +
		"that it does not need"},
	{"RuleUnknown", "a name is free only if the nodes that have not answered could make no claim its holder: " +
		"an onlooker takes a held name for free"},
	{"RuleDown",
		"a claim hears that a node's connection is gone: of two waiters that are each first on one of " +
			"the other nodes, none is served before its beats have failed"},
	{"RuleUrgent",
		"renewals and leaves are sent before joins: a holder is lost behind the joins of its own client"},
	{"RuleNewest", "a request that waits for room is sent in its newest form: a claim acts on what is over"},
	{"RuleWithdraw", "a request that waits when its claim leaves is not sent: an orphan blocks for a lease"},
	{"RuleMerge",
		"what is unanswered is not repeated on the same connection: a node that is late gets more to do"},
	{"RuleDepart", "the lease of a request that waited for room counts from when it is sent: a holder is lost " +
		"though its nodes renewed it"},
	{"RulePostpone",
		"an attempt of which nothing has been sent is not abandoned: it starts again and again at " +
			"the end of the queue for room"},
	{"RuleHopeless", "a run that one node refuses and the others do not vote for gives up: one node with a " +
		"version of the future keeps it waiting"},
	{"RuleStash", "a push that overtakes its answer is kept: a waiter sleeps through its turn"},
	{"RuleJudged",
		"a reply that does not count moves no ticket clock and starts no repair: a client's tickets " +
			"follow another server's"},
	{"RuleMet", "the bounds of a node's clock end with its incarnation: a node that has begun another one is " +
		"taken to have jumped again"},
	{"RuleBegins",
		"what a new incarnation ends is ended before the time of the reply that shows it is read: a " +
			"jump before the next reply goes unnoticed"},
	{"RuleLanded", "what is under way is known before the claim gets an answer: a claim takes a node that has " +
		"answered for silent"},
	{"RuleAskAgain", "a node whose push may be lost is asked although the same request is under way: a waiter " +
		"sleeps through its turn"},
	{"RuleForeign", "the head of a queue asks now and then whether another client's key is gone: it waits for " +
		"as long as that could last"},
	{"RuleOpenHeld", "a run does not begin once its claim has ended: it goes on for nothing"},
	{"RulePoll", "nodes that are not heard of are asked for their time: a jump is not noticed"},
	{"RuleEvict", "an eviction is the word of q nodes: one node ends holds"},
	{"RuleRecordsWait", "operations on records wait for room at a node: a few long values, or many watches on " +
		"a new connection, break the connection"},
	{"RuleReturned", "an incarnation that another one has followed does not count again: a node whose memory " +
		"of before comes back in one run of its server votes with it"},
	{"RulePatient",
		"a claim that needs no vote of a node drops no claim there: a holder that was cut off from " +
			"one node is lost with the next one"},
	{"RuleInsist", "a claim has leases that have ended dropped once q nodes say that none before it lives: a " +
		"waiter waits forever behind a dead holder"},
	{"RuleBare", "a hold that one more node would end, though another one answers, is told of: an operator " +
		"restarts that node"},
	{"RuleLeaveAgain",
		"a leave that a node refuses for now is sent again: a released name stays taken for a lease"},
}

var localQueue = []Rule{
	{"RuleShare", "a reader joins readers only: it reads beside a writer of its own process"},
	{"RuleInLine", "and no reader joins past a caller that waits: a writer of the process starves"},
	{"RuleReadersYield", "nor while a writer is known to wait at the nodes: that one starves"},
	{"RuleFirst", "the caller that has waited for longest is next: others come past it"},
	{"RulePassTime", "while a waiter is known at the nodes, a claim is handed over for so much of the ttl at " +
		"most: the waiter is late"},
	{"RulePassUsable", "a claim that has ended or ends soon is not handed over: a caller gets what is lost"},
	{"RulePassToken", "each hand-over to a writer has a token of its own: tokens do not rise"},
	{"RulePassTokens", "a claim has so many tokens: a token is that of a later claim"},
	{"RulePlaceMode",
		"a place at the nodes goes to a caller of the same mode: a writer holds with the claim of a reader"},
	{"RulePlaceLeft", "a place that no caller takes over is left: it blocks the name"},
	{"RuleNext", "when an attempt ends, the next caller makes one: it waits forever"},
	{"RuleLinger", "a claim lingers only while no waiter is known at the nodes: the waiter is late"},
	{"RuleLingerEnd", "and when its time is over: it is kept for as long as the process lives"},
	{"RuleLingerMode",
		"and before a caller of the other mode makes an attempt: that one waits for its own process"},
	{"RuleShrinks",
		"no Unlock changes the mode while a Downgrade is under way: a writer holds with the claim of a reader"},
	{"RuleLostHolders", "the callers that hold a claim that is lost learn so: they work on"},
}

var repairs = []Rule{
	{"RuleRepairMeet",
		"each client looks at each node that it connects to: a node that no register is read from is not repaired"},
	{"RuleRepairGuard",
		"names are listed after the node's guard time: what is recorded in between is not found"},
	{"RuleRepairRestart",
		"a node that loses its data again is repaired from the beginning: what was brought before is not found"},
	{"RuleRepairHome", "a node that moves is repaired from the beginning: what was recorded since the names were " +
		"listed is not found"},
	{"RuleRepairSteady",
		"a node that loses its data while it lists names does not count: what it alone knew is not found"},
	{"RuleRepairEvery", "a node is marked once it has every name: what could not be brought is not found"},
	{"RuleRepairDecide",
		"a register that a reader finds undecided is decided by a run of its own: the node is never repaired"},
	{"RuleRepairRetry", "a repair that has failed is tried again: as above"},
	{"RuleRepairTurns", "clients take turns at a node: each of them brings it everything"},
	{"RuleRepairBound", "so many names at a time: the node's connection breaks"},
	{"RuleRepairResize", "a node that has missed a Resize gets the number: it counts by the old one"},
	{"RuleSpareCaughtUp",
		"the next node is restarted once all others are caught up: what was recorded is not found"},
	{"RuleRepairSuccession",
		"the register of what follows another configuration is left out: a node that entered is never caught up"},
	{"RuleRepairBoth", "while both sets count, a node is repaired only if the new one does not count alone: " +
		"what that has recorded is not found"},
}

var sets = []Rule{
	{"RuleSetAll", "all nodes of a list record it: two lists are recorded, and two hold"},
	{"RuleSetPromised", "a recording that is superseded gives up: as above"},
	{"RuleSetAccepted",
		"what a node has accepted is proposed again: clients count on two configurations of one list"},
	{"RuleSetVoid",
		"an acceptance is void once a node of its list has another set: the node has no vote for good"},
	{"RuleSetFound", "q nodes of a list say which set counts: one node leads a client that starts elsewhere"},
	{"RuleSetFollow", "and a majority of the members which one follows: one node leads each client elsewhere"},
	{"RuleSetVersion",
		"of registers that have it of different versions a majority proves nothing: two configurations follow"},
	{"RuleSetBind",
		"a connection counts as a member while the server shows the member's identity: one server has two votes"},
	{"RuleSetListed",
		"a client dials the address of a member that its list names: it waits for good where it reaches no other"},
	{"RuleSetAlone",
		"a client without a quorum asks each node of its list: it waits for good after it slept through changes"},
	{"RuleSetForget", "a client forgets its set once no server shows it any more: two sets, and two hold"},
	{"RuleSetWord", "a blank server gets its place by the word of q members: an earlier set comes back"},
	{"RuleSetSince", "which they give after it lost its data: a set of before comes back, and two hold"},
	{"RuleSetLife", "and only in the life of its data that they were asked in: as above"},
	{"RuleSetNumber",
		"what is known of a number ends when it stands for another member: a vote of one counts as another one's"},
	{"RuleSetSuccessor",
		"what follows a configuration is decided by clients that count on it: two configurations follow"},
	{"RuleSetTTL", "a hold ends when the set's guard time does not cover its leases any more: two holders"},
	{"RuleSetBoth", "while nodes are being exchanged a quorum is a majority of each of both sets: two holders"},
	{"RuleKeepDeadline",
		"a holder keeps its deadline when another configuration begins to count: it is lost for nothing"},
	{"RuleSettleNext",
		"a waiter settles at the nodes that begin to count: it is admitted by what they do not know"},
	{"RuleNarrow", "an attempt that is not settled starts again when the new set counts alone: a token falls"},
	{"RuleExchangeStays", "the time before the new set counts begins when a majority of the set of before " +
		"serves it at one moment: two holders"},
	{"RuleExchangeSaved", "and each of them has it on disk, if it keeps a file: as above"},
	{"RuleExchangeWait", "and it is a guard time: two holders"},
	{"RuleExchangeCaughtUp", "a majority of the new set is caught up by then: what was recorded is not found"},
	{"RuleExchangeLearn", "nodes take in what the others have before they count: a waiter loses its place"},
	{"RuleExchangeSilent", "a member that does not answer counts for nothing until it has been looked at " +
		"again: what was recorded is not found"},
	{"RuleKeepEarly", "a deadline that is kept ends earlier where clocks have parted: two holders, one of " +
		"which slept through an exchange"},
	{"RuleExchangeRead", "what is under way is given up when the register has been read: the next exchange " +
		"begins with a change that was given up"},
	{"RuleExchangeFollow",
		"clients have the time to follow before what was removed is stopped, or more is: one waits for good"},
}

var runtime = []Rule{
	{"EndFirst",
		"the holder hears of a loss before the leaves are sent: the next holder is in while it goes on"},
	{"EndAtOnce",
		"contexts end in the goroutine that ends the lease, not in one of their own: as above, on a busy process"},
	{"Restart", "each run of a server, or of its time as a master, that its marker does not name has lost " +
		"data: a node votes beside a lease that it has forgotten"},
	{"Handshake", "a connection whose handshake fails has ended: a node that is down counts as one that says " +
		"what its set is"},
	{"ReleaseLast", "a release ends the lease's contexts before it sends the leaves: the next holder is in " +
		"while a context of this one goes on"},
	{"ClusterMode", "a node in cluster mode is refused for good: Connect and each lock wait for it without end"},
	{"WholeSlot", "names are listed on a server only while it has all keys of the bucket: a node counts as " +
		"caught up without the names that have moved"},
	{"NameLast",
		"requests name another configuration after each claim knows of it: a claim counts votes of two sets"},
}

var constants = []Rule{
	{"ConstExchangeWait", "how long both sets count: two holders; a change takes longer than it has to"},
	{"ConstRound", "the pause between two looks at the members: more commands; a change takes longer"},
	{"ConstPatience",
		"how long a node that enters may be silent: one that restarts is given up; a dead one is waited for"},
	{"ConstSuccession", "how long a try to decide what follows may take: a lock of an operator that died " +
		"outlasts it; the members are not looked at meanwhile"},
	{"ConstUndo", "how long undoing may take: a slow register leaves the set half-way; an operator waits"},
	{"ConstFsyncLag", "how long a write may be missing from an append-only file: a node comes back with the " +
		"set of before; a change takes longer"},
	{"ConstSaveAgain", "the pause after a snapshot that has failed: more of them; a change takes longer"},
}
