package webmq

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// The vectors of the protocol, which tell every client what is valid.
func vectors[T any](t *testing.T, name string) T {
	t.Helper()
	var vectors T
	text, err := os.ReadFile(filepath.Join("../../packages/client/vectors", name+".json"))
	if err == nil {
		err = json.Unmarshal(text, &vectors)
	}
	if err != nil {
		t.Fatal(err)
	}
	return vectors
}

type wireMessage struct {
	Name   string  `json:"name"`
	Text   *string `json:"text"`
	Base64 []byte  `json:"base64"`
	Code   string  `json:"code"`
}

func (w wireMessage) payload() Payload {
	if w.Text != nil {
		return Payload{Data: []byte(*w.Text)}
	}
	return Payload{Data: w.Base64, IsBinary: true}
}

func TestKeysAndPatterns(t *testing.T) {
	for name, check := range map[string]func(string) error{"keys": checkKey, "patterns": checkPattern} {
		all := vectors[struct{ Valid, Invalid []wireMessage }](t, name)
		for _, vector := range all.Valid {
			if err := check(*vector.Text); err != nil {
				t.Errorf("%s: %q: %v", name, *vector.Text, err)
			}
		}
		for _, vector := range all.Invalid {
			// A lone surrogate, which Go has not, is read as U+FFFD.
			isReplaced := strings.ContainsRune(*vector.Text, utf8.RuneError)
			if code := CodeOf(check(*vector.Text)); code != vector.Code && !isReplaced {
				t.Errorf("%s: %q: %q", name, *vector.Text, code)
			}
		}
		if check("\xff") == nil {
			t.Errorf("%s: what is not UTF-8 is accepted", name)
		}
	}
}

func TestMatching(t *testing.T) {
	for _, vector := range vectors[[]struct {
		Pattern          string
		Matches, Rejects []string
	}](t, "matching") {
		for _, key := range vector.Matches {
			if !matches(vector.Pattern, key) {
				t.Errorf("%s does not match %s", vector.Pattern, key)
			}
		}
		for _, key := range vector.Rejects {
			if matches(vector.Pattern, key) {
				t.Errorf("%s matches %s", vector.Pattern, key)
			}
		}
	}
}

func TestServerMessages(t *testing.T) {
	all := vectors[struct {
		Valid []struct {
			wireMessage
			Decoded struct {
				Verb, Key, Position, Group, Pattern, Reason, Request string
				Replayed                                             any
				Payload                                              *wireMessage
				Result                                               any
				Meta                                                 struct {
					UserID, ID, Stream string
					TimeMs             *int64
				}
			}
		}
		Invalid []wireMessage
	}](t, "server-messages")
	for _, vector := range all.Valid {
		message, err := decode(vector.payload().Data, vector.payload().IsBinary)
		want := vector.Decoded
		if err != nil || message.verb != want.Verb {
			t.Errorf("%s: %v", vector.Name, err)
			continue
		}
		if want.Payload != nil && (string(message.payload.Data) != string(want.Payload.payload().Data) ||
			message.payload.IsBinary != want.Payload.payload().IsBinary) {
			t.Errorf("%s: %q", vector.Name, message.payload.Data)
		}
		if count, isNumber := want.Replayed.(float64); isNumber && message.number("replayed") != int(count) {
			t.Errorf("%s: %v", vector.Name, message.options)
		}
		switch message.verb {
		case "message":
			got := messageOf(message)
			isReplay, _ := want.Replayed.(bool)
			if got.Key != want.Key || got.Position != want.Position || got.IsReplay != isReplay ||
				got.UserID != want.Meta.UserID || got.ID != want.Meta.ID || got.Stream != want.Meta.Stream ||
				want.Meta.TimeMs != nil && got.Time.UnixMilli() != *want.Meta.TimeMs {
				t.Errorf("%s: %+v", vector.Name, got)
			}
		case "task":
			if message.fields[0] != want.Group || message.fields[2] != want.Key || message.options["request"] != want.Request {
				t.Errorf("%s: %+v", vector.Name, message)
			}
		case "gap":
			if message.fields[0] != want.Pattern || message.fields[1] != want.Reason {
				t.Errorf("%s: %+v", vector.Name, message)
			}
		}
	}
	for _, vector := range all.Invalid {
		_, err := decode(vector.payload().Data, vector.payload().IsBinary)
		if CodeOf(err) != vector.Code {
			t.Errorf("%s: %v", vector.Name, err)
		}
	}
}

func TestCloseCodes(t *testing.T) {
	for _, vector := range vectors[[]struct {
		Code      int
		Reconnect bool
		Error     string
	}](t, "close-codes") {
		if reconnects(vector.Code) != vector.Reconnect {
			t.Errorf("%d: %v", vector.Code, reconnects(vector.Code))
		}
		name := (&connection{}).finalError(vector.Code).Code
		if !vector.Reconnect && vector.Error != "" && name != vector.Error {
			t.Errorf("%d: %s", vector.Code, name)
		}
	}
}
