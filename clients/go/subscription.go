package webmq

import (
	"cmp"
	"context"
	"slices"
)

// subscription is a listen, with recovery: sections 6 and 8. Nothing is missing in silence: it comes again, or a Gap
// says so. The client's lock guards it.
type subscription struct {
	client  *Client
	pattern string
	options []string
	// start is where it begins, and continuesAtStart whether that is a position.
	start            []string
	continuesAtStart bool
	state            *stateListen
	maxMessages      int
	maxBytes         int
	queue            []Event
	queueBytes       int
	wake             chan struct{}
	// ready is closed once it is accepted, or has ended.
	ready    chan struct{}
	isReady  bool
	isClosed bool
	err      *Error

	// cursor: everything up to here is in the queue, or was taken from it.
	cursor  string
	handled string
	isLive  bool
	wasLive bool
	// liveCount is that of the client when this became live.
	liveCount uint64
	// asked is the id of the request under way, and continues whether that continues from a position.
	asked     string
	continues bool
	// dueGap is told with the answer: whoever loads again after it misses nothing that is published meanwhile.
	dueGap   string
	nextPage string
	// emptyPages is how many came in a row: a page may be empty [P-6.11].
	emptyPages int
	isPausing  bool
	// isBehind: the queue was full. What was left out is in the log.
	isBehind bool
}

func (c *Client) subscription(pattern string, maxMessages, maxBytes int) *subscription {
	return &subscription{
		client: c, pattern: pattern, maxMessages: cmp.Or(maxMessages, 1_000), maxBytes: cmp.Or(maxBytes, 16<<20),
		wake: make(chan struct{}, 1), ready: make(chan struct{}),
	}
}

// begin listens, and waits for the answer. It takes the lock.
func (s *subscription) begin(ctx context.Context) error {
	if err := checkPattern(s.pattern); err != nil {
		return err
	}
	for _, part := range append(s.start, s.options...) {
		if err := checkValue("E_OPTION_INVALID", "Since and Overflow", part, 1_600); err != nil {
			return err
		}
	}
	if s.maxMessages < 0 || s.maxBytes < 0 {
		return newError("E_OPTION_INVALID", "MaxWaitingMessages and MaxWaitingBytes: 0 or more")
	}
	s.client.mu.Lock()
	if err := s.client.closedError(); err != nil {
		s.client.mu.Unlock()
		return err
	}
	s.client.listeners = append(s.client.listeners, s)
	if s.client.requests.isLive {
		s.opened()
	}
	s.client.mu.Unlock()
	select {
	case <-s.ready:
	case <-ctx.Done():
		s.Close()
		return contextError(ctx, "listen "+s.pattern)
	}
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.isClosed && s.err != nil {
		return s.err
	}
	return s.client.closedError()
}

// opened: a connection is live.
func (s *subscription) opened() {
	s.isBehind, s.nextPage, s.emptyPages, s.isPausing = false, "", 0, false
	since := s.resumePosition()
	switch {
	case s.state != nil && s.state.asksWhole:
		s.askWhole()
	case since != "":
		s.ask(true, option("since", since))
	case s.wasLive:
		s.restart("no-history")
	default:
		s.ask(s.continuesAtStart, s.start...)
	}
}

func (s *subscription) lost() {
	if s.isLive && !s.isBehind {
		s.cursor = s.resumePosition()
	}
	s.isLive = false
	s.asked = ""
}

// deliver takes a live message of the connection.
func (s *subscription) deliver(message Message) {
	if !s.isLive || !matches(s.pattern, message.Key) {
		return
	}
	isFull := len(s.queue) >= s.maxMessages || s.queueBytes >= s.maxBytes
	switch {
	case message.Position == "" && s.state != nil:
		// It is not part of the state [P-17.4].
	case message.Position == "":
		// The log will not have it: while it is read, too, a gap tells of it.
		if isFull || s.isBehind {
			s.put(Gap{"slow-consumer"})
		} else {
			s.put(message)
		}
	case s.isBehind || !isAfter(message.Position, s.cursor):
	case isFull:
		s.isBehind = true
	default:
		s.cursor = message.Position
		s.put(message)
	}
}

func (s *subscription) gap(reason string) {
	if s.state == nil {
		s.put(Gap{reason})
	} else if isComing := s.state.tellsWhole && s.asked != ""; s.client.requests.isLive && !isComing {
		// What was asked for, and has not begun to come, has all that is missing.
		s.askWhole()
	}
}

func (s *subscription) pop() Event {
	event := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	if message, isMessage := event.(Message); isMessage {
		s.queueBytes -= len(message.Payload.Data)
		if message.Position != "" {
			s.handled = message.Position
		}
	}
	if len(s.queue) == 0 {
		s.drained()
	} else {
		signal(s.wake)
	}
	return event
}

func (s *subscription) put(event Event) {
	if s.isClosed {
		return
	}
	switch event := event.(type) {
	case Message:
		s.queueBytes += len(event.Payload.Data)
	case Gap:
		if s.state != nil {
			return
		}
		// One says it all: messages may be missing before the next one.
		if last := len(s.queue) - 1; last >= 0 {
			if _, isGap := s.queue[last].(Gap); isGap {
				return
			}
		}
	}
	s.queue = append(s.queue, event)
	signal(s.wake)
}

func (s *subscription) settle() {
	if !s.isReady {
		s.isReady = true
		close(s.ready)
	}
}

// end ends it, with an error, or with the client.
func (s *subscription) end(err *Error) {
	s.isClosed, s.isLive = true, false
	s.err = err
	if at := slices.Index(s.client.listeners, s); at >= 0 {
		s.client.listeners = slices.Delete(s.client.listeners, at, at+1)
	}
	signal(s.wake)
	s.settle()
}

// leave ends the listen at the server, unless another one has its pattern.
func (s *subscription) leave() {
	isSame := func(other *subscription) bool { return other.pattern == s.pattern }
	isOthers := slices.ContainsFunc(s.client.listeners, isSame)
	if isOthers || !s.client.requests.isLive {
		return
	}
	s.client.requests.ask(func(answer reply) {
		if answer.err != nil && answer.err.Code != "E_NOT_LISTENING" && s.client.requests.isLive {
			s.client.log.Warn("webmq: a listen did not end", "pattern", s.pattern, "error", answer.err)
		}
	}, forgotten, nil, "unlisten", s.pattern)
}
