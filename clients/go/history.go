package webmq

import (
	"context"
	"time"
)

// HistoryOptions of [Client.History]. At most one of Since, Before and Rewind, and one of Last and Limit, may be set.
type HistoryOptions struct {
	// Since and Before are positions: the messages after the one, or before the other.
	Since  string
	Before string
	// Rewind: the messages of this time.
	Rewind time.Duration
	// Last: how many of these, the newest. Without any option: 100.
	Last int
	// Limit: how many of these, the oldest.
	Limit int
	// Reverse: newest first.
	Reverse bool
	// Meta asks who published each message and when.
	Meta bool
}

// History is a part of the log of a key.
type History struct {
	// Messages are in the order of the log, unless asked in reverse.
	Messages []Message
	// Position is up to where this is complete: Since of the next call.
	Position string
	// Gap is why messages may be missing, as [Gap.Reason]; "" if none are.
	Gap string
	// HasMore says that the server has left out others that were asked for.
	HasMore bool
}

// History reads the log of a key without listening, and waits for a connection. To page back, give the position of the
// oldest message as Before.
//
// Errors: E_KEY_INVALID, E_POSITION_INVALID, E_UNSUPPORTED without a log, E_FORBIDDEN and others; E_TIMEOUT when ctx
// ends.
func (c *Client) History(ctx context.Context, key string, options HistoryOptions) (*History, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	for _, position := range []string{options.Since, options.Before} {
		if err := checkValue("E_POSITION_INVALID", "Since and Before", position, 1_600); err != nil {
			return nil, err
		}
	}
	answer, err := c.requests.call(ctx, resent, nil, "history", key,
		option("since", options.Since), option("before", options.Before),
		numberOption("rewind", options.Rewind.Milliseconds()),
		numberOption("last", int64(options.Last)), numberOption("limit", int64(options.Limit)),
		flag("reverse", options.Reverse), flag("meta", options.Meta))
	if err != nil {
		return nil, err
	}
	_, hasMore := answer.options["more"]
	return &History{answer.messages, answer.options["position"], answer.options["gap"], hasMore}, nil
}
