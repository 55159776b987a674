package webmq

import (
	"cmp"
	"context"
	"time"
)

// retryInterval is when a request that may succeed later is sent again, unless its error says when.
const retryInterval = time.Second

// later calls a function, with the lock held, when what was refused may succeed, if there is a connection then.
func (c *Client) later(err *Error, again func()) {
	time.AfterFunc(cmp.Or(err.RetryAfter, retryInterval), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.requests.isLive {
			again()
		}
	})
}

func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// sleep returns false if the context has ended before.
func sleep(ctx context.Context, duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
