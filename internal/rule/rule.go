// Package rule names the rules of the runtime. The comment says what happens
// without each. A rule is here if it is about what package protocol has not:
// contexts and callbacks, the handshake, the commands beside claims. A build
// with the tag "mutants" can switch each off: TestMutants of package core does.
// In every other build the checks cost nothing.
package rule

// Rule is one rule that safety or liveness rests on.
type Rule uint16

const (
	EndFirst    Rule = 1 << iota // the holder hears of a loss before the leaves are sent: the next holder is in while it goes on
	EndAtOnce                    // contexts end in the goroutine that ends the lease, not in one of their own: as above, on a busy process
	Restart                      // each run of a server, or of its time as a master, that its marker does not name has lost data: a node votes beside a lease that it has forgotten
	Handshake                    // a connection whose handshake fails has ended: a node that is down counts as one that says what its set is
	ReleaseLast                  // a release ends the lease's contexts before it sends the leaves: the next holder is in while a context of this one goes on
	ClusterMode                  // a node in cluster mode is refused for good: Connect and each lock wait for it without end
	WholeSlot                    // names are listed on a server only while it has all keys of the bucket: a node counts as caught up without the names that have moved
	NameLast                     // requests name another configuration after each claim knows of it: a claim counts votes of two sets
)
