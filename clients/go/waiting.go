package webmq

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"
)

// retryInterval is when a request that may succeed later is sent again, unless its error says when.
const retryInterval = time.Second

// minRetryInterval: nothing is asked again sooner, whatever the server says.
const minRetryInterval = 100 * time.Millisecond

func (e *Error) retryAfter(otherwise time.Duration) time.Duration {
	return max(cmp.Or(e.RetryAfter, otherwise), minRetryInterval)
}

// later calls a function, with the lock held, when what was refused may succeed, if there is a connection then.
func (c *Client) later(err *Error, again func()) {
	c.after(err.retryAfter(retryInterval), again)
}

func (c *Client) after(pause time.Duration, again func()) {
	time.AfterFunc(pause, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.requests.isLive {
			again()
		}
	})
}

// pace is when each text was logged.
type pace struct {
	mu sync.Mutex
	at map[string]time.Time
}

// logPaced logs, unless the same text was logged less than a second ago: what others send must not fill the log. It
// needs no lock.
func (c *Client) logPaced(level slog.Level, text string, values ...any) {
	c.paced.mu.Lock()
	now := time.Now()
	isDue := now.Sub(c.paced.at[text]) >= time.Second
	if isDue {
		if c.paced.at == nil {
			c.paced.at = map[string]time.Time{}
		}
		c.paced.at[text] = now
	}
	c.paced.mu.Unlock()
	if isDue {
		c.log.Log(c.ctx, level, "webmq: "+text, values...)
	}
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
