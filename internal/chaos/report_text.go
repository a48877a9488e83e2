package main

const preamble = `# Chaos

What %s shows: real redis-server processes, each behind fault-injecting proxies, real client processes, and a
seeded nemesis; judged by checkers that do not ask the library. %s, Redis %s, %s on %s/%s with %d processors.

Every client writes down what it asked and got on the machine's monotonic clock. Checked are:

- **Holds**, from Lock's return to Unlock, the loss or the last known ValidUntil: never more than the capacity at a time.
- **Tokens**: every hold's is above that of each earlier one it conflicts with.
- **The resource**, which refuses falling tokens: no update is lost, no reader sees a number change.
- **Models** (Porcupine): mutex, tokens and resource as one linearizable object; semaphores and reader/writer locks by weight.
- **Leaders**: no answer names a term that is over, nor one before its predecessor is over.
- **Once**: all callers of a round get the same run's value, none before that run has returned, and no valid
  claim runs it again; a write-once register explains all answers (Porcupine).
- **Witnesses**: a node that says that it is caught up has what the others had, by the servers themselves.
- **Rivals**: a redsync client locks the names of mutexes and elections by their redlock keys meanwhile. No hold of the library is valid while a rival's is, by
  redsync's own Until, whichever was first, unless a node had lost its memory where [redsync votes without a guard time](from-redsync.md).
- **Clocks**: only a client whose wall clock is wrong is refused for it; no token is far from the time, whatever a client with a wrong clock has asked for.
- **Guard times**: no node sits one out that has lost nothing. A client that slept may not silence it.
- **Liveness**: when all is healed, every client gets everything within %v.
- **Leftovers**: no key but fences and records, no connection, no goroutine.

Loss of data keeps to what the protocol bears: a minority of the nodes at a time. A node counts as lost until it is caught up, and until a guard time after its return or
its jump. The harness skips a fault that would be more. A node's clock that jumps counts as a loss of data: leases end early there, or late. A clock that drifts by 0.5%% does not.
TCP shows no packet loss: a lost packet is a delay until it is sent again, 200 ms and doubling. The harness models it so. The ttl is %v, the guard time %v.
`

const simulated = `
## The simulator

The same state machine under random schedules, with a simulated network, nodes and clocks (docs/simulation.md). Printed on %s:

~~~
%s
~~~
`

const epilogue = `
## What is not covered

- Monotonic clocks of clients: they share one machine's here. The simulator has clients whose clocks drift, differ and stand still. A client that sleeps is a
  process that is stopped here, so its monotonic clock goes on. Its wall clock is its own, and set wrong.
- Disks that fail: a sync that returns an error, or a disk that is full. A slow one is covered, for nodes with fsync=always.
- A node that evicts keys: the library does not bear it. -tracks misuse adds it to a run.
- Machines that lose power, but for two stand-ins: a node with fsync=always that is killed loses all that no sync has covered, and one that
  syncs each second loses the end of its log. What a killed process has written otherwise stays with the kernel.

## What has been found

All of it is fixed. By this suite:

| What it was | What would find it again |
|---|---|
| A writer that becomes a reader keeps its token: a checker took that for a repeated token. It is documented now. | rwmutex: TestDowngrade |
| once, 3 nodes, seed 3: a run had failed, and the next one found what it had recorded on a minority. It recorded that again as its own write number 0, and then its result under the same number, which the nodes took for a repetition. They confirmed a result that was not recorded, and the work was run again. Resize and Reset had the same fault. It needs no loss of memory. | internal/core: TestOwnWriteAfterAnAdoptedRecord |
| once, 3 nodes, seed 3: Status said of what was done that it was not, while a node that had forgotten it was not repaired yet. Do was right. | once: TestUndecided; the checker of once, which lets no such answer pass any more |
| once, 5 nodes, seed 20261125, in the last seconds: no client was served for six seconds, though all was well. A run had the vote of a node that had lost its data. That node could not be repaired with what a minority had before the run decided it. The run waited for that node, since too few of the nodes that knew voted for it. | internal/sim: the mutant "a run wants to know by its own votes alone", aim hostage |
| permits on 3 servers, one killed and back at once without its memory: a holder was lost at that moment, while one that stays down costs nothing. | internal/sim: the mutant "a lease ends with its node's memory", aim unlike; internal/e2e: TestShare |
| once, 3 nodes, seed 20261123 (and most likely 20261121, whose files are gone): what had been recorded on two servers was forgotten, 2 rounds of 3,557 (and 30 of 2,800). One of the two lost its data. Its repair must ask both others. Where one of them could not be asked, the server itself counted as one that had answered: it was repaired with nothing, and could attest that there was nothing. | internal/core: TestNodeIsNotWholeUntilTold; the check of witnesses, within a minute |
| A server whose connections hang took 12 s of a client that repaired another one: the repair used the caller's own client, and its patience. | once: TestDurableWithOneThatHangs; internal/core: TestOldSnapshot |
| A client whose nodes answered later than a node timeout never learnt that its wall clock was wrong. One that had learnt it was refused without end, though its clock was right again. | internal/e2e: TestWrongWallClockFarNodes; the faults of the track walls |

Since then, by other means:

| What it was | What would find it again |
|---|---|
| A node that was another one's replica for a moment came back with that one's marker, which said that all was well, and voted at once: two holders. | internal/e2e: TestNodeThatWasAReplica; the fault "node made a replica of another for a while" |
| A promise ended with the record beside it, and an older run could record over a newer one. Promises are kept for an hour at least. | internal/script: TestConformance |
| An acknowledgement counted without end, even when the node had since forgotten what it had acknowledged. | internal/sim: the mutant "an acknowledgement counts without end", aim stretched, seed 87 |
| A node that came back from an old snapshot while no client was connected could still attest. | internal/core: TestOldSnapshot |
| A server that had been a replica confirmed writes before it logged any, whatever its fsync said, and was killed: found by hand, in search of what 3 nodes, seed 20261121, had lost. | internal/e2e: TestNodeThatDoesNotLogYet |
| A clock set back left claims of the dead for as long as it was set back, 5 nodes, seed 22. | internal/script: TestClaimOfTheFuture |
| A node's clock was set ahead and it voted while a lease still ran. | internal/sim: the mutant "no client looks at the clock"; internal/e2e: TestClockThatEndsALease |
| What a node had said after its clock jumped, and before it knew, came late and counted: in the simulator an answer, in the library a push. | internal/sim: seeds 2062686 and 2097977 |
| A node was healed with what others had told before its guard time was over; a put that rested on what it had forgotten could be settled in between, and was not found. | internal/sim: the mutant "others are asked too early", aim hearsay |
| A semaphore's holder was lost for a moment's difference between lists that begin at other tickets, three of some 600,000 schedules. | internal/protocol: TestHolderHearsOfOneNodeFirst |
| A short watch of a record shortened a longer one. | cmd/quorate/internal/embedded: TestConformance, seeds 500167 and 702439 |
| A Resize that failed raised the number of permits for some. | internal/sim: the mutant "a Resize that failed counts", aim raised, seed 1; semaphore: TestResizeUpWithANodeDown |
| Two waiters of a mutex blocked each other for as long as another client's key stayed at one of three nodes. | internal/sim: the mutant "a waiter counts a node that is barred"; internal/e2e: TestStrayKey |
| When scripts were flushed again while they were being loaded, a leave was lost, and its claim stayed for a lease. | internal/e2e: TestScriptFlush; the fault "SCRIPT FLUSH" |
| A request of a client with a short ttl and retention dropped the claim of another client with a long lease: two holders for minutes, and Check saw nothing. | internal/e2e: TestSettingsThatDiffer; internal/sim: the mutants of the aim uneven |
| A clock set back by more than the retention ended live leases at the next request: two holders. | internal/script: TestClaimOfTheFuture |
| A client that slept silenced every node, one after the other: an unrelated client lost its lock. With one node a stall of 300 ms was enough. | internal/e2e: TestClientThatSlept; internal/sim: the mutants of the aims nap and doze |
| A client that slept while answers were on their way took a part of the sleep for all of it, and silenced a healthy node for the rest. | internal/protocol: TestPartOfASleep; internal/sim: the mutant "a part of a sleep is all of it", aim midsleep |
| A client that slept took for evidence against a node what it knew of the others since the sleep, while an answer of that node from before the sleep was still to be read. | internal/protocol: TestEvidenceIsFromBeforeTheQuestion; internal/sim: the mutant "what is known since the suspect was asked is evidence", aim buffered |
| In the simulator a process that slept and was woken early, or crashed, went on with a clock that was set back later: it had a healthy node marked, five of a million schedules. | internal/sim: TestClocksOfProcessesNeverGoBack |
| A claim whose node had refused a request, and then pushed a vote that counts later, wanted to be woken without end until its next beat. | internal/protocol: TestLateVoteOfANodeThatRefused; internal/sim: the check busy |
| A holder that had slept through its lease held on for up to a ttl after it woke, beside the next holder. | internal/sim: the mutant "leases last though a clock stood still", aim overslept |
| A jump of a node's clock that was too small to be noticed, and clocks that differ by 1% in speed, gave two holders. | internal/sim: the mutant "no margin for jumps that are not noticed", aim nudge |
| One server under two addresses, 127.0.0.1 and localhost, was two votes: two holders. | internal/e2e: TestOneServerUnderTwoAddresses; internal/sim: the mutant "two addresses of one server vote" |
| A server whose append-only file was off for a while and that came back with the file of before, with fsync=always, was taken for one that had forgotten nothing: two holders. | internal/e2e: TestRestartWithFileOfBefore |
| TryAcquire of more permits than NewWeighted said asks for the number of a Resize, and waited for nodes that were down, without end: it has no context. | semaphore: TestTryDoesNotWaitForTheNumber |
`
