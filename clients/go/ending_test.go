package webmq

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Symptom: the reply to one request answered another. Cause: ids of another node are as those of the first.
func TestAReplyGoesToTheConnectionThatAsked(t *testing.T) {
	release, cut := make(chan struct{}), make(chan struct{})
	replied, answered := make(chan struct{}), make(chan struct{})
	client, ctx := dial(t, Options{}, func(p *peer) {
		_, id := p.hear("listen")
		p.say("ok " + id)
		if p.number == 1 {
			p.say("task g ask ask request=q1 within=60000\n1")
			<-cut
			p.socket.CloseNow()
			return
		}
		<-replied
		p.say("task g ask ask request=q2 within=60000\n2")
		if text, _ := p.hear("reply"); text != "reply q2\n2" {
			t.Errorf("%q", text)
		}
		close(answered)
	})
	handle := func(_ context.Context, task Task) (any, error) {
		if string(task.Payload.Data) == "1" {
			<-release
		}
		return task.Payload, nil
	}
	member, err := client.Respond(ctx, "ask", "g", handle)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, client, func() bool { return member.runningCount == 1 })
	close(cut)
	waitFor(t, client, func() bool { return client.connection.isLive && client.requests.connectionCount == 2 })
	close(release)
	waitFor(t, client, func() bool { return member.runningCount == 0 })
	close(replied)
	select {
	case <-answered:
	case <-ctx.Done():
		t.Error("nothing was answered")
	}
}

// Symptom: a worker that was closed lost messages that the server had handed to it. Cause: it was forgotten before the
// server knew.
func TestWhatComesBeforeTheEndOfAMembershipIsHandled(t *testing.T) {
	handled := make(chan string, 2)
	client, ctx := dial(t, Options{}, func(p *peer) {
		_, id := p.hear("listen")
		p.say("ok " + id)
		_, left := p.hear("unlisten")
		p.say("task g jobs jobs\n1")
		_, id = p.hear("listen")
		p.say("ok " + left)
		p.say("ok " + id)
		p.say("task g jobs jobs\n2")
	})
	work := func(_ context.Context, task Task) error { handled <- string(task.Payload.Data); return nil }
	member, err := client.Work(ctx, "jobs", "g", work)
	if err != nil {
		t.Fatal(err)
	}
	member.Close()
	member.Close()
	<-member.Done()
	expect := func(payload string) {
		select {
		case got := <-handled:
			if got != payload {
				t.Error(got)
			}
		case <-ctx.Done():
			t.Fatal("nothing was handled")
		}
	}
	expect("1")
	again, err := client.Work(ctx, "jobs", "g", work)
	if err != nil {
		t.Fatal(err)
	}
	expect("2")
	again.Close()
}

// Symptom: streams of a user with limits of its own were told as lost. Cause: the lease, as all that the token did not
// say, was forgotten.
func TestLimitsOfATokenLeaveTheOthers(t *testing.T) {
	client, _ := dial(t, Options{}, func(*peer) {})
	client.mu.Lock()
	defer client.mu.Unlock()
	for index, text := range []string{
		"welcome\n" + `{"protocol":"webmq.v1","auth":"done","session":"s","limits":{"streamLeaseMs":3000,"maxWords":8}}`,
		"ok login\n" + `{"limits":{"maxWords":4}}`,
		"ok login\n{}",
	} {
		message, err := decode([]byte(text), false)
		if err != nil {
			t.Fatal(err)
		}
		client.connection.take(message)
		if lease, words := client.limit("streamLeaseMs", 1, 1), client.limit("maxWords", 1, 1); lease != 3_000 ||
			words != []int{8, 4, 8}[index] {
			t.Error(index, lease, words)
		}
	}
}

func TestReaderIgnoresMarksAndKindsOfLaterVersions(t *testing.T) {
	reader := &StreamReader{info: StreamInfo{ID: "s", Status: StreamActive}, sequence: 0}
	text := Payload{Data: []byte(`"x"`)}
	if part, isPart, _ := reader.take(Message{Stream: "s:1:append:mark:s", Payload: text}); !isPart || part.Content != "x" {
		t.Error(part)
	}
	if _, isPart, isAgain := reader.take(Message{Stream: "s:2:pause"}); isPart || isAgain {
		t.Error("a kind of a later version")
	}
	if reader.Info().Status != StreamActive {
		t.Error(reader.Info())
	}
}

// Symptom: the last calls of a writer whose client was closed failed with E_TIMEOUT. Cause: its context ends with the
// client, also while it waits to write again.
func TestAWriterEndsWithItsClient(t *testing.T) {
	refused := make(chan struct{})
	client, ctx := dial(t, Options{}, func(p *peer) {
		for verb := range strings.SplitSeq("stream listen", " ") {
			_, id := p.hear(verb)
			p.say("ok " + id)
		}
		_, id := p.hear("stream")
		p.say("error " + id + " E_RATE_LIMIT\n" + `{"message":"later","retryable":true,"retryAfterMs":60000}`)
		close(refused)
	})
	writer, err := client.OpenStream(ctx, "k", StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Append(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	<-refused
	time.Sleep(50 * time.Millisecond)
	client.Close()
	if err := writer.End(ctx, nil); CodeOf(err) != "E_CLOSED" {
		t.Error(err)
	}
}

// Symptom: one time in two, a publish of a program that ends ended it by a panic. Cause: what is refused at once belongs
// to no queue from which it could be withdrawn.
func TestARefusedPublishMayBeGivenUp(t *testing.T) {
	client, _ := dial(t, Options{}, func(*peer) {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 64 {
		if _, err := client.Publish(ctx, "no key", 1); CodeOf(err) != "E_KEY_INVALID" {
			t.Fatal(err)
		}
	}
}

// Symptom: a log of 10,000 lines a second. Cause: one for each message that others had sent.
func TestWhatOthersCauseIsLoggedOnceASecond(t *testing.T) {
	var told strings.Builder
	client := &Client{log: slog.New(slog.NewTextHandler(&told, nil)), ctx: t.Context()}
	for range 100 {
		client.logPaced(0, "one")
		client.logPaced(0, "another")
	}
	if count := strings.Count(told.String(), "\n"); count != 2 {
		t.Error(count)
	}
}
