package main

// The figures, by the names that they have in the results.
const (
	mean        = "mean_us"
	p50         = "p50_us"
	p99         = "p99_us"
	lockP50     = "lock_p50_us"
	lockP99     = "lock_p99_us"
	unlockP99   = "unlock_p99_us"
	perSecond   = "per_second"
	clientCPU   = "client_cpu_us"
	serverCPU   = "server_cpu_us"
	bothCPU     = "cpu_us"
	requests    = "requests_per_node"
	rounds      = "rounds_to_settle"
	nodeTime    = "node_us"
	share       = "share_of_possible"
	waitRatio   = "wait_p99_to_perfect"
	servedLeast = "served_least"
	servedMost  = "served_most"
	handOver    = "hand_over_us"
	handOverP99 = "hand_over_p99_us"
	perCall     = "ns"
	goroutines  = "goroutines"
	heap        = "heap_bytes"
	nodeBytes   = "node_bytes"
	leftBytes   = "left_bytes"
	goneBytes   = "left_after_retention_bytes"
	leftHeap    = "left_heap_bytes"
	clientShare = "client_cpu_share"
	serverShare = "server_cpu_share"
	renewals    = "renewal_requests_per_second"
	allServed   = "all_served_ms"
	firstServed = "first_served_ms"
	longest     = "longest_ms"
	listed      = "listed_per_second"

	toFirstWrite  = "to_first_write_us"
	inWrites      = "in_writes_us"
	betweenWrites = "between_writes_us"
	toAnswer      = "to_deciding_answer_us"
	inScript      = "in_script_us"
	toReturn      = "to_return_us"
	inAll         = "in_all_us"
)

// units say in the tables what the figures are.
var units = map[string]string{
	mean:        "µs per lock and unlock",
	p50:         "median, µs",
	p99:         "p99, µs",
	lockP50:     "lock: median, µs",
	lockP99:     "lock: p99, µs",
	unlockP99:   "unlock: p99, µs",
	perSecond:   "locks/s",
	clientCPU:   "client's CPU, µs per lock",
	serverCPU:   "all nodes' CPU, µs per lock",
	bothCPU:     "CPU of client and nodes, µs per lock",
	requests:    "requests per lock at each node",
	rounds:      "rounds until settled",
	nodeTime:    "µs in commands per lock at each node",
	share:       "share of the time it was held",
	waitRatio:   "p99 of the wait / a perfect queue's",
	servedLeast: "locks of the client that had the fewest",
	servedMost:  "locks of the client that had the most",
	handOver:    "median, µs",
	handOverP99: "p99, µs",
	perCall:     "ns per call",
	goroutines:  "goroutines more",
	heap:        "client's heap, bytes per lease",
	nodeBytes:   "a node's memory, bytes per lease",
	leftBytes:   "a node's memory, bytes per name",
	goneBytes:   "… after the retention",
	leftHeap:    "client's heap, bytes per name",
	clientShare: "client's CPU, share of one processor",
	serverShare: "all nodes' CPU, share of one processor",
	renewals:    "requests/s at each node, for many renewals each",
	allServed:   "until all have had it, ms",
	firstServed: "until the first has it, ms",
	longest:     "longest script or SCAN at a node, ms",
	listed:      "names listed/s",

	toFirstWrite:  "from the call to the first write, µs",
	inWrites:      "in writes, µs",
	betweenWrites: "between writes, µs",
	toAnswer:      "until the answer that decides is read, µs",
	inScript:      "… of it in the script of one node, mean, µs",
	toReturn:      "until the call returns, µs",
	inAll:         "in all, µs",
}
