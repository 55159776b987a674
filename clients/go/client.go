// Package webmq is a client of WebMQ: topics of a message broker over one WebSocket, with recovery.
//
//	client, err := webmq.Dial(ctx, "ws://localhost:8080/ws", webmq.Options{})
//	listener, err := client.Listen(ctx, "chat.#", webmq.ListenOptions{})
//	for event, err := range listener.Events(ctx) {
//		switch event := event.(type) {
//		case webmq.Message: // event.Payload.Decode(&value)
//		case webmq.Gap: // load again what was derived from messages
//		}
//	}
//
// All methods may be called by several goroutines at once. Errors that the server or this client causes are [*Error].
package webmq

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Status of a [Client].
type Status string

const (
	// StatusConnecting: there is no connection; calls wait for one.
	StatusConnecting Status = "connecting"
	// StatusConnected: there is a connection, and the server has accepted the token.
	StatusConnected Status = "connected"
	// StatusClosed: the client was closed, or has ended by itself: [Client.Err].
	StatusClosed Status = "closed"
)

// Client is a client of a WebMQ server. It connects again whenever the connection is lost, until it is closed.
type Client struct {
	options Options
	log     *slog.Logger
	// ctx ends with the client.
	ctx    context.Context
	cancel context.CancelFunc

	// mu guards everything that follows, and what belongs to it. Methods without another word are called with it held.
	mu          sync.Mutex
	status      Status
	changed     chan struct{}
	err         *Error
	limits      map[string]any
	connection  *connection
	requests    *requests
	publishes   *publishes
	live        livePosition
	listeners   []*subscription
	memberships []*Membership
	// leaving are memberships that the server still has.
	leaving []*Membership

	paced pace
}

// Status returns the present status.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// Err returns why the client has ended by itself, and nil otherwise.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == StatusClosed && c.err.Code != "E_CLOSED" {
		return c.err
	}
	return nil
}

// Close closes the connection after what was sent before, and waits for that, at most 2 s. Calls that wait fail with
// E_CLOSED; iterations end. To close again does nothing.
func (c *Client) Close() {
	c.mu.Lock()
	if c.status != StatusClosed {
		c.ended(newError("E_CLOSED", "the client is closed"), nil)
	}
	c.mu.Unlock()
	c.connection.close()
}

// Publish publishes a message, and returns when the broker has it. Without a connection it waits for one. After a lost
// one it sends the message again, which is delivered once, or ends with E_TIMEOUT when the server may have forgotten its id.
// Messages of one goroutine keep their order. See [Payload] for what a payload may be.
//
// Errors: E_KEY_INVALID, E_PAYLOAD_INVALID, E_QUEUE_FULL, E_CLOSED, and what the server refuses with, such as
// E_FORBIDDEN. When ctx ends first, the error is E_TIMEOUT with its cause: the message may have been published.
func (c *Client) Publish(ctx context.Context, key string, payload any) (Accepted, error) {
	return c.PublishAsync(key, payload, PublishOptions{}).Wait(ctx)
}

// PublishOptions of [Client.PublishAsync].
type PublishOptions struct {
	// ID is the message id, by which a message that is sent again is delivered once: 1 to 64 characters of
	// [A-Za-z0-9_-], of 64 random bits or more. "": a random one.
	ID string
	// NoEcho: this client does not get the message.
	NoEcho bool
	// Ephemeral: the message reaches those who listen now, and is not logged.
	Ephemeral bool
}

// PublishAsync is [Client.Publish] with options, and without waiting: many messages may be on their way, in the order
// of the calls. Whoever does not call [Publishing.Wait] does not learn of a refusal.
func (c *Client) PublishAsync(key string, payload any, options PublishOptions) *Publishing {
	if err := checkKey(key); err != nil {
		return refusedPublish(err)
	}
	if err := checkValue("E_OPTION_INVALID", "ID", options.ID, 64); err != nil {
		return refusedPublish(err)
	}
	content, err := payloadOf(payload)
	if err != nil {
		return refusedPublish(err)
	}
	return c.publishes.add(content, key, option("id", cmp.Or(options.ID, rand.Text())),
		flag("noecho", options.NoEcho), flag("ephemeral", options.Ephemeral))
}

// connected waits for a connection. It takes the lock.
func (c *Client) connected(ctx context.Context) error {
	for {
		c.mu.Lock()
		err, isLive, changed, failure := c.closedError(), c.connection.isLive, c.changed, c.connection.failure
		c.mu.Unlock()
		if err != nil {
			return err
		}
		if isLive {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if failure != nil {
				return contextError(ctx, "no connection ("+failure.Error()+")")
			}
			return contextError(ctx, "no connection")
		}
	}
}

func (c *Client) closedError() error {
	if c.status == StatusClosed {
		return c.err
	}
	return nil
}

func (c *Client) setStatus(status Status) {
	if c.status != status {
		c.status = status
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// limit returns a limit of the server's `welcome` [P-4.4], as a number that this program can use.
func (c *Client) limit(name string, otherwise, least int) int {
	if value, isNumber := c.limits[name].(float64); isNumber {
		return int(min(max(value, float64(least)), maxLimit))
	}
	return otherwise
}

const maxLimit = 1<<31 - 1

// dedupeWindow is how long the server knows the id of a message [P-7.4].
func (c *Client) dedupeWindow() time.Duration {
	if c.limit("dedupeMaxIds", 1, 0) == 0 {
		return 0
	}
	return time.Duration(c.limit("dedupeWindowMs", 120_000, 0)) * time.Millisecond
}

// opened, lost, ended and received are what the connection calls.
func (c *Client) opened() {
	c.requests.opened()
	for _, member := range c.memberships {
		member.opened()
	}
	for _, listener := range slices.Clone(c.listeners) {
		listener.opened()
	}
	c.publishes.opened()
	c.setStatus(StatusConnected)
}

func (c *Client) lost() {
	if c.status == StatusClosed {
		return
	}
	for _, listener := range c.listeners {
		listener.lost()
	}
	c.publishes.lost()
	c.requests.lost()
	c.setStatus(StatusConnecting)
}

// ended fails everything that waits. told is what those who iterate get: nil if the client was closed.
func (c *Client) ended(err, told *Error) {
	if c.status == StatusClosed {
		return
	}
	c.err = err
	c.setStatus(StatusClosed)
	c.requests.failed(err)
	c.publishes.failed(err)
	for _, listener := range slices.Clone(c.listeners) {
		listener.end(told)
	}
	for _, member := range slices.Clone(c.memberships) {
		member.end(err)
	}
	c.cancel()
}

func (c *Client) received(message *serverMessage) {
	isAnswer := message.verb == "ok" || message.verb == "error"
	if isAnswer && c.publishes.take(message) || c.requests.take(message) {
		return
	}
	switch message.verb {
	case "message":
		c.deliver(message)
	case "pong":
		c.live.take(message.options["position"])
	case "gap":
		for _, listener := range c.listeners {
			if listener.pattern == message.fields[0] {
				listener.gap(message.fields[1])
			}
		}
	case "task":
		c.hand(message)
	case "ended":
		c.membershipEnded(message)
	case "error":
		for _, listener := range slices.Clone(c.listeners) {
			if message.fields[0] == "-" && message.body["pattern"] == listener.pattern {
				listener.end(errorOf(message.fields[1], message.body))
			}
		}
	}
}

func (c *Client) deliver(message *serverMessage) {
	event := messageOf(message)
	for _, listener := range c.listeners {
		listener.deliver(event)
	}
	// After its listeners: it moves those which it does not match.
	c.live.take(event.Position)
}
