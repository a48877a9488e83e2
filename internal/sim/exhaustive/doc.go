// Package exhaustive looks at every schedule of a small case: two claims on
// three nodes, in the code that runs in production (process.Attempt and the
// Client that starts it and gives it its answers) and on the reference node
// (model.Node). A random schedule meets the rare ones only when it is aimed at
// them; here the order of every message, every expiry, one restart and one
// failure is tried in each place where it can happen.
//
// # What a state is
//
// Time is discrete: a unit is a millisecond, a lease 2 or 3 of them, the guard
// 2 ttl + 2 skew. A state is what the claims know, what the nodes keep, what
// travels between them, and what may still go wrong, all with times relative to
// now. So there is no horizon: the search ends when no new state appears,
// however much time passes on the way. States are compared whole, not by a
// hash, and states that differ in the names of the nodes only are one.
//
// # What is tried in each state
//
//   - a claim starts, with a T0 above the others', below them as far as clocks
//     may differ, or the very same (one residue); it leaves, as a holder or
//     before;
//   - the next request of a claim reaches a node, the next answer comes back (in
//     order on one connection); a push arrives, in any order or never;
//   - a node loses its data (Restarts); a unit of time passes, for all, or
//     unnoticed by one process (Pauses); a node's clock gains a unit (Gains);
//   - a message is given up, and still arrives at any later time, out of
//     order, or never (Fails); a request comes twice (Repeats); a claim and a
//     node lose each other for good (Cuts), or for a moment (Drops);
//   - a node has no room for a claim's requests for any time, and they wait at
//     the client (Stops).
//
// # What is checked
//
// After each step: the valid holders fit the capacity; a claim is admitted with
// a higher ticket than every earlier one; nothing that is thrown at an ended
// claim revives it, and a hold that has run out is not valid again; a claim
// asks to be woken no later than it has something to do, and not over and over.
// From sampled states (Live) also that a calm network brings every attempt to
// its end and leaves nothing on the nodes.
//
// Futures in which nothing of that kind can go wrong any more, say with one
// claim left that is above all earlier ones, are not followed (space.open).
// That takes for granted that a claim's ticket never falls and that a lone
// claim's hold is not revived; both are looked at while there are two.
//
// # What is complete, and what is bounded
//
// Each world of TestExhaustive is searched to its end. Not all bounds can be
// lifted at once; each world lifts some:
//
//   - messages of any delay, and one of: a restart, a copy, a message given up
//     (then no beats arrive), two beats;
//   - all beats, without end, alone or with a copy, a message given up or a fast
//     node's clock and a cut; with a restart alone or with two pauses, clocks
//     apart, a cut, or (three beats only) a copy: but every message that no
//     failure hits arrives within the unit in which it was sent, in any order
//     among the others.
//
// The Client judges no reply here: each one counts. So the search has more
// schedules than there are, in which an answer of another incarnation reaches
// the claim. What the Client knows of incarnations, clocks and round trips
// would make nearly every moment a state of its own; the random simulator
// drives that.
//
// Always: two claims, one attempt each (three for a semaphore, not to the end),
// no more than four pushes under way on one link, no TryLock, no second
// restart. Two claims of one residue with a restart can outbid each other in no
// time, so there the ticket is bounded (Raises).
//
// # Mutants
//
// In make mutants rules are left out and the search must go wrong in the
// way and on the shortest path that mutants_test.go names. With two claims it
// has not gone wrong, as far as such worlds fit, without these: that a push and
// a view count only in their incarnation, that a push counts only with exactly
// T, that settle does not insert below F, that nodes below T are settled after
// admission. The guard and the end of unsettled attempts stand before them.
// They are left to the random simulator, as are residues and early pushes,
// whose lack costs time and not safety.
//
// It is in builds with the tag "search" only, as the states of claims are.
package exhaustive
