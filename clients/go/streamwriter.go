package webmq

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"unicode/utf8"
)

const (
	// MaxStreamWaitingBytes is what may wait in a [StreamWriter]: 4 MiB. An append beyond it waits.
	MaxStreamWaitingBytes = 4 << 20

	defaultLeaseMs         = 10_000
	minLeaseMs             = 100
	defaultMaxPayloadBytes = 262_144
)

// StreamOptions of [Client.OpenStream].
type StreamOptions struct {
	// Meta is what readers know of the stream from its beginning; see [Payload]. nil: nothing.
	Meta any
	// ID of the stream: 1 to 36 characters of [A-Za-z0-9_-]. "": a random one.
	ID string
	// OnMessage answers what readers send by [StreamReader.Send], as the handler of [Client.Respond] does. nil: they
	// get E_NO_RESPONDERS.
	OnMessage func(ctx context.Context, data Payload) (any, error)
}

// StreamWriter writes a stream: a message that grows by appends until it ends. One message is on its way at a time;
// what is appended meanwhile goes with the next one. End it by [StreamWriter.End], [StreamWriter.Fail] or
// [StreamWriter.Close].
type StreamWriter struct {
	client  *Client
	key     string
	id      string
	onReply func(context.Context, Payload) (any, error)
	wake    chan struct{}
	stopped chan struct{}
	done    chan struct{}

	mu        sync.Mutex
	waiting   []string
	bytes     int
	room      chan struct{}
	hasKind   bool
	isBinary  bool
	isEnding  bool
	endKind   string
	endBody   Payload
	isStopped bool
	hasEnded  bool
	member    *Membership
	stopOnce  sync.Once
	err       error
	// next is the number of the next message. It belongs to the goroutine that writes.
	next int
}

// OpenStream begins a stream at a key that is logged.
//
// Errors: E_STREAM_BUSY while another one at this key has not ended, E_UNSUPPORTED if the key is not logged,
// E_FORBIDDEN and others; E_TIMEOUT when ctx ends: the stream may have begun, and is told as lost then.
func (c *Client) OpenStream(ctx context.Context, key string, options StreamOptions) (*StreamWriter, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if err := checkValue("E_OPTION_INVALID", "ID", options.ID, 36); err != nil {
		return nil, err
	}
	meta, err := optionalPayload(options.Meta)
	if err != nil {
		return nil, err
	}
	writer := &StreamWriter{
		client: c, key: key, id: cmp.Or(options.ID, rand.Text()), onReply: options.OnMessage, next: 1,
		wake: make(chan struct{}, 1), stopped: make(chan struct{}), done: make(chan struct{}), room: make(chan struct{}),
	}
	if err := writer.write(ctx, "start", 0, meta); err != nil {
		return nil, err
	}
	go writer.run()
	member, err := c.Respond(ctx, key, "stream", writer.asked)
	if err != nil {
		// It can be written all the same, and not be stopped.
		c.log.Warn("webmq: a stream cannot be stopped by others", "key", key, "error", err)
		return writer, nil
	}
	writer.mu.Lock()
	defer writer.mu.Unlock()
	if writer.member = member; writer.hasEnded {
		member.Close()
	}
	return writer, nil
}

// ID returns the id of the stream.
func (w *StreamWriter) ID() string { return w.id }

// Stopped is closed once somebody has asked for the end, or the stream has ended. A writer that is stopped calls
// [StreamWriter.End].
func (w *StreamWriter) Stopped() <-chan struct{} { return w.stopped }

// Append adds a text. It returns before the log has it, and waits only while [MaxStreamWaitingBytes] wait. An error
// that comes later is returned by the next call, and by [StreamWriter.End]. A stream has either texts or bytes.
//
// Errors: E_STREAM_ENDED, E_STREAM_LIMIT, E_PAYLOAD_INVALID, E_CLOSED and others; E_TIMEOUT when ctx ends: then
// nothing was added.
func (w *StreamWriter) Append(ctx context.Context, text string) error {
	if !utf8.ValidString(text) {
		return newError("E_PAYLOAD_INVALID", "the text is not UTF-8: use AppendBytes")
	}
	return w.append(ctx, text, false)
}

// AppendBytes adds bytes, which are copied. It is else as [StreamWriter.Append].
func (w *StreamWriter) AppendBytes(ctx context.Context, data []byte) error {
	return w.append(ctx, string(data), true)
}

func (w *StreamWriter) append(ctx context.Context, content string, isBinary bool) error {
	for {
		w.mu.Lock()
		err, room := w.refusal(isBinary), w.room
		isFull := w.bytes > 0 && w.bytes+len(content) > MaxStreamWaitingBytes
		if err == nil && !isFull && content != "" {
			w.hasKind, w.isBinary = true, isBinary
			w.waiting = append(w.waiting, content)
			w.bytes += len(content)
			signal(w.wake)
		}
		w.mu.Unlock()
		if err != nil || !isFull {
			return err
		}
		select {
		case <-room:
		case <-w.done:
		case <-ctx.Done():
			return contextError(ctx, "append to "+w.key)
		}
	}
}

func (w *StreamWriter) refusal(isBinary bool) error {
	switch {
	case w.err != nil:
		return w.err
	case w.isEnding:
		return newError("E_STREAM_ENDED", "the stream %s has ended", w.key)
	case w.hasKind && w.isBinary != isBinary:
		return newError("E_PAYLOAD_INVALID", "a stream has either texts or bytes")
	}
	return nil
}

// End ends the stream, and returns once the log has all of it. Readers get the result, see [Payload]; nil is none. A
// stream that was stopped ends as stopped, without a result.
//
// Errors: those of [StreamWriter.Append]; E_TIMEOUT when ctx ends: the stream ends all the same, if it can.
func (w *StreamWriter) End(ctx context.Context, result any) error {
	payload, err := optionalPayload(result)
	if err != nil {
		return err
	}
	return w.finish(ctx, "end", payload)
}

// Fail ends the stream as failed, after what was appended. Readers get the code and the text of an [Error], and of
// others nothing. Its own errors are those of [StreamWriter.End].
func (w *StreamWriter) Fail(ctx context.Context, cause error) error {
	body := map[string]string{"message": "the writer has failed"}
	var told *Error
	if errors.As(cause, &told) {
		body = map[string]string{"message": bounded(told.Message), "code": told.Code}
	}
	payload, err := payloadOf(body)
	if err != nil {
		return err
	}
	return w.finish(ctx, "fail", payload)
}

// Close fails a stream that has not ended, for use with defer. It does not wait.
func (w *StreamWriter) Close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	// Without waiting, no outcome is known yet.
	_ = w.Fail(ctx, nil)
}

func (w *StreamWriter) finish(ctx context.Context, kind string, body Payload) error {
	w.mu.Lock()
	err := w.refusal(w.isBinary)
	if err == nil {
		w.isEnding = true
		w.endKind, w.endBody = kind, body
		if w.isStopped {
			w.endKind, w.endBody = "stop", Payload{}
		}
		signal(w.wake)
	}
	w.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-w.done:
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.err
	case <-ctx.Done():
		return contextError(ctx, "end "+w.key)
	}
}
