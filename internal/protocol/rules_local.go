package protocol

// The rules of the local queue. The comment says what happens without each.
const (
	RuleShare        Rule = firstLocalRule + iota // a reader joins readers only: it reads beside a writer of its own process
	RuleInLine                                    // and no reader joins past a caller that waits: a writer of the process starves
	RuleReadersYield                              // nor while a writer is known to wait at the nodes: that one starves
	RuleFirst                                     // the caller that has waited for longest is next: others come past it
	RulePassTime                                  // while a waiter is known at the nodes, a claim is handed over for so much of the ttl at most: the waiter is late
	RulePassUsable                                // a claim that has ended or ends soon is not handed over: a caller gets what is lost
	RulePassToken                                 // each hand-over to a writer has a token of its own: tokens do not rise
	RulePassTokens                                // a claim has so many tokens: a token is that of a later claim
	RulePlaceMode                                 // a place at the nodes goes to a caller of the same mode: a writer holds with the claim of a reader
	RulePlaceLeft                                 // a place that no caller takes over is left: it blocks the name
	RuleNext                                      // when an attempt ends, the next caller makes one: it waits forever
	RuleLinger                                    // a claim lingers only while no waiter is known at the nodes: the waiter is late
	RuleLingerEnd                                 // and when its time is over: it is kept for as long as the process lives
	RuleLingerMode                                // and before a caller of the other mode makes an attempt: that one waits for its own process
	RuleShrinks                                   // no Unlock changes the mode while a Downgrade is under way: a writer holds with the claim of a reader
	RuleLostHolders                               // the callers that hold a claim that is lost learn so: they work on
)

// firstLocalRule leaves room for the rules of claims.
const firstLocalRule = 128
