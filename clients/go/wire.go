package webmq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Messages of the protocol `webmq.v1`, section 2: a header of one line and, for some verbs, a body.

type bodyKind int

const (
	noBody bodyKind = iota
	anyJSON
	objectBody
	payloadBody
)

// serverVerbs says how many fields are required, and what the body is.
var serverVerbs = map[string]struct {
	fieldCount int
	body       bodyKind
}{
	"welcome":  {0, objectBody},
	"ok":       {1, anyJSON},
	"error":    {2, objectBody},
	"message":  {2, payloadBody},
	"presence": {1, objectBody},
	"task":     {3, payloadBody},
	"reply":    {1, payloadBody},
	"ended":    {2, objectBody},
	"gap":      {2, noBody},
	"expiring": {1, noBody},
	"pong":     {0, noBody},
	"bye":      {1, noBody},
}

type serverMessage struct {
	verb   string
	fields []string
	// options by name; the value of one without is empty. It is nil if there are none.
	options map[string]string
	// payload is that of the verbs that have one; else its Data is the JSON of `ok`.
	payload Payload
	// body is the JSON of the verbs that have an object.
	body map[string]any
}

func (m *serverMessage) has(option string) bool {
	_, has := m.options[option]
	return has
}

func (m *serverMessage) number(option string) int {
	number, err := strconv.Atoi(m.options[option])
	if err != nil {
		return 0
	}
	return number
}

// decode reads a message of a server. Its errors are E_VERB_UNKNOWN and E_MESSAGE_INVALID: the client goes on [P-10.5].
// With the error of an answer comes what can be read of it.
func decode(data []byte, isBinary bool) (*serverMessage, error) {
	head, rest, hasBody := bytes.Cut(data, []byte("\n"))
	if !utf8.Valid(head) {
		return nil, newError("E_MESSAGE_INVALID", "the header is no UTF-8")
	}
	parts := strings.Split(string(head), " ")
	verb := parts[0]
	form, isKnown := serverVerbs[verb]
	if !isKnown {
		return nil, newError("E_VERB_UNKNOWN", "%.40q", verb)
	}
	invalid := func(reason string) (*serverMessage, error) {
		return nil, newError("E_MESSAGE_INVALID", "%s: %s", verb, reason)
	}
	count := form.fieldCount
	if verb == "bye" && len(parts) > 2 && isNumber(parts[2]) {
		count = 2
	}
	if len(parts) <= count {
		return invalid("a field is missing")
	}
	message := &serverMessage{verb: verb, fields: parts[1 : count+1]}
	for _, part := range parts[1:] {
		if part == "" {
			return invalid("a field is empty")
		}
	}
	for _, part := range parts[count+1:] {
		name, value, _ := strings.Cut(part, "=")
		if message.options == nil {
			message.options = map[string]string{}
		}
		message.options[name] = value
		if (name == "replayed" || name == "within" || name == "time") && !isNumber(value) {
			return invalid("an option is no number")
		}
	}
	if (verb == "bye" || verb == "expiring") && !isNumber(parts[1]) {
		return invalid("a field is no number")
	}
	switch form.body {
	case payloadBody:
		if !hasBody {
			return invalid("there is no payload")
		}
		message.payload = Payload{Data: rest, IsBinary: isBinary}
	case anyJSON:
		if hasBody && !json.Valid(rest) {
			_, err := invalid("the body is no JSON")
			return message, err
		}
		message.payload = Payload{Data: rest}
	case objectBody:
		if json.Unmarshal(rest, &message.body) != nil || !message.hasMembers() {
			_, err := invalid("the body is no object, or has not what it must")
			if verb == "error" {
				return message, err
			}
			return nil, err
		}
	}
	return message, nil
}

func (m *serverMessage) hasMembers() bool {
	for _, name := range neededMembers[m.verb] {
		if _, isText := m.body[name].(string); !isText {
			return false
		}
	}
	return m.body != nil
}

var neededMembers = map[string][]string{"welcome": {"protocol", "auth", "session"}, "error": {"message"}}

func isNumber(text string) bool {
	return len(text) > 0 && len(text) <= 15 && strings.Trim(text, "0123456789") == ""
}

// frame is an encoded message.
type frame struct {
	data     []byte
	isBinary bool
	// written is closed once it was written, or will not be; nil if nobody wants to know.
	written chan struct{}
}

// encode writes a message of a client. Parts that are empty are left out.
func encode(payload *Payload, parts ...string) frame {
	var data []byte
	for _, part := range parts {
		if part != "" && len(data) > 0 {
			data = append(data, ' ')
		}
		data = append(data, part...)
	}
	if payload == nil {
		return frame{data: data}
	}
	return frame{data: append(append(data, '\n'), payload.Data...), isBinary: payload.IsBinary}
}

func option(name, value string) string {
	if value == "" {
		return ""
	}
	return name + "=" + value
}

func numberOption(name string, value int64) string {
	if value == 0 {
		return ""
	}
	return fmt.Sprintf("%s=%d", name, value)
}

func flag(name string, isSet bool) string {
	if isSet {
		return name
	}
	return ""
}
