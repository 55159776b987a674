package webmq

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Payload is the content of a message: JSON text, or bytes.
//
// Where a method takes a payload as any, a []byte is sent as it is, as a binary message; a Payload is passed on as it
// came; everything else becomes JSON, as by [json.Marshal] without the escapes for HTML.
type Payload struct {
	// Data is JSON text, or bytes in the format of the applications. It is empty if the message has no value: in a
	// state, that removes the key. Listeners share it: it MUST NOT be changed.
	Data []byte
	// IsBinary says that the message was published as bytes.
	IsBinary bool
}

// Decode decodes the JSON into the value that target points to. An empty payload leaves it as it is.
//
// It returns E_PAYLOAD_INVALID if the payload is binary, no JSON, or does not fit.
func (p Payload) Decode(target any) error {
	if p.IsBinary {
		return newError("E_PAYLOAD_INVALID", "the payload is binary: use Data")
	}
	if len(p.Data) == 0 {
		return nil
	}
	if err := json.Unmarshal(p.Data, target); err != nil {
		return newError("E_PAYLOAD_INVALID", "the payload does not decode: %w", err)
	}
	return nil
}

func payloadOf(value any) (Payload, error) {
	notUTF8 := newError("E_PAYLOAD_INVALID", "the text is not UTF-8: publish []byte")
	switch value := value.(type) {
	case Payload:
		if !value.IsBinary && !utf8.Valid(value.Data) {
			return Payload{}, notUTF8
		}
		return value, nil
	case []byte:
		return Payload{Data: value, IsBinary: true}, nil
	case string:
		if !utf8.ValidString(value) {
			return Payload{}, notUTF8
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return Payload{}, newError("E_PAYLOAD_INVALID", "the payload is not JSON: %w", err)
	}
	// A json.RawMessage, or what a json.Marshaler gives, is copied as it is. Servers close a connection that sends it.
	if !utf8.Valid(text.Bytes()) {
		return Payload{}, notUTF8
	}
	return Payload{Data: bytes.TrimSuffix(text.Bytes(), []byte("\n"))}, nil
}

// optionalPayload is empty for nil.
func optionalPayload(value any) (Payload, error) {
	if value == nil {
		return Payload{}, nil
	}
	return payloadOf(value)
}
