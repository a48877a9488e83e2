package peers

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quorate/quorate/internal/fault"
)

// The line comes again when it says something else, however often recording is
// tried, and not for a connection that this client itself has ended.
func TestFailedRecordingsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	s := &recorder{}
	down, ended := errors.New("refused"), fmt.Errorf("connection broke before an answer: %w", fault.ErrRejudged)
	fails := func(errs ...error) error {
		f := &fault.Failure{Err: fault.ErrNoQuorum}
		for i, err := range errs {
			f.Nodes = append(f.Nodes, fault.NodeFailure{Addr: fmt.Sprint(i), Err: err})
		}
		return f
	}
	assert.Nil(t, s.news(fails(ended, ended)))
	assert.NotNil(t, s.news(fails(ended, down)))
	assert.Nil(t, s.news(fails(ended, down)))
	assert.Nil(t, s.news(fails(ended)))
	assert.NotNil(t, s.news(fails(down)))
	assert.NotNil(t, s.news(errors.New("the same server")))
	assert.Nil(t, s.news(errors.New("the same server")))
}
