package webmq

import (
	"context"
	"fmt"
	"time"
)

type requestOutcome struct {
	payload Payload
	err     *Error
}

// DefaultRequestTimeout is the time for a reply when the context has no deadline.
const DefaultRequestTimeout = 10 * time.Second

// Request asks whoever responds at a key, and returns the reply. It waits for a connection. The time for the reply is that
// of ctx, at most 300 s, and 10 s without a deadline.
//
// Errors: E_NO_RESPONDERS, E_TIMEOUT, the code with which the responder refuses, E_RESPONSE if it has failed or is gone,
// and E_DISCONNECTED: in these cases, and after a timeout, it may have handled the request.
func (c *Client) Request(ctx context.Context, key string, payload any) (Payload, error) {
	if err := checkKey(key); err != nil {
		return Payload{}, err
	}
	content, err := payloadOf(payload)
	if err != nil {
		return Payload{}, err
	}
	if _, hasDeadline := ctx.Deadline(); !hasDeadline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultRequestTimeout)
		defer cancel()
	}
	if err := c.lockConnected(ctx); err != nil {
		return Payload{}, err
	}
	deadline, _ := ctx.Deadline()
	within := min(max(time.Until(deadline).Milliseconds(), 1), 300_000)
	outcome := make(chan requestOutcome, 1)
	var id string
	id = c.requests.ask(func(answer reply) {
		if answer.err != nil {
			c.settleAsked(id, requestOutcome{err: answer.err})
		}
	}, false, &content, "request", key, fmt.Sprintf("within=%d", within))
	c.asked[id] = outcome
	c.mu.Unlock()
	select {
	case answer := <-outcome:
		if answer.err != nil {
			return Payload{}, answer.err
		}
		return answer.payload, nil
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.asked, id)
		c.mu.Unlock()
		return Payload{}, contextError(ctx, "no reply")
	}
}

// lockConnected waits for a connection, and takes the lock, which it keeps unless it returns an error.
func (c *Client) lockConnected(ctx context.Context) error {
	for {
		if err := c.connected(ctx); err != nil {
			return err
		}
		c.mu.Lock()
		if c.requests.isLive {
			return nil
		}
		c.mu.Unlock()
	}
}

func (c *Client) settleAsked(id string, outcome requestOutcome) {
	if waiting := c.asked[id]; waiting != nil {
		delete(c.asked, id)
		waiting <- outcome
	}
}

func (c *Client) replied(message *serverMessage) {
	id := message.fields[0]
	if !message.has("error") {
		c.settleAsked(id, requestOutcome{payload: message.payload})
		return
	}
	var body map[string]any
	if message.payload.Decode(&body) != nil {
		c.settleAsked(id, requestOutcome{err: newError("E_RESPONSE", "the error of the reply is no JSON")})
		return
	}
	code, _ := body["code"].(string)
	if !isCode(code) {
		code = "E_RESPONSE"
	}
	c.settleAsked(id, requestOutcome{err: errorOf(code, body)})
}

func (c *Client) lostAsked() {
	for id := range c.asked {
		c.settleAsked(id, requestOutcome{
			err: newError("E_DISCONNECTED", "the connection was lost: the request may have been handled"),
		})
	}
}
