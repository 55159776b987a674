package webmq

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What peers and servers send, and programs give, that is not as it should be. The conformance cases have more.

// Symptom: a proxy's 404 during a deploy ended workers, and redirects to themselves were followed without an end.
// Cause: any status of 4xx was final, and nothing bounded the redirects.
func TestOnlyWebMQRefusesForGood(t *testing.T) {
	var requestCount atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		count := requestCount.Add(1)
		if count == 1 {
			http.Redirect(writer, request, "/again", http.StatusFound)
			return
		}
		writer.WriteHeader(http.StatusNotFound)
		fmt.Fprint(writer, []string{"404 page", `{"code":"E_DRAIN"}`, `{"code":["x"]}`, "[1]"}[count%4])
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := Dial(ctx, server.URL, Options{}); CodeOf(err) != "E_TIMEOUT" || requestCount.Load() > 10 {
		t.Error(err, requestCount.Load())
	}
}

// Symptom: the server closed the connection with 1007, which ended the client. Cause: only a text itself was checked,
// not one that was JSON already.
func TestWhatIsNotUTF8FailsItsOwnPublish(t *testing.T) {
	circle := []any{nil}
	circle[0] = circle
	for index, value := range []any{
		"\xff", Payload{Data: []byte("\"\xff\"")}, json.RawMessage("\"\xff\""), func() {}, circle, json.Number("x"),
	} {
		if _, err := payloadOf(value); CodeOf(err) != "E_PAYLOAD_INVALID" {
			t.Error(index, err)
		}
	}
	if payload, err := payloadOf(map[string]string{"a": "\xff"}); err != nil || string(payload.Data) != `{"a":"\ufffd"}` {
		t.Error(string(payload.Data), err)
	}
}

// Symptom: memory grew with what a server sent. Cause: a replay was kept until all of its messages had come.
func TestAReplayIsBounded(t *testing.T) {
	client, ctx := dial(t, Options{}, func(p *peer) {
		_, id := p.hear("history")
		p.say("ok " + id + " replayed=999999999999999")
		_, id = p.hear("history")
		p.say("ok " + id + " replayed=100")
		for range 5 {
			p.say("message k - replay\n\"" + strings.Repeat("x", 15<<20) + `"`)
		}
	})
	for range 2 {
		if _, err := client.History(ctx, "k", HistoryOptions{}); CodeOf(err) != "E_MESSAGE_INVALID" {
			t.Error(err)
		}
	}
}

// Symptom: a call waited until its context ended. Cause: an answer that could not be read was dropped.
func TestAnAnswerThatCannotBeReadFailsItsRequest(t *testing.T) {
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	client, ctx := dial(t, Options{}, func(p *peer) {
		_, id := p.hear("history")
		p.say("ok " + id + "\n" + deep)
		_, id = p.hear("history")
		p.say("error " + id + " E_X\n" + deep)
	})
	for range 2 {
		if _, err := client.History(ctx, "k", HistoryOptions{}); CodeOf(err) != "E_MESSAGE_INVALID" {
			t.Error(err)
		}
	}
}

// Symptom: the program ended, or was kept busy. Cause: numbers of a server became durations and lengths as they came.
func TestNumbersOfAServerAreBounded(t *testing.T) {
	for _, value := range []any{-1.0, 0.0001, 1e308, "x", nil, 5.0} {
		client := Client{limits: map[string]any{"n": value}}
		if limit := client.limit("n", 7, 4); limit < 4 || limit > maxLimit {
			t.Error(value, limit)
		}
		err := errorOf("E_X", map[string]any{"retryAfterMs": value})
		if after := err.retryAfter(time.Second); after < minRetryInterval || after > time.Hour {
			t.Error(value, after)
		}
	}
}

func TestTextsOfAStreamAreNotCutInsideACharacter(t *testing.T) {
	writer := StreamWriter{client: &Client{limits: map[string]any{"maxPayloadBytes": 1.0}}, room: make(chan struct{})}
	writer.waiting, writer.bytes = []string{"a😀é", "😀"}, 11
	var written []string
	for len(writer.waiting) > 0 && len(written) < 10 {
		content, _ := writer.take()
		written = append(written, string(content.Data))
	}
	if !slices.Equal(written, []string{`"a"`, `"😀"`, `"é"`, `"😀"`}) {
		t.Error(written)
	}
}

// Symptom: readers got two U+FFFD for a character. Cause: JavaScript had cut an append between its two escapes.
func TestHalvesOfACharacterAreJoined(t *testing.T) {
	reader := StreamReader{}
	whole := ""
	for _, text := range []string{`a\ud83d`, `\ude00b`, ` "c\\ud83d" `, `\uD83D`, `\uDE00`, `\\\ud83d`, `\ude00`, `\ud83d`} {
		if !strings.Contains(text, `"`) {
			text = `"` + text + `"`
		}
		content, err := reader.contentOf(Payload{Data: []byte(text)})
		if err != nil || strings.Contains(content, "\ufffd") {
			t.Error(text, content, err)
		}
		whole += content
	}
	if whole += reader.rest(); whole != `a😀bc\ud83d😀\😀`+"\ufffd" || reader.rest() != "" {
		t.Error(whole)
	}
	for _, odd := range []string{"5", "", `"`, `"a`, "[]"} {
		if _, err := reader.contentOf(Payload{Data: []byte(odd)}); CodeOf(err) != "E_PAYLOAD_INVALID" {
			t.Error(odd, err)
		}
	}
}
