package report

// The names of the figures in the results.
const (
	Mean        = "mean_us"
	P50         = "p50_us"
	P99         = "p99_us"
	LockP50     = "lock_p50_us"
	LockP99     = "lock_p99_us"
	UnlockP99   = "unlock_p99_us"
	PerSecond   = "per_second"
	ClientCPU   = "client_cpu_us"
	ServerCPU   = "server_cpu_us"
	BothCPU     = "cpu_us"
	Requests    = "requests_per_node"
	Rounds      = "rounds_to_settle"
	NodeTime    = "node_us"
	Share       = "share_of_possible"
	WaitRatio   = "wait_p99_to_perfect"
	ServedLeast = "served_least"
	ServedMost  = "served_most"
	HandOver    = "hand_over_us"
	HandOverP99 = "hand_over_p99_us"
	PerCall     = "ns"
	Goroutines  = "goroutines"
	Heap        = "heap_bytes"
	NodeBytes   = "node_bytes"
	LeftBytes   = "left_bytes"
	GoneBytes   = "left_after_retention_bytes"
	LeftHeap    = "left_heap_bytes"
	ClientShare = "client_cpu_share"
	ServerShare = "server_cpu_share"
	Renewals    = "renewal_requests_per_second"
	AllServed   = "all_served_ms"
	FirstServed = "first_served_ms"
	Longest     = "longest_ms"
	Listed      = "listed_per_second"
	LockCount   = "lock_instructions"
	UnlockCount = "unlock_instructions"
	BothCount   = "instructions"
	JoinCount   = "join_instructions"
	BeatCount   = "beat_instructions"
	LeaveCount  = "leave_instructions"
	Count       = "how_many"
	EachClient  = "client_bytes_each"
	EachNode    = "node_bytes_each"
	EachAtRest  = "node_bytes_at_rest_each"
	EachData    = "node_data_bytes_each"
	EachNodeCPU = "node_cpu_us_each"
	HandOvers   = "hand_overs_per_second"

	ToFirstWrite  = "to_first_write_us"
	InWrites      = "in_writes_us"
	BetweenWrites = "between_writes_us"
	ToAnswer      = "to_deciding_answer_us"
	InScript      = "in_script_us"
	ToReturn      = "to_return_us"
	InAll         = "in_all_us"
)

// Units describes the figures in the tables.
var Units = map[string]string{
	Mean:        "µs per lock and unlock",
	P50:         "median, µs",
	P99:         "p99, µs",
	LockP50:     "lock: median, µs",
	LockP99:     "lock: p99, µs",
	UnlockP99:   "unlock: p99, µs",
	PerSecond:   "locks/s",
	ClientCPU:   "client's CPU, µs per lock",
	ServerCPU:   "all nodes' CPU, µs per lock",
	BothCPU:     "CPU of client and nodes, µs per lock",
	Requests:    "requests per lock at each node",
	Rounds:      "rounds until settled",
	NodeTime:    "µs in commands per lock at each node",
	Share:       "share of the time it was held",
	WaitRatio:   "p99 of the wait / a perfect queue's",
	ServedLeast: "locks of the client that had the fewest",
	ServedMost:  "locks of the client that had the most",
	HandOver:    "median, µs",
	HandOverP99: "p99, µs",
	PerCall:     "ns per call",
	Goroutines:  "goroutines more",
	Heap:        "client's heap, bytes per lease",
	NodeBytes:   "a node's memory, bytes per lease",
	LeftBytes:   "a node's memory, bytes per name",
	GoneBytes:   "… after the retention",
	LeftHeap:    "client's heap, bytes per name",
	ClientShare: "client's CPU, share of one processor",
	ServerShare: "all nodes' CPU, share of one processor",
	Renewals:    "requests/s at each node, for many renewals each",
	AllServed:   "until all have had it, ms",
	FirstServed: "until the first has it, ms",
	Longest:     "longest script or SCAN at a node, ms",
	Listed:      "names listed/s",
	LockCount:   "thousand instructions per lock",
	UnlockCount: "thousand instructions per unlock",
	BothCount:   "thousand instructions, both",
	JoinCount:   "thousand instructions per join",
	BeatCount:   "thousand instructions per beat",
	LeaveCount:  "thousand instructions per leave",
	Count:       "how many",
	EachClient:  "client's heap and stacks, bytes each",
	EachNode:    "the node's memory, bytes each",
	EachAtRest:  "… when nothing has happened for a while",
	EachData:    "… without what belongs to connections",
	EachNodeCPU: "the node's CPU to begin, µs each",
	HandOvers:   "hand-overs/s",

	ToFirstWrite:  "from the call to the first write, µs",
	InWrites:      "in writes, µs",
	BetweenWrites: "between writes, µs",
	ToAnswer:      "until the answer that decides is read, µs",
	InScript:      "… of it in the script of one node, mean, µs",
	ToReturn:      "until the call returns, µs",
	InAll:         "in all, µs",
}
