package webmq

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// loaded takes the answer to `read` [P-18.5].
func (r *StreamReader) loaded(answer reply) (whole string, hasStream bool, err error) {
	var summary struct {
		Stream   string          `json:"stream"`
		Sequence int             `json:"sequence"`
		Status   string          `json:"status"`
		Meta     json.RawMessage `json:"meta"`
		Result   json.RawMessage `json:"result"`
		IsCut    bool            `json:"isCut"`
	}
	if len(answer.result) > 0 && json.Unmarshal(answer.result, &summary) != nil {
		return "", false, newError("E_MESSAGE_INVALID", "the server has described the stream %s in another way", r.key)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if summary.Stream == "" {
		if r.info.Status == StreamActive {
			r.end("lost", Payload{})
		}
		return "", false, nil
	}
	var content strings.Builder
	r.half = ""
	for _, message := range answer.messages {
		text, err := r.contentOf(message.Payload)
		if err != nil {
			return "", false, err
		}
		content.WriteString(text)
	}
	r.err = nil
	r.info = StreamInfo{
		ID: summary.Stream, Status: StreamActive, Meta: Payload{Data: summary.Meta}, IsCut: summary.IsCut,
	}
	r.sequence = summary.Sequence
	if summary.Status != "active" {
		content.WriteString(r.rest())
		r.end(summary.Status, Payload{Data: summary.Result})
	}
	return content.String(), true, nil
}

// streamKinds: a beat says nothing of the content, and others are of a later version.
var streamKinds = []string{"start", "append", "end", "fail", "stop", "lost", "close", "delete"}

// take takes a message of a stream [P-18.6].
func (r *StreamReader) take(message Message) (part StreamPart, isPart, isAgain bool) {
	fields := strings.SplitN(message.Stream, ":", 4)
	if len(fields) < 3 || !slices.Contains(streamKinds, fields[2]) {
		return part, false, false
	}
	id, kind := fields[0], fields[2]
	sequence, err := strconv.Atoi(fields[1])
	if err != nil {
		return part, false, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case id != r.info.ID:
		if kind != "start" || r.info.Status == StreamActive {
			return part, false, false
		}
		r.err, r.half = nil, ""
		r.info = StreamInfo{ID: id, Status: StreamActive, Meta: message.Payload}
		r.sequence = sequence
		return StreamPart{IsWhole: true}, true, false
	case sequence <= r.sequence:
		return part, false, false
	case sequence > r.sequence+1:
		return part, false, true
	case kind == "close":
		// The last append, and the end, of a stream with many writers [P-18.8].
		part.Content, err = r.contentOf(message.Payload)
		r.end("end", Payload{})
		isPart = part.Content != ""
	case kind != "append":
		r.end(kind, message.Payload)
	default:
		if part.Content, err = r.contentOf(message.Payload); err != nil {
			return part, false, true
		}
		isPart = part.Content != ""
	}
	r.sequence = sequence
	return part, isPart, false
}

func (r *StreamReader) end(status string, result Payload) {
	switch StreamStatus(status) {
	case StreamEnd, StreamStop:
		r.info.Status, r.info.Result = StreamStatus(status), result
	case StreamFail:
		r.info.Status, r.err = StreamFail, errorOfReply(result)
	default:
		r.info.Status, r.err = StreamLost, newError("E_STREAM_ENDED", "the stream has lost its writer")
	}
}

// contentOf returns the text behind the half of a character that came before, without one at its own end: JavaScript
// may cut between the two escapes of a character, and Go would read a U+FFFD for each.
func (r *StreamReader) contentOf(payload Payload) (string, error) {
	if payload.IsBinary {
		return string(payload.Data), nil
	}
	data := bytes.TrimSpace(payload.Data)
	if len(data) < 2 || data[0] != '"' || !json.Valid(data) {
		return "", newError("E_PAYLOAD_INVALID", "an append of the stream %s is no text", r.key)
	}
	text := r.half + string(data[1:len(data)-1])
	r.half = halfAtEnd(text)
	return unescaped(strings.TrimSuffix(text, r.half))
}

// rest returns what has no other half.
func (r *StreamReader) rest() string {
	text, _ := unescaped(r.half)
	r.half = ""
	return text
}

func unescaped(text string) (whole string, err error) {
	err = json.Unmarshal([]byte(`"`+text+`"`), &whole)
	return whole, err
}

var escapedHalf = regexp.MustCompile(`^\\u[dD][89abAB][0-9a-fA-F]{2}$`)

// halfAtEnd returns the escape of the first half of a character at the end of the text of a JSON string.
func halfAtEnd(text string) string {
	at := len(text) - len(`\ud83d`)
	if at < 0 || !escapedHalf.MatchString(text[at:]) {
		return ""
	}
	// Unless its backslash is itself escaped.
	if before := text[:at]; (len(before)-len(strings.TrimRight(before, `\`)))%2 != 0 {
		return ""
	}
	return text[at:]
}
