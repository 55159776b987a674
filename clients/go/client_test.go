package webmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// peer is the server's end of a connection, which a test plays by hand.
type peer struct {
	t      *testing.T
	ctx    context.Context
	socket *websocket.Conn
	// number counts the connections, from 1.
	number int
}

func (p *peer) say(text string) {
	if err := p.socket.Write(p.ctx, websocket.MessageText, []byte(text)); err != nil {
		p.t.Errorf("%q: %v", text, err)
	}
}

// hear returns the next message, whose header begins so, and its id.
func (p *peer) hear(beginning string) (text, id string) {
	_, data, err := p.socket.Read(p.ctx)
	if err != nil || !strings.HasPrefix(string(data), beginning) {
		p.t.Errorf("expected %q, got %q, %v", beginning, data, err)
		return "", ""
	}
	header, _, _ := strings.Cut(string(data), "\n")
	return string(data), strings.Split(header, " ")[1]
}

// dial connects a client with a server that plays this.
func dial(t *testing.T, options Options, play func(*peer)) (*Client, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	var played sync.WaitGroup
	var count atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		played.Add(1)
		defer played.Done()
		socket, err := websocket.Accept(writer, request, &websocket.AcceptOptions{Subprotocols: []string{"webmq.v1"}})
		if err != nil {
			t.Error(err)
			return
		}
		defer socket.CloseNow()
		p := &peer{t, ctx, socket, int(count.Add(1))}
		p.say(`welcome` + "\n" + `{"protocol":"webmq.v1","auth":"none","session":"s","heartbeatMs":25000,"limits":{}}`)
		play(p)
		// Until the client closes.
		_, _, _ = socket.Read(ctx)
	}))
	options.Logger = slog.New(slog.DiscardHandler)
	client, err := Dial(ctx, server.URL, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		played.Wait()
		server.Close()
		cancel()
	})
	return client, ctx
}

func TestDialTellsWhyItIsRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		writer.WriteHeader(http.StatusForbidden)
		fmt.Fprint(writer, `{"code":"E_ORIGIN_FORBIDDEN","message":"not\nyou"}`)
	}))
	defer server.Close()
	_, err := Dial(t.Context(), server.URL, Options{})
	if CodeOf(err) != "E_ORIGIN_FORBIDDEN" || !strings.Contains(err.Error(), "not you") {
		t.Error(err)
	}
}

func TestDialWaitsAsLongAsItsContext(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Dial(ctx, server.URL, Options{})
	if CodeOf(err) != "E_TIMEOUT" || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := Dial(ctx, "localhost:8080", Options{}); CodeOf(err) != "E_OPTION_INVALID" {
		t.Error(err)
	}
}

// Symptom: with a wrong address Dial waited, and nothing was ever said. Cause: it was logged for debugging only.
func TestSaysOnceThatNobodyAnswers(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var told strings.Builder
	_, err := Dial(ctx, server.URL, Options{Logger: slog.New(slog.NewTextHandler(&told, nil))})
	if count := strings.Count(told.String(), "nobody answers: is the address right"); count != 1 {
		t.Error(count, told.String(), err)
	}
	var failure *Error
	if !errors.As(err, &failure) || !strings.HasSuffix(failure.Docs(), "/docs/errors.md#e_timeout") {
		t.Error(err)
	}
}

func TestSaysThatTLSWasAskedFor(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var told strings.Builder
	address := strings.Replace(server.URL, "http:", "wss:", 1)
	_, err := Dial(ctx, address, Options{Logger: slog.New(slog.NewTextHandler(&told, nil))})
	if !strings.Contains(told.String(), "does the server run, with TLS (wss://)?") {
		t.Error(told.String(), err)
	}
}

func TestWaitsAtMost5sInTheFirstMinute(t *testing.T) {
	for attempt, limit := range map[int]time.Duration{
		0: backoffMin, 3: 8 * backoffMin, 4: backoffEarly, 23: backoffEarly, 24: backoffMax, 5_000: backoffMax,
	} {
		if backoffLimit(attempt) != limit {
			t.Error(attempt, backoffLimit(attempt))
		}
	}
}

func TestStatusIsToldUntilTheEnd(t *testing.T) {
	told := make(chan Status, 10)
	client, _ := dial(t, Options{OnStatus: func(status Status) { told <- status }}, func(*peer) {})
	if status := <-told; status != StatusConnected {
		t.Error(status)
	}
	client.Close()
	if status := <-told; status != StatusClosed || client.Err() != nil {
		t.Error(status, client.Err())
	}
	if _, err := client.Publish(t.Context(), "a", 1); CodeOf(err) != "E_CLOSED" {
		t.Error(err)
	}
}

func TestPublishesThatWaitAreBounded(t *testing.T) {
	answer := make(chan struct{})
	client, ctx := dial(t, Options{MaxPendingBytes: 600}, func(p *peer) {
		_, id := p.hear("publish")
		<-answer
		p.say("ok " + id + " position=e:1.AAAAA duplicate")
	})
	first := client.PublishAsync("a", 1, PublishOptions{})
	if _, err := client.Publish(ctx, "a", strings.Repeat("x", 200)); CodeOf(err) != "E_QUEUE_FULL" {
		t.Error(err)
	}
	short, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := first.Wait(short); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(answer)
	if accepted, err := first.Wait(ctx); err != nil || accepted != (Accepted{"e:1.AAAAA", true}) {
		t.Error(accepted, err)
	}
}

func TestAFewAreSentFirstAfterARefusal(t *testing.T) {
	const count = 40
	clients := make(chan *Client, 1)
	client, ctx := dial(t, Options{}, func(p *peer) {
		// All have been sent by then.
		client := <-clients
		for number := range count {
			_, id := p.hear("publish")
			// Refused because the broker is slow, or not answered by it in time.
			code := []string{"E_RATE_LIMIT", "E_TIMEOUT"}[number%2]
			p.say("error " + id + " " + code + "\n" + `{"message":"later","retryable":true,"retryAfterMs":10}`)
		}
		var ids []string
		for number := range count {
			text, id := p.hear("publish")
			if !strings.HasSuffix(text, fmt.Sprintf("\n%d", number)) {
				t.Errorf("%q is not message %d", text, number)
			}
			if ids = append(ids, id); number == minWindow-1 {
				client.mu.Lock()
				if waiting := len(client.publishes.waiting); waiting != count-minWindow {
					t.Errorf("%d wait", waiting)
				}
				client.mu.Unlock()
			}
			if number >= minWindow-1 {
				for _, id := range ids {
					p.say("ok " + id)
				}
				ids = nil
			}
		}
	})
	var sent []*Publishing
	for number := range count {
		sent = append(sent, client.PublishAsync("k", number, PublishOptions{}))
	}
	clients <- client
	for _, publishing := range sent {
		if _, err := publishing.Wait(ctx); err != nil {
			t.Error(err)
		}
	}
}

func TestNothingBreaksTheHeader(t *testing.T) {
	client, ctx := dial(t, Options{}, func(*peer) {})
	_, ofListen := client.Listen(ctx, "a", ListenOptions{Since: "e:1 state"})
	_, ofHistory := client.History(ctx, "a", HistoryOptions{Before: "e:1\nx"})
	_, ofPublish := client.PublishAsync("a", 1, PublishOptions{ID: "a b"}).Wait(ctx)
	_, ofGroup := client.Work(ctx, "a", "b c", nil)
	for index, err := range []error{ofListen, ofHistory, ofPublish, ofGroup} {
		if code := CodeOf(err); code != "E_OPTION_INVALID" && code != "E_POSITION_INVALID" {
			t.Error(index, err)
		}
	}
}

// A slow reader was left alone when the server refused for now to read the log again: nothing asked a second time.
func TestSlowReaderAsksAgainAfterARefusal(t *testing.T) {
	behind := make(chan struct{})
	client, ctx := dial(t, Options{}, func(p *peer) {
		_, id := p.hear("listen")
		p.say("ok " + id + " position=e:0.AAAAA")
		for number := 1; number <= 3; number++ {
			p.say(fmt.Sprintf("message a e:%d.AAAAA\n%d", number, number))
		}
		p.say("message a -\n0")
		p.say("pong position=e:3.AAAAA")
		close(behind)
		_, id = p.hear("listen")
		p.say("error " + id + ` E_BROKER_UNAVAILABLE` + "\n" + `{"message":"not now","retryable":true,"retryAfterMs":1}`)
		text, id := p.hear("listen")
		if !strings.Contains(text, "since=e:1.AAAAA") {
			t.Error(text)
		}
		p.say("ok " + id + " position=e:3.AAAAA recovered replayed=2")
		p.say("message a e:2.AAAAA replay\n2")
		p.say("message a e:3.AAAAA replay\n3")
	})
	listener, err := client.Listen(ctx, "a", ListenOptions{MaxWaitingMessages: 1})
	if err != nil {
		t.Fatal(err)
	}
	<-behind
	waitFor(t, client, func() bool { return client.live.count == 4 })
	var got []string
	for event, err := range listener.Events(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		switch event := event.(type) {
		case Gap:
			got = append(got, event.Reason)
		case Message:
			got = append(got, string(event.Payload.Data))
		}
		if len(got) == 4 {
			break
		}
	}
	if strings.Join(got, " ") != "1 slow-consumer 2 3" || listener.Position() != "e:3.AAAAA" {
		t.Error(got, listener.Position())
	}
}

func waitFor(t *testing.T, client *Client, isSo func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		client.mu.Lock()
		is := isSo()
		client.mu.Unlock()
		if is {
			return
		}
	}
	t.Fatal("it did not come")
}

func TestBusyMemberRefusesRequestsAndCountsMessages(t *testing.T) {
	busy := make(chan struct{})
	client, ctx := dial(t, Options{}, func(p *peer) {
		_, id := p.hear("listen")
		p.say("ok " + id)
		_, id = p.hear("listen")
		p.say("ok " + id)
		for range MaxRunningTasks + 1 {
			p.say("task g a a\n1")
		}
		// It has waited, and now there is room for one of these three.
		for range 3 {
			p.say("task g a a\n\"" + strings.Repeat("x", MaxWaitingTaskBytes*2/3) + `"`)
		}
		for number := range MaxRunningTasks {
			p.say(fmt.Sprintf("task g a a request=q%d within=60000\n1", number))
		}
		p.say("task g a a request=one-more within=60000\n1")
		if text, _ := p.hear("reply one-more error"); !strings.Contains(text, "E_RATE_LIMIT") {
			t.Error(text)
		}
		close(busy)
		for range MaxRunningTasks {
			p.hear("reply q")
		}
	})
	release := make(chan struct{})
	var handledCount atomic.Int32
	member, err := client.Work(ctx, "a", "g", func(context.Context, Task) error {
		<-release
		handledCount.Add(1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	responder, err := client.Respond(ctx, "a", "g", func(context.Context, Task) (any, error) { <-release; return 1, nil })
	if err != nil {
		t.Fatal(err)
	}
	<-busy
	if member.DroppedCount() != 2 || responder.DroppedCount() != 0 {
		t.Error(member.DroppedCount(), responder.DroppedCount())
	}
	close(release)
	waitFor(t, client, func() bool { return member.runningCount == 0 && responder.runningCount == 0 })
	if count := handledCount.Load(); count != MaxRunningTasks+2 || member.waitingBytes != 0 {
		t.Error(count, member.waitingBytes)
	}
	member.Close()
	<-member.Done()
}

// Symptom: of the messages whose publish was answered ok while a worker left, some were handled by nobody. Cause: what was
// on its way when it asked the server to leave was dropped.
func TestClosedMemberHandlesWhatIsOnItsWay(t *testing.T) {
	left := make(chan struct{})
	client, ctx := dial(t, Options{}, func(p *peer) {
		_, id := p.hear("listen")
		p.say("ok " + id)
		_, id = p.hear("unlisten")
		p.say("task g a a\n1")
		p.say("ok " + id)
		p.say("task g a a\n2")
		close(left)
	})
	taken := make(chan string, 2)
	member, err := client.Work(ctx, "a", "g", func(_ context.Context, task Task) error {
		taken <- string(task.Payload.Data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	member.Close()
	<-left
	if text := <-taken; text != "1" {
		t.Error(text)
	}
	waitFor(t, client, func() bool { return len(client.leaving) == 0 })
	select {
	case text := <-taken:
		t.Error(text)
	case <-time.After(50 * time.Millisecond):
	}
}

func TestLongTextIsCutBetweenCharacters(t *testing.T) {
	writer := &StreamWriter{client: &Client{limits: map[string]any{"maxPayloadBytes": 32.0}}, room: make(chan struct{})}
	text := "äääb\u0000cc"
	writer.waiting, writer.bytes = []string{text}, len(text)
	var got strings.Builder
	for len(writer.waiting) > 0 {
		content, _ := writer.take()
		var part string
		if err := content.Decode(&part); err != nil || len(content.Data) > 32 || strings.ContainsRune(part, '\uFFFD') {
			t.Fatal(string(content.Data), err)
		}
		got.WriteString(part)
	}
	if got.String() != text || writer.bytes != 0 {
		t.Error(got.String(), writer.bytes)
	}
}

func TestReaderTakesTheCloseOfAStreamWithManyWriters(t *testing.T) {
	reader := &StreamReader{info: StreamInfo{ID: "s", Status: StreamActive}, sequence: 3}
	message := Message{Stream: "s:4:close:mark", Payload: Payload{Data: []byte("end"), IsBinary: true}}
	part, isPart, _ := reader.take(message)
	if !isPart || part.Content != "end" || reader.Info().Status != StreamEnd {
		t.Error(part, reader.Info())
	}
}
