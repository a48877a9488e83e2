package report

// The names of the sides in the ratios.
const (
	QuorateName = "quorate"
	AsyncName   = "quorate (Unlock)"
	LingerName  = "quorate (linger)"
	MutexName   = "quorate (mutex)"
	MetricsName = "quorate (metrics)"
	FewName     = "quorate (otel, 1% of spans)"
	SeenName    = "quorate (otel)"
	ListName    = "quorate (beside ls)"
	RedsyncName = "redsync"
	FastName    = "redsync (fail-fast)"
	RueidisName = "rueidislock"
	BsmName     = "bsm/redislock"
	FloorName   = "floor"
	FencedName  = "fenced floor"
	SyncName    = "sync"
	HealthyName = "quorate, all nodes well"
	HopName     = "one publish-to-subscriber hop"
	HopsName    = "the hop from a majority"
	AloneName   = "by itself"
	BatchName   = "one of 16 in a request"
	QueueName   = "with a claim that waits"

	ConnectionsName = "silent connections"
	ClientsName     = "clients"
	HoldsName       = "holds"
	WaitersName     = "waiters on one name"
)
