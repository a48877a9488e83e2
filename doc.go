// Package quorate is the sync package, across processes: Mutex, RWMutex, a
// weighted Semaphore, Once and leader election, kept by a majority of N
// independent Redis masters.
//
// A Quorum is this process's connection to the nodes; the primitives are in
// packages of their own: mutex, rwmutex, semaphore, once and leader.
//
//	q, err := quorate.Connect(ctx, []string{"redis://a:6379", "redis://b:6379", "redis://c:6379"})
//	...
//	m := mutex.New(q, "invoices")
//	m.Lock()
//	defer m.Unlock()
//
// # What is guaranteed
//
// The algorithm is Redlock (the same key and a random id on N masters, a
// majority, a validity time measured from before the send, extension, release
// everywhere, delayed restarts), completed with an order among contenders, a
// fencing token, and wake-ups instead of polling. While fewer than half of the
// nodes fail at a time, clocks run at the same speed within 1%, and a node that
// lost its memory sits out its guard time, no two processes hold a name at the
// same time by their own clocks, and each holder's token is higher than every
// earlier one's.
//
// # What is not
//
// No lock service can stop a process that has been paused from going on as if
// it still held the lock. Its lease's context has ended by then, but code that
// does not look does not know. Where that matters, give the lease's token to
// the resource and let it refuse a lower one than it has seen.
package quorate
