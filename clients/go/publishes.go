package webmq

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// minWindow is how many are sent after a refusal, and one more with each answer [P-10.7]. All at once would be refused again.
const minWindow = 8

// publishOverheadBytes is what a publish counts besides its bytes.
const publishOverheadBytes = 256

// Accepted says that the broker has the message.
type Accepted struct {
	// Position is its place in the log; "" if it is in none.
	Position string
	// IsDuplicate says that a message with this id was accepted before: this one was not delivered again.
	IsDuplicate bool
}

// Publishing is a publish that waits for its answer: [Client.PublishAsync].
type Publishing struct {
	// publishes is nil of one that was refused at once.
	publishes *publishes
	number    uint64
	id        string
	frame     frame
	// sentAt is when it was first sent; zero while the server cannot have it.
	sentAt time.Time
	// done is closed when it is settled; then accepted and err do not change.
	done     chan struct{}
	accepted Accepted
	err      error
}

func (p *Publishing) costBytes() int { return len(p.frame.data) + publishOverheadBytes }

// publishes wait for their answers. They are sent again after a lost connection, and in their order: section 7. Those
// refused with a time are sent again before any other [P-10.7]. The client's lock guards it.
type publishes struct {
	client     *Client
	maxBytes   int
	bytes      int
	waiting    []*Publishing
	sent       map[string]*Publishing
	refused    []*Publishing
	retryAfter time.Duration
	retry      *time.Timer
	// window is how many may be unanswered, until nothing waits after a refusal; 0: any number.
	window int
	isLive bool
}

// add sends a publish, or lets it wait for a connection. It takes the lock.
func (p *publishes) add(payload Payload, parts ...string) *Publishing {
	p.client.mu.Lock()
	defer p.client.mu.Unlock()
	if err := p.client.closedError(); err != nil {
		return refusedPublish(err)
	}
	number, id := p.client.requests.nextID()
	message := encode(&payload, append([]string{"publish", id}, parts...)...)
	publish := &Publishing{publishes: p, number: number, id: id, frame: message, done: make(chan struct{})}
	if p.bytes+publish.costBytes() > p.maxBytes {
		return refusedPublish(retryableError("E_QUEUE_FULL",
			"%d publishes wait for their answers; together they may have %d bytes (MaxPendingBytes)",
			len(p.waiting)+len(p.sent)+len(p.refused), p.maxBytes))
	}
	p.bytes += publish.costBytes()
	p.waiting = append(p.waiting, publish)
	p.flush()
	return publish
}

func refusedPublish(err error) *Publishing {
	done := make(chan struct{})
	close(done)
	return &Publishing{done: done, err: err}
}

// Wait returns when the broker has the message, or it is refused: see [Client.Publish]. When ctx ends first, a message
// that was not sent yet is withdrawn.
func (p *Publishing) Wait(ctx context.Context) (Accepted, error) {
	select {
	case <-p.done:
		return p.accepted, p.err
	case <-ctx.Done():
		if p.publishes == nil {
			return Accepted{}, p.err
		}
		p.publishes.withdraw(p)
		return Accepted{}, contextError(ctx, "the publish, which may have arrived")
	}
}

func (p *publishes) withdraw(publish *Publishing) {
	p.client.mu.Lock()
	defer p.client.mu.Unlock()
	if at := slices.Index(p.waiting, publish); at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
		p.settle(publish, Accepted{}, retryableError("E_TIMEOUT", "the publish was withdrawn"))
	}
}

func (p *publishes) settle(publish *Publishing, accepted Accepted, err error) {
	p.bytes -= publish.costBytes()
	publish.accepted, publish.err = accepted, err
	close(publish.done)
}

func (p *publishes) opened() {
	p.isLive = true
	p.flush()
}

// lost: what had no answer goes first on the next connection, as it was.
func (p *publishes) lost() {
	p.isLive, p.window = false, 0
	for _, publish := range p.sent {
		p.refused = append(p.refused, publish)
	}
	clear(p.sent)
	p.takeBack()
}

func (p *publishes) failed(err *Error) {
	p.lost()
	for _, publish := range p.waiting {
		p.settle(publish, Accepted{}, err)
	}
	p.waiting = nil
}

// take takes an answer. It returns whether it was one of these.
func (p *publishes) take(message *serverMessage) bool {
	publish := p.sent[message.fields[0]]
	if publish == nil {
		return false
	}
	delete(p.sent, publish.id)
	if message.verb == "ok" {
		p.settle(publish, Accepted{message.options["position"], message.has("duplicate")}, nil)
		if p.window > 0 {
			p.window++
		}
	} else if err := errorOf(message.fields[1], message.body); err.Code == "E_RATE_LIMIT" || err.RetryAfter > 0 {
		publish.sentAt = time.Time{}
		p.refused = append(p.refused, publish)
		p.retryAfter = max(p.retryAfter, err.RetryAfter, 250*time.Millisecond)
		p.window = minWindow
	} else {
		p.settle(publish, Accepted{}, err)
	}
	if len(p.refused) > 0 && len(p.sent) == 0 && p.retry == nil {
		var retry *time.Timer
		retry = time.AfterFunc(p.retryAfter, func() {
			p.client.mu.Lock()
			defer p.client.mu.Unlock()
			if p.retry == retry {
				p.takeBack()
				p.flush()
			}
		})
		p.retry = retry
	}
	p.flush()
	return true
}

// takeBack puts those that were refused before all others, in the order of their calls.
func (p *publishes) takeBack() {
	if p.retry != nil {
		p.retry.Stop()
	}
	p.retry, p.retryAfter = nil, 0
	again := p.refused
	slices.SortFunc(again, func(a, b *Publishing) int { return cmp.Compare(a.number, b.number) })
	p.waiting = append(again, p.waiting...)
	p.refused = nil
}

func (p *publishes) flush() {
	if !p.isLive || len(p.refused) > 0 {
		return
	}
	for len(p.waiting) > 0 && (p.window == 0 || len(p.sent) < p.window) {
		publish := p.waiting[0]
		p.waiting = p.waiting[1:]
		now := time.Now()
		if publish.sentAt.IsZero() {
			publish.sentAt = now
		} else if ageAt(now, publish.sentAt) >= p.client.dedupeWindow() {
			p.settle(publish, Accepted{}, retryableError("E_TIMEOUT",
				"no answer came, and the server would not know a second copy: it may have arrived"))
			continue
		}
		p.sent[publish.id] = publish
		p.client.connection.send(publish.frame)
	}
	if len(p.waiting) == 0 {
		p.waiting, p.window = nil, 0
	}
}

// ageAt is by the clock that says more: the monotonic one stands still while a machine sleeps.
func ageAt(now, then time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}
