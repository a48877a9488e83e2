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
- **Liveness**: when all is healed, every client gets everything within %v. A run in which no quorum of servers answered the
  harness within 1s meanwhile, on a busy machine, says nothing of that.
- **Leftovers**: no key but fences and records, no connection, no goroutine.

Loss of data keeps to what the protocol bears: a minority of the nodes at a time. A node counts as lost until it is caught up, and until a guard time after its return or
its jump. The harness skips a fault that would be more. A node's clock that jumps counts as a loss of data: leases end early there, or late. A clock that drifts by 0.5%% does not.
It turns round when it is off by a quarter of the skew: the protocol promises nothing while the clocks of a majority are off by more than the skew.
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

[History](history.md) has each fault, what found it, and the trace or the test that finds it again. Add rows there.
`
