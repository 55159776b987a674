package webmq

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
)

// reply is an answer, with the messages of its replay.
type reply struct {
	id       string
	options  map[string]string
	messages []Message
	result   []byte
	isBinary bool
	err      *Error
}

// fate is what becomes of a request whose connection is lost before its answer.
type fate int

const (
	// forgotten: it fails with E_DISCONNECTED. Without a connection, it fails with E_OFFLINE.
	forgotten fate = iota
	// resent: it waits for a connection, and is sent again on the next one.
	resent
	// replied is forgotten, too, and answered by the `reply` that follows its `ok` [P-16.7].
	replied
)

type pendingRequest struct {
	number  uint64
	id      string
	frame   frame
	onReply func(reply)
	fate    fate
}

// requests are answered once, each with the messages that follow the answer: section 4. The client's lock guards it.
type requests struct {
	client  *Client
	pending map[string]*pendingRequest
	count   uint64
	replay  *replay
	isLive  bool
	// connectionCount numbers the connections.
	connectionCount uint64
}

// replay is kept until it is whole: a server must not fill the program with it.
type replay struct {
	request *pendingRequest
	reply   reply
	missing int
	bytes   int
}

const (
	maxReplayMessages = 100_000
	maxReplayBytes    = 64 << 20
)

func (r *requests) nextID() (uint64, string) {
	r.count++
	return r.count, strconv.FormatUint(r.count, 16)
}

// ask sends a request. onReply is called with the lock held, in the turn of the answer's last message. It returns the
// id of the request.
func (r *requests) ask(onReply func(reply), fate fate, payload *Payload, verb string, parts ...string) string {
	number, id := r.nextID()
	if !r.isLive && fate != resent {
		onReply(reply{id: id, err: retryableError("E_OFFLINE", "not connected")})
		return id
	}
	request := &pendingRequest{number, id, encode(payload, append([]string{verb, id}, parts...)...), onReply, fate}
	r.pending[id] = request
	if r.isLive {
		r.client.connection.send(request.frame)
	}
	return id
}

// call sends a request, and waits for the answer. It takes the lock.
func (r *requests) call(ctx context.Context, fate fate, payload *Payload, verb string, parts ...string) (reply, error) {
	done := make(chan reply, 1)
	r.client.mu.Lock()
	if err := r.client.closedError(); err != nil {
		r.client.mu.Unlock()
		return reply{}, err
	}
	id := r.ask(func(answer reply) { done <- answer }, fate, payload, verb, parts...)
	r.client.mu.Unlock()
	select {
	case answer := <-done:
		if answer.err != nil {
			return answer, answer.err
		}
		return answer, nil
	case <-ctx.Done():
		r.client.mu.Lock()
		delete(r.pending, id)
		r.client.mu.Unlock()
		return reply{}, contextError(ctx, verb)
	}
}

// callAgain calls until the answer is final: what may succeed later is sent again, but for E_STREAM_BUSY.
func (r *requests) callAgain(ctx context.Context, payload *Payload, verb string, parts ...string) (reply, error) {
	for {
		answer, err := r.call(ctx, resent, payload, verb, parts...)
		if answer.err == nil || !answer.err.Retryable || answer.err.Code == "E_STREAM_BUSY" {
			return answer, err
		}
		if !sleep(ctx, answer.err.retryAfter(retryInterval/2)) {
			return answer, contextError(ctx, verb)
		}
	}
}

func (r *requests) opened() {
	r.isLive = true
	r.connectionCount++
	for _, request := range slices.SortedFunc(maps.Values(r.pending), func(a, b *pendingRequest) int {
		return cmp.Compare(a.number, b.number)
	}) {
		r.client.connection.send(request.frame)
	}
}

func (r *requests) lost() {
	r.isLive = false
	r.replay = nil
	for id, request := range r.pending {
		if request.fate != resent {
			delete(r.pending, id)
			err := newError("E_DISCONNECTED", "the connection was lost before the answer")
			err.Retryable = request.fate == forgotten
			request.onReply(reply{id: id, err: err})
		}
	}
}

func (r *requests) failed(err *Error) {
	r.isLive = false
	for id, request := range r.pending {
		delete(r.pending, id)
		request.onReply(reply{id: id, err: err})
	}
}

// take takes an answer, or a message of a replay. It returns whether it was one.
func (r *requests) take(message *serverMessage) bool {
	switch message.verb {
	case "message":
		if r.replay == nil {
			// Of a replay that nobody waits for any more.
			return message.has("replay")
		}
		r.takeReplayed(message)
		return true
	case "ok", "error":
		request := r.pending[message.fields[0]]
		if request == nil {
			return false
		}
		answer := reply{id: request.id, options: message.options, result: message.payload.Data}
		if message.verb == "error" {
			answer.err = errorOf(message.fields[1], message.body)
		} else if request.fate == replied {
			// A responder has it.
			return true
		} else if count := message.number("replayed"); count > 0 {
			if count > maxReplayMessages {
				r.refuse(request, "a replay of more than %d messages", maxReplayMessages)
			} else {
				r.replay = &replay{request, answer, count, 0}
			}
			return true
		}
		r.answer(request, answer)
		return true
	case "reply":
		if request := r.pending[message.fields[0]]; request != nil {
			answer := reply{id: request.id, isBinary: message.payload.IsBinary, result: message.payload.Data}
			if message.has("error") {
				answer.err = errorOfReply(message.payload)
			}
			r.answer(request, answer)
		}
		return true
	}
	return false
}

func (r *requests) takeReplayed(message *serverMessage) {
	now := r.replay
	now.reply.messages = append(now.reply.messages, messageOf(message))
	now.bytes += len(message.payload.Data)
	now.missing--
	if now.bytes > maxReplayBytes {
		r.replay = nil
		r.refuse(now.request, "a replay of more than %d bytes", maxReplayBytes)
	} else if now.missing == 0 {
		r.replay = nil
		r.answer(now.request, now.reply)
	}
}

func (r *requests) refuse(request *pendingRequest, format string, most int) {
	r.answer(request, reply{id: request.id, err: newError("E_MESSAGE_INVALID", "the server sends "+format+" at once", most)})
}

func (r *requests) answer(request *pendingRequest, answer reply) {
	// Whoever has given up has taken it away.
	if r.pending[request.id] == request {
		delete(r.pending, request.id)
		request.onReply(answer)
	}
}
