package webmq

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// MaxRunningTasks is how many handlers of a [Membership] run at a time. Beyond it, requests are refused with
	// E_RATE_LIMIT, and messages wait.
	MaxRunningTasks = 256
	// MaxWaitingTaskBytes bounds the messages of a [Membership] that wait for a handler, each with 256 bytes more: 16
	// MiB. Those beyond it are dropped and counted.
	MaxWaitingTaskBytes = 16 << 20
)

// maxWaitingRefusals is how many messages may wait on a stalled connection before requests are left to their timeouts.
const maxWaitingRefusals = 1_024

// Task is a message, or a request, that a member of a queue group handles.
type Task struct {
	Key     string
	Payload Payload
}

// Membership in a queue group. It continues on the next connection when one was lost, until it is closed.
type Membership struct {
	client       *Client
	pattern      string
	group        string
	handler      func(context.Context, Task) (any, error)
	responds     bool
	runningCount int
	waiting      []Task
	waitingBytes int
	droppedCount atomic.Uint64
	ready        chan struct{}
	isReady      bool
	done         chan struct{}
	isClosed     bool
	err          error
}

// Respond answers requests whose key the pattern matches: what the handler returns is the reply, see [Payload]. Of its
// errors, an [Error] reaches whoever asks with code and message; others are logged, and tell E_RESPONSE alone. group ""
// is "responders". The context of the handler ends with the time for the reply. It returns when all nodes know of it.
//
// Errors: E_PATTERN_INVALID, E_OPTION_INVALID, E_FORBIDDEN, E_UNSUPPORTED and others; E_TIMEOUT when ctx ends.
func (c *Client) Respond(
	ctx context.Context, pattern, group string, handler func(context.Context, Task) (any, error),
) (*Membership, error) {
	return c.join(ctx, pattern, cmp.Or(group, "responders"), handler, true)
}

// Work handles messages as a member of a queue group: each message goes to one member. Messages that a member has when
// it loses its connection are lost with it, as those that are dropped: [Membership.DroppedCount]. Errors of the
// handler are logged. It returns when all nodes know of it.
//
// Errors: those of [Client.Respond].
func (c *Client) Work(
	ctx context.Context, pattern, group string, handler func(context.Context, Task) error,
) (*Membership, error) {
	work := func(ctx context.Context, task Task) (any, error) { return nil, handler(ctx, task) }
	return c.join(ctx, pattern, group, work, false)
}

func (c *Client) join(
	ctx context.Context, pattern, group string, handler func(context.Context, Task) (any, error), responds bool,
) (*Membership, error) {
	if err := checkPattern(pattern); err != nil {
		return nil, err
	}
	if err := checkValue("E_OPTION_INVALID", "group", group, 64); err != nil || group == "" {
		return nil, newError("E_OPTION_INVALID", "group: 1 to 64 visible ASCII characters")
	}
	member := &Membership{
		client: c, pattern: pattern, group: group, handler: handler, responds: responds,
		ready: make(chan struct{}), done: make(chan struct{}),
	}
	if err := member.begin(); err != nil {
		return nil, err
	}
	select {
	case <-member.ready:
		return member, nil
	case <-member.done:
		return nil, member.err
	case <-ctx.Done():
		member.Close()
		return nil, contextError(ctx, "join "+pattern)
	}
}

func (m *Membership) begin() error {
	m.client.mu.Lock()
	defer m.client.mu.Unlock()
	if err := m.client.closedError(); err != nil {
		return err
	}
	if m.client.member(m.group, m.pattern, m.responds) != nil {
		return newError("E_OPTION_INVALID", "this client is a member of %s at %s already", m.group, m.pattern)
	}
	m.client.memberships = append(m.client.memberships, m)
	if m.client.requests.isLive {
		m.opened()
	}
	return nil
}

// Done is closed when the membership has ended.
func (m *Membership) Done() <-chan struct{} { return m.done }

// Err returns why the membership has ended by itself, such as E_FORBIDDEN, or E_CLOSED with its client, once
// [Membership.Done] is closed.
func (m *Membership) Err() error {
	m.client.mu.Lock()
	defer m.client.mu.Unlock()
	return m.err
}

// DroppedCount returns how many messages came while [MaxWaitingTaskBytes] waited: they are lost.
func (m *Membership) DroppedCount() uint64 { return m.droppedCount.Load() }

// Close ends the membership. Handlers that run may finish, and what is on its way is handled, too. It does not wait for
// them, nor for the server.
func (m *Membership) Close() {
	m.client.mu.Lock()
	defer m.client.mu.Unlock()
	if m.isClosed {
		return
	}
	m.end(nil)
	if m.client.requests.isLive {
		m.client.leaving = append(m.client.leaving, m)
		// If the connection is lost, or the membership has ended, it is over either way.
		left := func(reply) { m.client.leaving = without(m.client.leaving, m) }
		m.client.requests.ask(left, forgotten, nil, "unlisten", m.options()...)
	}
}

func (m *Membership) options() []string {
	return []string{m.pattern, "group=" + m.group, flag("respond", m.responds)}
}

func (m *Membership) opened() {
	m.client.requests.ask(m.joined, forgotten, nil, "listen", m.options()...)
}

func (m *Membership) joined(answer reply) {
	switch err := answer.err; {
	case m.isClosed || err != nil && err.Code == "E_DISCONNECTED":
	case err == nil:
		if !m.isReady {
			m.isReady = true
			close(m.ready)
		}
	case err.Retryable:
		m.client.later(err, func() {
			if !m.isClosed {
				m.opened()
			}
		})
	default:
		m.end(err)
	}
}

func (m *Membership) end(err error) {
	if m.isClosed {
		return
	}
	m.isClosed, m.err = true, err
	m.client.memberships = without(m.client.memberships, m)
	close(m.done)
}

func without(members []*Membership, member *Membership) []*Membership {
	return slices.DeleteFunc(members, func(other *Membership) bool { return other == member })
}

func (c *Client) member(group, pattern string, responds bool) *Membership {
	return find(c.memberships, group, pattern, responds)
}

func find(members []*Membership, group, pattern string, responds bool) *Membership {
	for _, member := range members {
		if member.group == group && member.pattern == pattern && member.responds == responds {
			return member
		}
	}
	return nil
}

func (c *Client) hand(task *serverMessage) {
	for _, members := range [][]*Membership{c.memberships, c.leaving} {
		if member := find(members, task.fields[0], task.fields[1], task.has("request")); member != nil {
			member.take(task)
			return
		}
	}
}

func (c *Client) membershipEnded(message *serverMessage) {
	member := c.member(message.fields[0], message.fields[1], message.has("respond"))
	if member == nil {
		return
	}
	code, isText := message.body["code"].(string)
	if !isText {
		code = "E_FORBIDDEN"
	}
	member.end(errorOf(code, message.body))
}

func (m *Membership) take(task *serverMessage) {
	request, taken := task.options["request"], Task{Key: task.fields[2], Payload: task.payload}
	switch {
	case m.runningCount < MaxRunningTasks:
		m.runningCount++
		within := time.Duration(task.number("within")) * time.Millisecond
		connection := m.client.requests.connectionCount
		go m.run(taken, request, within, connection)
	case request != "":
		m.client.logPaced(slog.LevelWarn, "too many requests are handled", "pattern", m.pattern)
		if len(m.client.connection.outbox) < maxWaitingRefusals {
			m.client.connection.send(refusalOf(request, newError("E_RATE_LIMIT", "the responder is busy")))
		}
	case m.waitingBytes+taken.costBytes() <= MaxWaitingTaskBytes:
		// They may come faster than handlers begin.
		m.waiting = append(m.waiting, taken)
		m.waitingBytes += taken.costBytes()
	default:
		m.client.logPaced(slog.LevelWarn, "messages are dropped: too many wait", "pattern", m.pattern)
		m.droppedCount.Add(1)
	}
}

func (t Task) costBytes() int { return len(t.Payload.Data) + 256 }

// run handles a task, and then those that wait.
func (m *Membership) run(task Task, request string, within time.Duration, connection uint64) {
	for {
		m.handle(task, request, within, connection)
		m.client.mu.Lock()
		if len(m.waiting) == 0 || m.client.status == StatusClosed {
			m.runningCount--
			m.client.mu.Unlock()
			return
		}
		task, request = m.waiting[0], ""
		m.waiting[0] = Task{}
		m.waiting = m.waiting[1:]
		m.waitingBytes -= task.costBytes()
		m.client.mu.Unlock()
	}
}

func (m *Membership) handle(task Task, request string, within time.Duration, connection uint64) {
	ctx, cancel := m.client.ctx, context.CancelFunc(func() {})
	if request != "" && within > 0 {
		ctx, cancel = context.WithTimeout(ctx, within)
	}
	result, err := m.handler(ctx, task)
	cancel()
	var answer frame
	if err == nil && request != "" {
		var payload Payload
		if payload, err = payloadOf(result); err == nil {
			answer = encode(&payload, "reply", request)
		}
	}
	if err != nil {
		var told *Error
		if !errors.As(err, &told) {
			told = newError("E_RESPONSE", "the responder has failed")
		}
		if request == "" || told.Code == "E_RESPONSE" {
			m.client.logPaced(slog.LevelError, "a handler failed", "pattern", m.pattern, "key", task.Key, "error", err)
		}
		answer = refusalOf(request, told)
	}
	answer.written = make(chan struct{})
	m.client.mu.Lock()
	// On another connection its id may be that of another request.
	isSent := request != "" && m.client.connection.isLive && connection == m.client.requests.connectionCount
	if isSent {
		m.client.connection.send(answer)
	}
	m.client.mu.Unlock()
	if isSent {
		// So that replies which wait are bounded, too.
		<-answer.written
	}
}

func refusalOf(request string, err *Error) frame {
	body, _ := payloadOf(map[string]string{"code": err.Code, "message": bounded(err.Message)})
	return encode(&body, "reply", request, "error")
}
