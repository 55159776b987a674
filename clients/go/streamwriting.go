package webmq

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

func (w *StreamWriter) run() {
	defer w.ended()
	for {
		content, isLast := w.take()
		var err error
		switch {
		case content.Data != nil:
			err = w.write(w.client.ctx, "append", w.next, content)
			w.next++
		case isLast:
			err = w.write(w.client.ctx, w.endKind, w.next, w.endBody)
		default:
			select {
			case <-w.wake:
			case <-w.client.ctx.Done():
			case <-time.After(w.limit("streamLeaseMs", defaultLeaseMs, minLeaseMs) * time.Millisecond / 3):
				err = w.write(w.client.ctx, "beat", w.next-1, Payload{})
			}
			if err == nil && w.client.ctx.Err() != nil {
				err = newError("E_CLOSED", "the client is closed")
			}
		}
		if err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
		}
		if err != nil || content.Data == nil && isLast {
			return
		}
	}
}

// take takes what waits, as much as fits into one message. The lock is not held.
func (w *StreamWriter) take() (content Payload, isLast bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return Payload{}, w.isEnding
	}
	limit := int(w.limit("maxPayloadBytes", defaultMaxPayloadBytes, 1))
	if !w.isBinary {
		// A byte has at most six as JSON, as in \u0000, and a text has two quotes.
		limit = max((limit-2)/6, utf8.UTFMax)
	}
	var text strings.Builder
	for len(w.waiting) > 0 {
		first := w.waiting[0]
		if text.Len()+len(first) > limit {
			if text.Len() > 0 {
				break
			}
			at := limit
			for !w.isBinary && at > 1 && !utf8.RuneStart(first[at]) {
				at--
			}
			text.WriteString(first[:at])
			w.waiting[0] = first[at:]
			break
		}
		text.WriteString(first)
		w.waiting = w.waiting[1:]
	}
	w.bytes -= text.Len()
	close(w.room)
	w.room = make(chan struct{})
	if w.isBinary {
		return Payload{Data: []byte(text.String()), IsBinary: true}, false
	}
	// A text is always JSON.
	content, _ = payloadOf(text.String())
	return content, false
}

// write sends a message until it is answered for good [P-18.3].
func (w *StreamWriter) write(ctx context.Context, kind string, sequence int, payload Payload) error {
	_, err := w.client.requests.callAgain(ctx, &payload, "stream", w.key,
		"of="+w.id, fmt.Sprintf("seq=%d", sequence), "kind="+kind)
	w.client.mu.Lock()
	defer w.client.mu.Unlock()
	if closed := w.client.closedError(); err != nil && closed != nil {
		// Its context ends with it.
		return closed
	}
	return err
}

func (w *StreamWriter) limit(name string, otherwise, least int) time.Duration {
	w.client.mu.Lock()
	defer w.client.mu.Unlock()
	return time.Duration(w.client.limit(name, otherwise, least))
}

func (w *StreamWriter) ended() {
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hasEnded = true; w.member != nil {
		w.member.Close()
	}
	close(w.done)
}

func (w *StreamWriter) stop() { w.stopOnce.Do(func() { close(w.stopped) }) }

// asked handles what readers ask of the writer [P-18.7].
func (w *StreamWriter) asked(ctx context.Context, task Task) (any, error) {
	var asked struct {
		Type   string          `json:"type"`
		Stream *string         `json:"stream"`
		Data   json.RawMessage `json:"data"`
	}
	if err := task.Payload.Decode(&asked); err != nil {
		return nil, err
	}
	switch {
	case asked.Type == "stop":
		if asked.Stream == nil || *asked.Stream == w.id {
			w.mu.Lock()
			w.isStopped = true
			w.mu.Unlock()
			w.stop()
		}
		return nil, nil
	case w.onReply == nil:
		return nil, newError("E_NO_RESPONDERS", "this writer takes no messages")
	}
	return w.onReply(ctx, Payload{Data: asked.Data})
}
