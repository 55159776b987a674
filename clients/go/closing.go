package webmq

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
)

const (
	maxRefusalBytes    = 64 << 10
	closedAbnormally   = 1006
	closedTokenExpired = 4009
	closedTokenInvalid = 4501
)

// finalErrors are those of close codes after which a client does not come again [P-10.1], where the server gives no
// reason.
var finalErrors = map[int]string{
	1002: "E_FRAME_INVALID", 1003: "E_PROTOCOL_VIOLATION", 1007: "E_UTF8_INVALID", 1009: "E_MESSAGE_TOO_LARGE",
	1010: "E_PROTOCOL_VIOLATION", closedTokenExpired: "E_TOKEN_EXPIRED", closedTokenInvalid: "E_TOKEN_INVALID",
	4502: "E_TOKEN_REVOKED", 4503: "E_DISCONNECTED_BY_OPERATOR", 4504: "E_CONNECTION_REFUSED",
}

// reconnects says whether a client comes again after a close code [P-10.1].
func reconnects(code int) bool {
	return finalErrors[code] == "" && (code < 4500 || code > 4999) || code == closedTokenExpired
}

func (c *connection) finalError(code int) *Error {
	if c.reason != nil {
		return c.reason
	}
	return newError(cmp.Or(finalErrors[code], "E_PROTOCOL_VIOLATION"), "the server closed with %d", code)
}

// finalRefusals are the codes with which a server refuses a handshake for good [P-1.4]: they are not retryable.
var finalRefusals = []string{
	"E_HANDSHAKE_INVALID", "E_SUBPROTOCOL_UNSUPPORTED", "E_ORIGIN_FORBIDDEN", "E_INSECURE", "E_PATH_NOT_FOUND",
	"E_HEADERS_TOO_LARGE",
}

// refusal is why WebMQ has refused the handshake for good; nil if it has not. A status without its body may be of a
// proxy, in front of a server that starts or is being replaced [P-1.7].
func refusal(response *http.Response) *Error {
	if response == nil || response.Body == nil {
		return nil
	}
	var body map[string]any
	text, err := io.ReadAll(io.LimitReader(response.Body, maxRefusalBytes))
	if err != nil || json.Unmarshal(text, &body) != nil {
		return nil
	}
	if code, isText := body["code"].(string); isText && slices.Contains(finalRefusals, code) {
		return errorOf(code, body)
	}
	return nil
}
