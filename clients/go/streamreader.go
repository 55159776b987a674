package webmq

import (
	"context"
	"iter"
	"strings"
	"sync"
	"time"
)

const (
	stopTimeout        = 10 * time.Second
	stopAttemptTimeout = 2500 * time.Millisecond
)

// StreamStatus is how far a stream is.
type StreamStatus string

const (
	// StreamNone: the key has no stream yet.
	StreamNone StreamStatus = "none"
	// StreamActive: the stream grows.
	StreamActive StreamStatus = "active"
	// StreamEnd: its writer has ended it.
	StreamEnd StreamStatus = "end"
	// StreamFail: its writer has failed.
	StreamFail StreamStatus = "fail"
	// StreamStop: it was stopped.
	StreamStop StreamStatus = "stop"
	// StreamLost: its writer is gone.
	StreamLost StreamStatus = "lost"
)

// StreamPart is what came of a stream.
type StreamPart struct {
	// Content is text, or the bytes of a stream that has bytes.
	Content string
	// IsWhole says that it replaces everything before.
	IsWhole bool
}

// StreamInfo is what a [StreamReader] knows of the stream.
type StreamInfo struct {
	// ID of the stream; "" while there is none.
	ID     string
	Status StreamStatus
	// Meta and Result are what the writer gave to its beginning and to its end; empty if it gave nothing.
	Meta   Payload
	Result Payload
	// IsCut says that the log no longer has the beginning.
	IsCut bool
}

// StreamReader reads the last stream of a key.
type StreamReader struct {
	client *Client
	key    string

	mu       sync.Mutex
	info     StreamInfo
	sequence int
	// half of a character, as the escape at the end of a text. It is given with the other half, or at the end.
	half string
	err  error
}

// ReadStream reads the last stream of a key, or waits for the first one. [StreamReader.Parts] begins.
//
// Errors: E_KEY_INVALID.
func (c *Client) ReadStream(key string) (*StreamReader, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return &StreamReader{client: c, key: key, info: StreamInfo{Status: StreamNone}, sequence: -1}, nil
}

// Info returns what is known of the stream by now.
func (r *StreamReader) Info() StreamInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.info
}

// Parts returns what the stream has, and then what comes, until its end. Use it with range, in one goroutine. A new
// call begins with the whole.
//
// Its error: the code with which the writer has failed, or E_RESPONSE without one; E_STREAM_ENDED if the writer is
// gone; E_FORBIDDEN, E_UNSUPPORTED and others; E_TIMEOUT when ctx ends.
func (r *StreamReader) Parts(ctx context.Context) iter.Seq2[StreamPart, error] {
	return func(yield func(StreamPart, error) bool) {
		for {
			isAgain, err := r.read(ctx, func(part StreamPart) bool { return yield(part, nil) })
			if err != nil {
				yield(StreamPart{}, err)
				return
			}
			if !isAgain {
				return
			}
			// A server cannot keep it busy.
			if !sleep(ctx, minRetryInterval) {
				yield(StreamPart{}, contextError(ctx, "reading "+r.key))
				return
			}
		}
	}
}

// Content returns the whole, once the stream has ended. Its errors are those of [StreamReader.Parts].
func (r *StreamReader) Content(ctx context.Context) (string, error) {
	var whole strings.Builder
	for part, err := range r.Parts(ctx) {
		if err != nil {
			return whole.String(), err
		}
		if part.IsWhole {
			whole.Reset()
		}
		whole.WriteString(part.Content)
	}
	return whole.String(), nil
}

// Stop asks the writer to end, for up to 10 s. It returns when the writer knows, or the stream has ended.
//
// Errors: E_NO_RESPONDERS if nobody writes, and those of [Client.Request].
func (r *StreamReader) Stop(ctx context.Context, reason string) error {
	body := map[string]string{"type": "stop"}
	if id := r.Info().ID; id != "" {
		body["stream"] = id
	}
	if reason != "" {
		body["reason"] = reason
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for {
		attempt, cancelAttempt := context.WithTimeout(ctx, stopAttemptTimeout)
		_, err := r.client.Request(attempt, r.key, body)
		cancelAttempt()
		if status := r.Info().Status; err == nil || status != StreamNone && status != StreamActive {
			return nil
		}
		switch CodeOf(err) {
		case "E_NO_RESPONDERS", "E_RESPONSE", "E_DISCONNECTED", "E_TIMEOUT":
			if !sleep(ctx, retryInterval/4) {
				return err
			}
		default:
			return err
		}
	}
}

// Send sends a message to the writer, and returns its answer, as [Client.Request] does.
func (r *StreamReader) Send(ctx context.Context, data any) (Payload, error) {
	return r.client.Request(ctx, r.key, map[string]any{"type": "message", "data": data})
}

// read reads the stream, and follows it until its end, or until it has to be read again.
func (r *StreamReader) read(ctx context.Context, yield func(StreamPart) bool) (isAgain bool, err error) {
	answer, err := r.client.requests.callAgain(ctx, nil, "read", r.key)
	if err != nil {
		return false, err
	}
	whole, hasStream, err := r.loaded(answer)
	if err != nil || hasStream && !yield(StreamPart{whole, true}) {
		return false, err
	}
	if status := r.Info().Status; status != StreamNone && status != StreamActive {
		return false, r.err
	}
	listener, err := r.client.Listen(ctx, r.key, ListenOptions{Since: answer.options["position"]})
	if err != nil {
		return false, err
	}
	defer listener.Close()
	for {
		event, err := r.next(ctx, listener)
		if err == nil && event == nil {
			err = newError("E_CLOSED", "the client is closed")
		}
		if err != nil {
			return false, err
		}
		message, isMessage := event.(Message)
		if !isMessage {
			return true, nil
		}
		part, isPart, isAgain := r.take(message)
		if isAgain {
			return true, nil
		}
		if isPart && !yield(part) {
			return false, nil
		}
		if status := r.Info().Status; status != StreamNone && status != StreamActive {
			if rest := r.rest(); rest != "" && !yield(StreamPart{Content: rest}) {
				return false, nil
			}
			return false, r.err
		}
	}
}

// next returns a Gap when a stream is silent for long: the node may not know that it should watch the writer, and
// learns it when it is read again.
func (r *StreamReader) next(ctx context.Context, listener *Listener) (Event, error) {
	if r.Info().Status != StreamActive {
		return listener.next(ctx)
	}
	r.client.mu.Lock()
	lease := time.Duration(r.client.limit("streamLeaseMs", defaultLeaseMs, minLeaseMs)) * time.Millisecond
	r.client.mu.Unlock()
	patient, cancel := context.WithTimeout(ctx, 2*lease)
	defer cancel()
	event, err := listener.next(patient)
	if err != nil && patient.Err() != nil && ctx.Err() == nil {
		return Gap{}, nil
	}
	return event, err
}
