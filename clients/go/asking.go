package webmq

import (
	"context"
	"fmt"
	"time"
)

// DefaultRequestTimeout is the time for a reply when the context has no deadline.
const DefaultRequestTimeout = 10 * time.Second

// Request asks whoever responds at a key, and returns the reply. It waits for a connection. The time for the reply is
// that of ctx, at most 300 s, and 10 s without a deadline.
//
// Errors: E_NO_RESPONDERS, E_TIMEOUT, the code with which the responder refuses, E_RESPONSE if it has failed or is
// gone, and E_DISCONNECTED: in these cases, and after a timeout, it may have handled the request.
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
	for {
		if err := c.connected(ctx); err != nil {
			return Payload{}, err
		}
		deadline, _ := ctx.Deadline()
		within := min(max(time.Until(deadline).Milliseconds(), 1), 300_000)
		answer, err := c.requests.call(ctx, replied, &content, "request", key, fmt.Sprintf("within=%d", within))
		if CodeOf(err) != "E_OFFLINE" {
			return Payload{answer.result, answer.isBinary}, err
		}
	}
}

// errorOfReply is what the JSON of a reply says. It is of another client.
func errorOfReply(payload Payload) *Error {
	var body map[string]any
	// Without JSON, the responder has failed all the same.
	_ = payload.Decode(&body)
	code, _ := body["code"].(string)
	if !isCode(code) {
		code = "E_RESPONSE"
	}
	return errorOf(code, body)
}
