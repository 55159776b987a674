package webmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// maxErrorTextBytes bounds the text of an error, which comes from another program.
const maxErrorTextBytes = 500

// Error is what the server, or this client, has refused. Use [CodeOf], or [errors.As], to get at it.
type Error struct {
	// Code is for programs, such as "E_FORBIDDEN". [Error.Docs] explains it.
	Code string
	// Message is for people. It has at most 500 bytes, without control characters.
	Message string
	// Retryable says that the same call may succeed later without any change.
	Retryable bool
	// RetryAfter is how long the same call is refused again; 0 if that is not known.
	RetryAfter time.Duration

	cause error
}

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Docs returns a link to the cause and the fix.
func (e *Error) Docs() string {
	return "https://github.com/webmq/webmq/blob/main/docs/errors.md#" + strings.ToLower(e.Code)
}

// Unwrap returns the cause: of this client's own errors, such as a context that has ended, or nil.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf returns the code of an [Error] in the chain of err, and "" if there is none.
func CodeOf(err error) string {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.Code
	}
	return ""
}

func newError(code, format string, values ...any) *Error {
	err := fmt.Errorf(format, values...)
	return &Error{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

func retryableError(code, format string, values ...any) *Error {
	err := newError(code, format, values...)
	err.Retryable = true
	return err
}

// contextError is returned when a context ends before the answer.
func contextError(ctx context.Context, what string) error {
	return retryableError("E_TIMEOUT", "%s: %w", what, context.Cause(ctx))
}

// errorOf returns the error that the JSON of an `error` or of a reply says.
func errorOf(code string, body map[string]any) *Error {
	text, isText := body["message"].(string)
	if !isText {
		text = "no reason given"
	}
	retryable, _ := body["retryable"].(bool)
	afterMs, _ := body["retryAfterMs"].(float64)
	return &Error{Code: code, Message: bounded(text), Retryable: retryable, RetryAfter: milliseconds(afterMs)}
}

func bounded(text string) string {
	if len(text) > maxErrorTextBytes {
		text = text[:maxErrorTextBytes]
	}
	return strings.Map(func(char rune) rune {
		if unicode.IsControl(char) {
			return ' '
		}
		return char
	}, strings.ToValidUTF8(text, ""))
}

func milliseconds(count float64) time.Duration {
	return time.Duration(min(max(count, 0), 3_600_000) * float64(time.Millisecond))
}

// isCode says whether a text is an error code [P-10.4]: others' texts are not to be trusted.
func isCode(text string) bool {
	rest, hasPrefix := strings.CutPrefix(text, "E_")
	isOther := func(char rune) bool { return (char < 'A' || char > 'Z') && (char < '0' || char > '9') && char != '_' }
	return hasPrefix && len(rest) >= 1 && len(rest) <= 40 && !strings.ContainsFunc(rest, isOther)
}
