package protocol

// The rules of sets of nodes. The comment says what happens without each.
const (
	// Which configuration counts, and which node is which member: rules 1 to 10
	// of docs/membership.md.
	RuleSetAll      Rule = firstMemberRule + iota // all nodes of a list record it: two lists are recorded, and two hold
	RuleSetPromised                               // a recording that is superseded gives up: as above
	RuleSetAccepted                               // what a node has accepted is proposed again: clients count on two configurations of one list
	RuleSetList                                   // a client whose list is another one makes no claim: two holders
	RuleSetPlace                                  // a node without a set becomes a member only where a member was: a node of another list takes a member's place, and two hold
	RuleSetWord                                   // and only by the word of q members: an earlier set comes back
	RuleSetRegain                                 // or once all nodes have accepted it: nodes come back to two sets, and two hold
	RuleSetOutside                                // what a node said before it is known to be a member lets no claim in: two holders
	RuleSetPatient                                // a node that has no vote yet is not connected to again for what it refuses: its set is never recorded
	RuleSetKin                                    // a node of another recorded set stays with it: it is a member of two sets, and two hold
	RuleSetCopy                                   // of two servers with one identity one votes: two holders

	// While nodes are being exchanged: rules 11 to 22 of docs/membership.md.
	// They matter from the first move of a node to another configuration on. In
	// a set whose nodes were never exchanged none of them is looked at, so a
	// mutant of one shows in the aims that exchange nodes only.
	RuleSetBoth          // while nodes are being exchanged a quorum is a majority of the set of before, too: two holders
	RuleSetEach          // and of each set, not of all nodes of both: two holders
	RuleSetFollow        // a later configuration counts only if a member of the present one shows it: two holders
	RuleKeepDeadline     // a holder keeps its deadline when another configuration begins to count: it is lost for nothing
	RuleSettleNext       // a waiter settles at the nodes that begin to count: it is admitted by what they do not know
	RuleNarrow           // an attempt that is not settled starts again when the new set counts alone: a token falls
	RuleExchangeMoved    // the time before the new set counts begins when a majority of the set of before has moved: two holders
	RuleExchangeStays    // and each of these nodes was seen to serve it after that: as above
	RuleExchangeSaved    // and each of them has it on disk, if it keeps a file: as above
	RuleExchangeWait     // and it is a guard time: two holders
	RuleExchangeCaughtUp // a majority of the new set is caught up by then: what was recorded is not found
	RuleExchangeLearn    // nodes take in what the others have before they count: a waiter loses its place

	RuleKeepGuard      // an operator's call for a set that is in use ends no guard time: a node votes beside a lease that it has forgotten
	RuleLeaveUsed      // and does not record it: clients with another list, and of earlier versions, are refused from then on
	RuleSetSeen        // a node goes on at an address where its member shows itself: an empty server gets a member's vote
	RuleSetUnlisted    // and not while a newer list names its own address: a copy of its data votes while it is away
	RuleSetRoom        // a client without a number for a member stops: it counts a majority of fewer nodes, and two hold
	RuleExchangeSilent // a member that does not answer counts for nothing until it has been looked at again: what was recorded is not found
	RuleKeepEarly      // a deadline that is kept ends earlier where clocks have parted: two holders, one of which slept through an exchange
	RuleTakeBack       // a holder asks nodes that have it at a higher ticket to take it back at its own, while nodes are exchanged: it is lost
	RuleBackLater      // a view of a node that may have done so counts half a guard time later: two holders
	RuleTookBack       // what such a node told or pushed before counts no more: two holders
	RuleExchangeTake   // nodes that stay have the time for that before the nodes that leave do not suffice any more: a hold is lost
	RuleExchangeRead   // what is under way is given up when the register has been read: the next exchange begins with a change that was given up

	RuleSetNumber // each member has a number of its own, also while its address leads to another one: one server is two members
	RuleSetAstray // what shows a member at the address of another one is not used while that member may be at its own: a copy of its data votes
	RuleSetOther  // what a claim knows of a number ends when another member is reached by it: a vote of one counts as another one's
	RuleSetHeard  // a view that a node gave before it was known to be a member counts with its next answer: as above
	RuleSetAnswer // and so does what an operation on a record knows of it: what was recorded is not found
	RuleSetTell   // what counts on the nodes learns when a number stands for another member: as above
	RuleSetSince  // a node gets its place back by what members say after it lost its data: a set of before comes back, and two hold
	RuleSetLife   // and only in the life of its data that they were asked in: as above
	RuleSetBlank  // what a server without an identity said counts with the next answer when another one shows that of a member: as above
	RuleSetHome   // a member is used at its own address where it does not answer at the one it was seen at: it has no vote though it runs
	RuleSetAlone  // a client without a quorum asks each node of its list: it waits for good after it slept through exchanges
)

// firstMemberRule leaves room for the rules of repairs.
const firstMemberRule = 224
