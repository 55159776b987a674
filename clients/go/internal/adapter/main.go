// Adapter drives the client for `webmq-conformance client`: a command per line of its input, an answer per line of output.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	webmq "github.com/webmq/webmq/clients/go"
)

type object = map[string]any

// command has the arguments of all commands.
type command struct {
	ID         any      `json:"id"`
	Do         string   `json:"do"`
	Client     string   `json:"client"`
	URL        string   `json:"url"`
	Tokens     []string `json:"tokens"`
	Status     string   `json:"status"`
	Key        string   `json:"key"`
	Pattern    string   `json:"pattern"`
	Payload    any      `json:"payload"`
	Base64     *[]byte  `json:"base64"`
	MessageID  string   `json:"messageId"`
	NoEcho     bool     `json:"noEcho"`
	Ephemeral  bool     `json:"ephemeral"`
	Count      int      `json:"count"`
	Characters int      `json:"characters"`
	Listener   string   `json:"listener"`
	Since      string   `json:"since"`
	Before     string   `json:"before"`
	Last       int      `json:"last"`
	RewindMs   int      `json:"rewindMs"`
	Stream     string   `json:"stream"`
	MaxWaiting int      `json:"maxWaiting"`
	Item       any      `json:"item"`
	Replies    struct {
		Error string `json:"error"`
	} `json:"replies"`
	Writer  string `json:"writer"`
	Reader  string `json:"reader"`
	Meta    any    `json:"meta"`
	Content string `json:"content"`
	Result  any    `json:"result"`
}

// source is what `next` and `streamNext` take from.
type source struct {
	next  func() (any, error, bool)
	close func()
	// waiting: how many `take` takes.
	waiting func() int
	state   *webmq.State
	reader  *webmq.StreamReader
}

func newSource[T any](events iter.Seq2[T, error]) source {
	next, stop := iter.Pull2(events)
	return source{
		next:  func() (any, error, bool) { event, err, isThere := next(); return event, err, isThere },
		close: stop,
	}
}

type adapter struct {
	mu      sync.Mutex
	clients map[string]*webmq.Client
	sources map[string]source
	writers map[string]*webmq.StreamWriter
}

func (a *adapter) reset() {
	a.mu.Lock()
	clients := a.clients
	a.clients = map[string]*webmq.Client{}
	a.sources = map[string]source{}
	a.writers = map[string]*webmq.StreamWriter{}
	a.mu.Unlock()
	for _, client := range clients {
		client.Close()
	}
}

func at[T any](a *adapter, values map[string]T, name string) T {
	a.mu.Lock()
	defer a.mu.Unlock()
	return values[name]
}

func put[T any](a *adapter, values map[string]T, name string, value T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	values[name] = value
}

func decoded(payload webmq.Payload) any {
	var value any
	if err := payload.Decode(&value); err != nil {
		return err.Error()
	}
	return value
}

func optional(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func shown(event any, from source) object {
	switch event := event.(type) {
	case webmq.Change:
		values := object{}
		for key, message := range from.state.Values() {
			values[key] = decoded(message.Payload)
		}
		return object{"values": values}
	case webmq.StreamPart:
		return object{"stream": optional(from.reader.Info().ID), "content": event.Content, "isWhole": event.IsWhole}
	case webmq.Gap:
		return object{"gap": event.Reason}
	case webmq.Message:
		answer := object{"key": event.Key, "position": optional(event.Position), "isReplay": event.IsReplay}
		if event.Payload.IsBinary {
			answer["base64"] = event.Payload.Data
		} else {
			answer["payload"] = decoded(event.Payload)
		}
		return answer
	}
	return object{}
}

func (a *adapter) connect(ctx context.Context, c command) (object, error) {
	options := webmq.Options{}
	if tokens := c.Tokens; len(tokens) > 0 {
		options.Token = func(context.Context) (string, error) {
			given := tokens[0]
			if len(tokens) > 1 {
				tokens = tokens[1:]
			}
			if given == "throw" {
				return "", errors.New("no token now")
			}
			return given, nil
		}
	}
	client, err := webmq.Dial(ctx, c.URL, options)
	if err == nil {
		put(a, a.clients, c.Client, client)
	}
	return nil, err
}

// begin begins a command. What is begun in an order is done in that order.
func (a *adapter) begin(ctx context.Context, c command) (finish func() (object, error)) {
	switch c.Do {
	case "publish":
		return a.publish(ctx, c)
	case "append":
		err := at(a, a.writers, c.Writer).Append(ctx, c.Content)
		return func() (object, error) { return object{"isBuffered": true}, err }
	}
	return func() (object, error) { return a.run(ctx, c) }
}

func (a *adapter) publish(ctx context.Context, c command) (finish func() (object, error)) {
	payload := c.Payload
	if c.Base64 != nil {
		payload = *c.Base64
	}
	publishing := at(a, a.clients, c.Client).PublishAsync(c.Key, payload,
		webmq.PublishOptions{ID: c.MessageID, NoEcho: c.NoEcho, Ephemeral: c.Ephemeral})
	return func() (object, error) {
		accepted, err := publishing.Wait(ctx)
		return object{"position": optional(accepted.Position), "duplicate": accepted.IsDuplicate}, err
	}
}

func (a *adapter) publishMany(ctx context.Context, c command) error {
	var publishings []*webmq.Publishing
	for number := range c.Count {
		publishing := at(a, a.clients, c.Client).PublishAsync(c.Key, number, webmq.PublishOptions{})
		publishings = append(publishings, publishing)
	}
	for _, publishing := range publishings {
		if _, err := publishing.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (a *adapter) next(name string) (object, error) {
	from := at(a, a.sources, name)
	event, err, isThere := from.next()
	if from.reader != nil && (!isThere || err != nil) {
		if info := from.reader.Info(); info.Status != webmq.StreamActive && info.Status != webmq.StreamNone {
			return object{"stream": optional(info.ID), "status": info.Status, "result": decoded(info.Result)}, nil
		}
	}
	if err != nil || !isThere {
		return object{"ended": true}, err
	}
	return shown(event, from), nil
}

func (a *adapter) take(name string) (object, error) {
	items := []object{}
	for {
		item, err := a.next(name)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if at(a, a.sources, name).waiting() == 0 {
			return object{"items": items}, nil
		}
	}
}

func (a *adapter) nextMany(c command) (object, error) {
	var numbers []int
	gapCount, isAscending := 0, true
	for len(numbers) < c.Count {
		event, err, isThere := at(a, a.sources, c.Listener).next()
		if err != nil || !isThere {
			return nil, fmt.Errorf("it has ended: %w", err)
		}
		message, isMessage := event.(webmq.Message)
		if !isMessage {
			gapCount++
			continue
		}
		var payload struct{ N int }
		if err := message.Payload.Decode(&payload); err != nil {
			return nil, err
		}
		isAscending = isAscending && (len(numbers) == 0 || payload.N > numbers[len(numbers)-1])
		numbers = append(numbers, payload.N)
	}
	return object{
		"gaps": gapCount, "first": numbers[0], "last": numbers[len(numbers)-1], "ascending": isAscending,
	}, nil
}

func (a *adapter) history(ctx context.Context, c command) (object, error) {
	history, err := at(a, a.clients, c.Client).History(ctx, c.Key, webmq.HistoryOptions{Last: c.Last, Before: c.Before})
	if err != nil {
		return nil, err
	}
	payloads, positions, first := []any{}, []any{}, any(nil)
	for _, message := range history.Messages {
		payloads = append(payloads, decoded(message.Payload))
		positions = append(positions, message.Position)
	}
	if len(history.Messages) > 0 {
		first = history.Messages[0].Position
	}
	return object{
		"payloads": payloads, "positions": positions, "firstPosition": first,
		"position": optional(history.Position), "gap": optional(history.Gap), "more": history.HasMore,
	}, nil
}

func (a *adapter) run(ctx context.Context, c command) (object, error) {
	client := at(a, a.clients, c.Client)
	switch c.Do {
	case "connect":
		return a.connect(ctx, c)
	case "waitStatus":
		for string(client.Status()) != c.Status {
			time.Sleep(5 * time.Millisecond)
		}
		return nil, nil
	case "publishMany":
		return nil, a.publishMany(ctx, c)
	case "publishSize":
		_, err := client.Publish(ctx, c.Key, strings.Repeat("x", c.Characters))
		return nil, err
	case "listen":
		listener, err := client.Listen(ctx, c.Pattern,
			webmq.ListenOptions{
				Since: c.Since, Last: c.Last, Rewind: time.Duration(c.RewindMs) * time.Millisecond,
				MaxWaitingMessages: c.MaxWaiting,
			})
		if err != nil {
			return nil, err
		}
		from := newSource(listener.Events(ctx))
		from.close, from.waiting = listener.Close, listener.Waiting
		put(a, a.sources, c.Listener, from)
		return object{"position": optional(listener.Position())}, nil
	case "state":
		state, err := client.State(ctx, c.Pattern, webmq.StateOptions{})
		if err == nil {
			from := newSource(state.Changes(ctx))
			from.state = state
			put(a, a.sources, c.Listener, from)
		}
		return nil, err
	case "unlisten":
		at(a, a.sources, c.Listener).close()
		return nil, nil
	case "next":
		return a.next(c.Listener)
	case "take":
		return a.take(c.Listener)
	case "nextMany":
		return a.nextMany(c)
	case "isGap":
		if _, isText := c.Item.(string); !isText {
			return nil, errors.New("no gap was told")
		}
		return nil, nil
	case "history":
		return a.history(ctx, c)
	case "respond":
		_, err := client.Respond(ctx, c.Pattern, "", func(_ context.Context, task webmq.Task) (any, error) {
			if c.Replies.Error != "" {
				return nil, &webmq.Error{Code: c.Replies.Error, Message: "refused"}
			}
			return task.Payload, nil
		})
		return nil, err
	case "request":
		payload, err := client.Request(ctx, c.Key, c.Payload)
		return object{"payload": decoded(payload)}, err
	case "openStream":
		writer, err := client.OpenStream(ctx, c.Key, webmq.StreamOptions{Meta: c.Meta, ID: c.Stream})
		if err == nil {
			put(a, a.writers, c.Writer, writer)
		}
		return nil, err
	case "endStream":
		return nil, at(a, a.writers, c.Writer).End(ctx, c.Result)
	case "waitStopped":
		<-at(a, a.writers, c.Writer).Stopped()
		return nil, nil
	case "readStream":
		reader, err := client.ReadStream(c.Key)
		if err == nil {
			from := newSource(reader.Parts(ctx))
			from.reader = reader
			put(a, a.sources, c.Reader, from)
		}
		return nil, err
	case "streamNext":
		return a.next(c.Reader)
	case "stopStream":
		return nil, at(a, a.sources, c.Reader).reader.Stop(ctx, "")
	case "close":
		client.Close()
		return nil, nil
	case "reset":
		a.reset()
		return nil, nil
	}
	return nil, fmt.Errorf("unknown command %s", c.Do)
}

func main() {
	var writing sync.Mutex
	say := func(line object) {
		writing.Lock()
		defer writing.Unlock()
		if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
			log.Fatal(err)
		}
	}
	a := &adapter{}
	a.reset()
	can := []string{"checker", "history", "refusals", "requests", "slow readers", "state", "streams"}
	say(object{"hello": object{"name": "the client for Go", "can": can}})
	input := bufio.NewReader(os.Stdin)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		var c command
		if err := json.Unmarshal(line, &c); err != nil {
			log.Fatal(err)
		}
		finish := a.begin(context.Background(), c)
		go func() {
			ok, err := finish()
			switch {
			case err != nil && webmq.CodeOf(err) == "":
				say(object{"id": c.ID, "error": object{"code": "ERROR", "message": err.Error()}})
			case err != nil:
				var told *webmq.Error
				retryable := errors.As(err, &told) && told.Retryable
				failed := object{"code": webmq.CodeOf(err), "message": err.Error(), "retryable": retryable}
				say(object{"id": c.ID, "error": failed})
			case ok == nil:
				say(object{"id": c.ID, "ok": object{}})
			default:
				say(object{"id": c.ID, "ok": ok})
			}
		}()
	}
}
