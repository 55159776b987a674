package webmq

import (
	"context"
	"iter"
	"net/url"
	"time"
)

// Event is what a [Listener] gets: a [Message], or a [Gap].
type Event interface{ isEvent() }

// Message is a message that a listener got.
type Message struct {
	Key     string
	Payload Payload
	// Position is its place in the log; "" if it is in none.
	Position string
	// IsReplay says that it comes from the log.
	IsReplay bool
	// UserID is who published it, and ID names it the same for all who get it: with Meta, of keys that the server
	// stamps.
	UserID string
	ID     string
	// Time is when the publisher's node took it, with Meta; else it is zero.
	Time time.Time
	// Stream says of which stream it is part, as `id:number:kind`; "" of none. See [Client.ReadStream].
	Stream string
}

// Gap says that messages may be missing before the next one: load again what was derived from them.
type Gap struct {
	// Reason is "history-expired", "epoch-changed", "no-history", "limit", "slow-consumer", "conflated", "broker-lost",
	// "rules-differ", "refused", or "position-invalid": the server could not read the position. There may be others.
	Reason string
}

func (Message) isEvent() {}
func (Gap) isEvent()     {}

func messageOf(received *serverMessage) Message {
	message := Message{
		Key: received.fields[0], Position: received.fields[1], Payload: received.payload,
		IsReplay: received.has("replay"), Stream: received.options["stream"],
	}
	if message.Position == "-" {
		message.Position = ""
	}
	user, err := url.PathUnescape(received.options["user"])
	if err == nil && received.has("time") {
		message.UserID, message.ID = user, received.options["id"]
		message.Time = time.UnixMilli(int64(received.number("time")))
	}
	return message
}

// Overflow says what a listener may miss while its connection reads too slowly.
type Overflow string

const (
	// OverflowDisconnect: nothing; the client connects again and recovers.
	OverflowDisconnect Overflow = "disconnect"
	// OverflowDropOldest: the oldest messages, after a [Gap].
	OverflowDropOldest Overflow = "drop-oldest"
	// OverflowLatest: messages that a newer one of their key replaces, without a word.
	OverflowLatest Overflow = "latest"
	// OverflowLatestTold: the same, after a [Gap].
	OverflowLatestTold Overflow = "latest-told"
)

// ListenOptions of [Client.Listen]. At most one of Since, Last and Rewind may be set.
type ListenOptions struct {
	// Since is a position, also one that another process has saved: begin after it. "": begin with what comes now.
	Since string
	// Last: how many messages of the log come first.
	Last int
	// Rewind begins with the messages of this time.
	Rewind time.Duration
	// Overflow is what the server may leave out. "": the server decides.
	Overflow Overflow
	// Meta asks who published each message and when.
	Meta bool
	// MaxWaitingMessages and MaxWaitingBytes bound the messages that wait for the iteration, besides one page of a
	// replay. Those beyond come again from the log; without a log, a [Gap] says that they are missing. 0: 1,000, and
	// 16 MiB.
	MaxWaitingMessages int
	MaxWaitingBytes    int
}

// Listener gets what a pattern matches, from [Client.Listen] until [Listener.Close].
type Listener struct{ *subscription }

// Listen listens to a pattern, such as "chat.*.message" or "chat.#", and returns once the server has accepted it: from
// then on, no message is missed. The listener continues after its last message when the connection was lost. What it
// gets next is what it has missed, or a [Gap].
//
// Errors: E_PATTERN_INVALID, E_OPTION_INVALID, E_CLOSED, and what the server refuses with, such as E_FORBIDDEN;
// E_TIMEOUT when ctx ends first, with its cause.
func (c *Client) Listen(ctx context.Context, pattern string, options ListenOptions) (*Listener, error) {
	startCount := 0
	for _, isSet := range []bool{options.Since != "", options.Last != 0, options.Rewind != 0} {
		if isSet {
			startCount++
		}
	}
	if startCount > 1 || options.Last < 0 || options.Rewind < 0 {
		return nil, newError("E_OPTION_INVALID", "give at most one of Since, Last and Rewind")
	}
	listener := c.subscription(pattern, options.MaxWaitingMessages, options.MaxWaitingBytes)
	listener.start = []string{
		option("since", options.Since),
		numberOption("last", int64(options.Last)),
		numberOption("rewind", options.Rewind.Milliseconds()),
	}
	listener.continuesAtStart = options.Since != ""
	listener.options = []string{option("overflow", string(options.Overflow)), flag("meta", options.Meta)}
	if err := listener.begin(ctx); err != nil {
		return nil, err
	}
	return &Listener{listener}, nil
}

// Events returns what the listener gets, in order. Use it with range. It ends when the listener or the client is
// closed; with an error when ctx ends, or when the server has ended the listener, such as E_FORBIDDEN after a new
// token that no longer grants it. To leave the loop does not close the listener: a later one continues.
func (l *Listener) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			event, err := l.next(ctx)
			if event == nil && err == nil || !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// Position returns that of the last message that the iteration gave, or of the place where the listener began; "" if
// there is none. [ListenOptions.Since], also of another process, continues after it.
func (s *subscription) Position() string {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	return s.handled
}

// Waiting returns how many events the iteration gives at once.
func (s *subscription) Waiting() int {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	return len(s.queue)
}

// Close ends it. What waits in it is dropped. It does not wait for the server.
func (s *subscription) Close() {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if !s.isClosed {
		s.queue, s.queueBytes = nil, 0
		s.end(nil)
		s.leave()
	}
}

// next returns the next event; none when it has ended without an error. It takes the lock.
func (s *subscription) next(ctx context.Context) (Event, error) {
	for {
		s.client.mu.Lock()
		if len(s.queue) > 0 {
			event := s.pop()
			s.client.mu.Unlock()
			return event, nil
		}
		isClosed, err := s.isClosed, s.err
		s.client.mu.Unlock()
		if isClosed {
			// For others that wait.
			signal(s.wake)
			if err != nil {
				return nil, err
			}
			return nil, nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil, contextError(ctx, "listening to "+s.pattern)
		}
	}
}
