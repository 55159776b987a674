package webmq

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	openTimeout     = 10 * time.Second
	tokenTimeout    = 10 * time.Second
	closeTimeout    = 2 * time.Second
	heartbeatAnswer = 10 * time.Second
	readingTime     = 100 * time.Millisecond
	minHeartbeat    = time.Second
	// A shorter connection counts as a failed attempt: what the client sends may have ended it.
	lastingConnection = 5 * time.Second
	backoffMin        = 500 * time.Millisecond
	backoffMax        = 20 * time.Second
	// Attempts in about the first minute: a service that is back is found within backoffEarly.
	earlyAttempts = 24
	backoffEarly  = 5 * time.Second
	maxRetryAfter = 10 * time.Minute
	maxFrameBytes = 64 << 20
	// A token is asked for at most once in this time, however often the server says that the present one expires.
	renewalInterval = time.Second
	maxTokenBytes   = 8_192
	loginID         = "login"
)

// connection connects, logs in, keeps the connection alive, and connects again until it is closed or refused for good:
// sections 1, 5, 9 and 10. The client's lock guards its fields.
type connection struct {
	client *Client
	url    string
	// outbox is bounded by those who send: publishes by MaxPendingBytes, requests by who waits for them, replies by
	// MaxRunningTasks.
	outbox     []frame
	wake       chan struct{}
	hasSocket  bool
	isWelcome  bool
	needsLogin bool
	isLive     bool
	isClosing  bool
	heartbeat  time.Duration
	welcomed   map[string]any
	liveSince  time.Time
	receivedAt time.Time
	sentAt     time.Time
	retryAfter time.Duration
	isRenewing bool
	renewedAt  time.Time
	// reason is what the server said before a close; failure why there is no connection.
	reason  *Error
	failure error
	// loggedReason is why there is no connection, as the log has it.
	loggedReason string
	cancel       context.CancelFunc
	done         chan struct{}
}

// close closes with 1000, after what was sent before, and waits for the end. It takes the lock.
func (c *connection) close() {
	c.client.mu.Lock()
	c.isClosing = true
	if c.hasSocket {
		defer time.AfterFunc(closeTimeout, c.cancel).Stop()
	} else {
		c.cancel()
	}
	c.client.mu.Unlock()
	signal(c.wake)
	<-c.done
}

func (c *connection) run(ctx context.Context) {
	defer close(c.done)
	attempt, tokenTries := 0, 0
	for {
		code, final := c.session(ctx)
		c.client.mu.Lock()
		wasLive, retryAfter, isClosing := c.isLive, c.retryAfter, c.isClosing
		c.ended()
		if wasLive {
			tokenTries = 0
			c.client.lost()
		}
		if wasLive && time.Since(c.liveSince) >= lastingConnection {
			attempt = 0
		}
		if code == closedTokenExpired || code == closedTokenInvalid {
			tokenTries++
		}
		if final == nil && (tokenTries > 1 || c.client.options.Token == nil && tokenTries > 0 ||
			code != closedTokenInvalid && !reconnects(code)) {
			final = c.finalError(code)
		}
		c.reason, c.retryAfter = nil, 0
		if final != nil && !isClosing {
			c.client.ended(final, final)
		}
		c.client.mu.Unlock()
		if final != nil || isClosing {
			return
		}
		if !sleep(ctx, retryAfter+rand.N(backoffLimit(attempt))) {
			return
		}
		attempt++
	}
}

// backoffLimit is the largest wait before an attempt, counted from 0. Full jitter below it spreads the clients of a
// restarted server [P-10.1].
func backoffLimit(attempt int) time.Duration {
	most := backoffMax
	if attempt < earlyAttempts {
		most = backoffEarly
	}
	return min(most, backoffMin<<min(attempt, 10))
}

// ended forgets what belongs to one connection.
func (c *connection) ended() {
	for _, message := range c.outbox {
		message.settle()
	}
	c.outbox = nil
	c.hasSocket, c.isLive, c.isWelcome = false, false, false
}

// session is one connection, until its end. It returns the close code, or why no further attempt can help.
func (c *connection) session(ctx context.Context) (int, *Error) {
	// Of one connection at a time: the outbox is the next one's.
	var helpers sync.WaitGroup
	defer helpers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := &websocket.DialOptions{HTTPClient: c.client.options.HTTPClient, Subprotocols: []string{"webmq.v1"}}
	dialing, cancelDialing := context.WithTimeout(ctx, openTimeout)
	socket, response, err := websocket.Dial(dialing, c.url, options)
	cancelDialing()
	if err != nil {
		c.failed(err)
		final := refusal(response)
		switch {
		case response != nil && final == nil:
			c.tell("it answered with " + response.Status)
		case response == nil && ctx.Err() == nil:
			tls := ""
			if strings.HasPrefix(c.url, "wss:") || strings.HasPrefix(c.url, "https:") {
				tls = ", with TLS (wss://)"
			}
			c.tell("nobody answers: is the address right, and does the server run" + tls + "?")
		}
		return closedAbnormally, final
	}
	defer socket.CloseNow()
	socket.SetReadLimit(maxFrameBytes)
	token, err := c.token(ctx)
	if err != nil {
		c.client.log.Warn("webmq: no token; the client tries again", "error", err)
		c.failed(err)
		return closedAbnormally, nil
	}
	c.begin(token)
	helpers.Go(func() { c.write(ctx, cancel, socket) })
	helpers.Go(func() { c.beat(ctx, cancel) })
	defer time.AfterFunc(openTimeout, func() {
		c.client.mu.Lock()
		defer c.client.mu.Unlock()
		if !c.isLive {
			cancel()
		}
	}).Stop()
	for {
		kind, data, err := socket.Read(ctx)
		if err != nil {
			c.failed(err)
			if code := int(websocket.CloseStatus(err)); code > 0 {
				return code, nil
			}
			return closedAbnormally, nil
		}
		if final := c.read(data, kind == websocket.MessageBinary); final != nil {
			return closedAbnormally, final
		}
	}
}

func (c *connection) failed(err error) {
	c.client.mu.Lock()
	defer c.client.mu.Unlock()
	c.failure = err
	c.client.log.Debug("webmq: no connection", "url", c.url, "error", err)
}

// tell warns that there is no connection: of each outage once, and again when the reason is another one.
func (c *connection) tell(reason string) {
	c.client.mu.Lock()
	defer c.client.mu.Unlock()
	if reason != c.loggedReason {
		c.loggedReason = reason
		c.client.log.Warn("webmq: no connection; the client tries again", "url", c.url, "reason", reason, "error", c.failure)
	}
}

func (c *connection) token(ctx context.Context) (string, error) {
	if c.client.options.Token == nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	token, err := c.client.options.Token(ctx)
	if err == nil {
		err = checkValue("E_TOKEN_UNAVAILABLE", "Token", token, maxTokenBytes)
	}
	return token, err
}

func (c *connection) begin(token string) {
	c.client.mu.Lock()
	defer c.client.mu.Unlock()
	c.hasSocket = true
	c.receivedAt, c.sentAt = time.Now(), time.Now()
	c.needsLogin = token != ""
	if c.needsLogin {
		c.login(token)
	}
}

func (c *connection) login(token string) {
	c.send(encode(&Payload{Data: []byte(token)}, "auth", loginID))
}

func (c *connection) read(data []byte, isBinary bool) *Error {
	message, err := decode(data, isBinary)
	c.client.mu.Lock()
	defer c.client.mu.Unlock()
	c.receivedAt = time.Now()
	if err == nil {
		return c.take(message)
	}
	if CodeOf(err) != "E_VERB_UNKNOWN" {
		c.client.logPaced(slog.LevelWarn, "unreadable message of the server", "error", err)
	}
	if message != nil {
		// What waits for this answer would wait for ever.
		c.client.received(&serverMessage{verb: "error", fields: []string{message.fields[0], CodeOf(err)}})
	}
	return nil
}

func (c *connection) take(message *serverMessage) *Error {
	switch {
	case message.verb == "welcome":
		// 0, and what is no time, is none [P-9.2].
		heartbeatMs, _ := message.body["heartbeatMs"].(float64)
		if c.heartbeat = milliseconds(heartbeatMs); heartbeatMs > 0 {
			c.heartbeat = max(c.heartbeat, minHeartbeat)
		}
		c.welcomed, _ = message.body["limits"].(map[string]any)
		c.client.limits = c.welcomed
		if message.body["auth"] == "required" && !c.needsLogin {
			return newError("E_UNAUTHENTICATED", "the server asks for a token: give Options.Token")
		}
		c.isWelcome = true
		c.openIfReady()
	case message.verb == "ok" && message.fields[0] == loginID:
		var result struct{ Limits map[string]any }
		if json.Unmarshal(message.payload.Data, &result) == nil {
			// Those of the token alone: the others are as before.
			c.client.limits = map[string]any{}
			maps.Copy(c.client.limits, c.welcomed)
			maps.Copy(c.client.limits, result.Limits)
		}
		c.needsLogin = false
		c.openIfReady()
	case message.verb == "error" && message.fields[0] == loginID:
		c.reason = errorOf(message.fields[1], message.body)
		if c.isLive {
			c.client.log.Warn("webmq: the new token was refused", "error", c.reason)
		}
	case message.verb == "expiring":
		if c.client.options.Token != nil && !c.isRenewing {
			c.isRenewing = true
			inMs, _ := strconv.ParseFloat(message.fields[0], 64)
			go c.renew(c.client.requests.connectionCount, time.Now().Add(milliseconds(inMs)))
		}
	case message.verb == "bye":
		if len(message.fields) > 1 {
			after, _ := strconv.ParseFloat(message.fields[1], 64)
			c.retryAfter = min(milliseconds(after), maxRetryAfter)
		}
	default:
		isOfOne := message.body["pattern"] != nil || message.body["key"] != nil
		if message.verb == "error" && message.fields[0] == "-" && !isOfOne {
			c.reason = errorOf(message.fields[1], message.body)
		}
		c.client.received(message)
	}
	return nil
}

func (c *connection) openIfReady() {
	if c.isWelcome && !c.needsLogin && !c.isLive && !c.isClosing {
		c.isLive, c.isRenewing, c.liveSince, c.loggedReason = true, false, time.Now(), ""
		c.client.opened()
	}
}

// renew gets a new token while the present one still holds [P-5.6], until that expires. One runs at a time.
func (c *connection) renew(connection uint64, end time.Time) {
	for attempt := 0; ; attempt++ {
		c.client.mu.Lock()
		pause := time.Until(c.renewedAt.Add(renewalInterval))
		c.client.mu.Unlock()
		sleep(c.client.ctx, pause)
		token, err := c.token(c.client.ctx)
		c.client.mu.Lock()
		isOver := err == nil || time.Now().After(end)
		if c.client.requests.connectionCount != connection {
			isOver = true
		} else if c.renewedAt, c.isRenewing = time.Now(), !isOver; err == nil && token != "" && c.isLive {
			c.login(token)
		}
		if err != nil {
			c.client.log.Warn("webmq: no new token; the present one still holds", "error", err)
		}
		c.client.mu.Unlock()
		if isOver || !sleep(c.client.ctx, rand.N(backoffLimit(attempt))) {
			return
		}
	}
}
