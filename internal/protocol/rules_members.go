package protocol

// The rules of sets of nodes. The comment says what happens without each.
const (
	// Which configuration counts, and which connection is which member: rules 1
	// to 10 of docs/internals/protocol.md, "Sets of nodes".
	RuleSetAll       Rule = firstMemberRule + iota // all nodes of a list record it: two lists are recorded, and two hold
	RuleSetPromised                                // a recording that is superseded gives up: as above
	RuleSetAccepted                                // what a node has accepted is proposed again: clients count on two configurations of one list
	RuleSetVoid                                    // an acceptance is void once a node of its list has another set: the node has no vote for good
	RuleSetFound                                   // q nodes of a list say which set counts: one node leads a client that starts elsewhere
	RuleSetFollow                                  // and a majority of the members which one follows: one node leads each client elsewhere
	RuleSetVersion                                 // of registers that have it of different versions a majority proves nothing: two configurations follow
	RuleSetBind                                    // a connection counts as a member while the server shows the member's identity: one server has two votes
	RuleSetListed                                  // a client dials the address of a member that its list names: it waits for good where it reaches no other
	RuleSetAlone                                   // a client without a quorum asks each node of its list: it waits for good after it slept through changes
	RuleSetWord                                    // a blank server gets its place by the word of q members: an earlier set comes back
	RuleSetSince                                   // which they give after it lost its data: a set of before comes back, and two hold
	RuleSetLife                                    // and only in the life of its data that they were asked in: as above
	RuleSetNumber                                  // what is known of a number ends when it stands for another member: a vote of one counts as another one's
	RuleSetSuccessor                               // what follows a configuration is decided by clients that count on it: two configurations follow
	RuleSetTTL                                     // a hold ends when the set's guard time does not cover its leases any more: two holders

	// While the set is being changed: rules 11 to 22 of
	// docs/internals/protocol.md, "Sets of nodes". They matter from the first
	// move of a node to another configuration on. In a set that was never
	// changed none of them is looked at, so a mutant of one shows in the aims
	// that change sets only.
	RuleSetBoth          // while nodes are being exchanged a quorum is a majority of each of both sets: two holders
	RuleKeepDeadline     // a holder keeps its deadline when another configuration begins to count: it is lost for nothing
	RuleSettleNext       // a waiter settles at the nodes that begin to count: it is admitted by what they do not know
	RuleNarrow           // an attempt that is not settled starts again when the new set counts alone: a token falls
	RuleExchangeStays    // the time before the new set counts begins when a majority of the set of before serves it at one moment: two holders
	RuleExchangeSaved    // and each of them has it on disk, if it keeps a file: as above
	RuleExchangeWait     // and it is a guard time: two holders
	RuleExchangeCaughtUp // a majority of the new set is caught up by then: what was recorded is not found
	RuleExchangeLearn    // nodes take in what the others have before they count: a waiter loses its place
	RuleExchangeSilent   // a member that does not answer counts for nothing until it has been looked at again: what was recorded is not found
	RuleKeepEarly        // a deadline that is kept ends earlier where clocks have parted: two holders, one of which slept through an exchange
	RuleExchangeRead     // what is under way is given up when the register has been read: the next exchange begins with a change that was given up
	RuleExchangeFollow   // clients have the time to follow before what was removed is stopped, or more is: one waits for good
)

// firstMemberRule leaves room for the rules of repairs.
const firstMemberRule = 224
