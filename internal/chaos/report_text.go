package main

const preamble = `# Chaos

What %s shows: real redis-server processes, each behind fault-injecting proxies, real client processes, and a
seeded nemesis; judged by checkers that do not ask the library. %s, Redis %s, %s.

Every client writes down what it asked and got on the machine's monotonic clock. Checked are:

- **Holds**, from Lock's return to Unlock, the loss or the last known ValidUntil: never more than the capacity at a time.
- **Tokens**: every hold's is above that of each earlier one it conflicts with.
- **The resource**, which refuses falling tokens: no update is lost, no reader sees a number change.
- **Models** (Porcupine): mutex, tokens and resource as one linearizable object; semaphores and reader/writer locks by weight.
- **Leaders**: whoever asks is told of no term that is over, and of none before the one before it is over.
- **Once**: all who call for a round get the same run's value, nobody before that run has returned, and nobody with a valid
  claim runs it again; a write-once register explains all answers (Porcupine).
- **Liveness**: when all is healed, every client gets everything within %v.
- **Leftovers**: no key but fences and records, no connection, no goroutine.

Loss of memory keeps to what the protocol bears: a minority of the nodes at a time, each until a guard time after it is
back and until it has been told what is recorded; the harness skips what would be more. TCP has no packet loss to show: a
lost packet is a delay until it is sent again, 200 ms and doubling, and so it is modelled. The ttl is %v, the guard time %v.
`

const epilogue = `
## What is not covered

- Clocks of servers that jump or drift: all are on one machine here.
- Slow disks, with fsync on every write.
- A node that is a replica of another for a while, and one that evicts keys: the library does not bear them. -tracks misuse adds
  them to a run.
- Machines that lose power: a process that is killed leaves to the kernel what it has written. An append-only file without
  its last second stands for that.

## What the suite has found

- A writer that becomes a reader (rwmutex, Downgrade) keeps its token: a checker took that for a repeated token. It is documented now.
- once, 3 nodes, seed 3: a run had failed, and the next one found that recorded on a minority. It recorded that anew as its own write
  number 0, and then its result under the same number, which the nodes took for a repetition. So it was told that its result was
  recorded, which was not, and the work was run again. Resize of a semaphore and Reset had the same fault. It needs no loss of
  memory: that two clients see different majorities is enough.
- once, 3 nodes, seed 3: Status said of what was done that it was not started, while a node that had forgotten it was not told
  again yet. Do was right. The report counts such answers.
`
