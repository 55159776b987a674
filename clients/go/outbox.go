package webmq

import (
	"context"
	"time"

	"github.com/coder/websocket"
)

// send sends on the present connection. Only while it is live.
func (c *connection) send(message frame) {
	c.outbox = append(c.outbox, message)
	signal(c.wake)
}

func (c *connection) write(ctx context.Context, cancel context.CancelFunc, socket *websocket.Conn) {
	// The reader ends with the writer.
	defer cancel()
	for {
		c.client.mu.Lock()
		messages, isClosing := c.outbox, c.isClosing
		c.outbox = nil
		c.client.mu.Unlock()
		for _, message := range messages {
			kind := websocket.MessageText
			if message.isBinary {
				kind = websocket.MessageBinary
			}
			if ctx.Err() == nil && socket.Write(ctx, kind, message.data) != nil {
				cancel()
			}
			message.settle()
		}
		if len(messages) > 0 {
			c.client.mu.Lock()
			c.sentAt = time.Now()
			c.client.mu.Unlock()
			continue
		}
		if isClosing {
			_ = socket.Close(websocket.StatusNormalClosure, "")
			return
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (m frame) settle() {
	if m.written != nil {
		close(m.written)
	}
}

// beat asks a silent server whether it is there [P-9.2], and ends a connection without an answer.
func (c *connection) beat(ctx context.Context, cancel context.CancelFunc) {
	for {
		c.client.mu.Lock()
		interval := max(c.heartbeat/4, time.Second)
		c.client.mu.Unlock()
		if !sleep(ctx, interval) {
			return
		}
		c.client.mu.Lock()
		asked := time.Now()
		isQuiet := asked.Sub(c.receivedAt) >= c.heartbeat || asked.Sub(c.sentAt) >= c.heartbeat
		isAsking := c.heartbeat > 0 && isQuiet && c.isLive
		if isAsking {
			c.send(encode(nil, "ping"))
		}
		c.client.mu.Unlock()
		if !isAsking {
			continue
		}
		// A program that stood still has the answer, and has not read it yet when the first time is over.
		if !sleep(ctx, heartbeatAnswer) || !sleep(ctx, readingTime) {
			return
		}
		c.client.mu.Lock()
		isDead := c.receivedAt.Before(asked)
		c.client.mu.Unlock()
		if isDead {
			c.client.log.Debug("webmq: the server does not answer", "url", c.url)
			cancel()
			return
		}
	}
}
