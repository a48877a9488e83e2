package transport

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// A link that is closed while a patient dial and one beside it are under way
// waits for neither. Both end with the context, and then each has its result
// taken or not, as it happens: one close in four would hang for good.
func TestCloseDuringAPatientDial(t *testing.T) {
	t.Parallel()
	for range 50 {
		began := make(chan struct{}, 100)
		d := &dialer{cfg: Config{Stall: time.Millisecond}}
		d.at.Store(&redis.Options{Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			began <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := d.openFirst(ctx, time.Minute)
			ended <- err
		}()
		<-began
		<-began
		cancel()
		select {
		case err := <-ended:
			require.Error(t, err)
		case <-time.After(10 * time.Second):
			require.Fail(t, "it hangs")
		}
		d.guests.Wait()
	}
}
