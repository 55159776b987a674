package webmq

import (
	"strings"
	"unicode/utf8"
)

const maxKeyBytes = 255

// checkKey returns E_KEY_INVALID unless it is a key [P-3.1].
func checkKey(key string) error {
	reason := defect(key)
	if reason == "" && strings.ContainsAny(key, "*#") {
		reason = "a key has no wildcards"
	}
	if reason != "" {
		return newError("E_KEY_INVALID", "key is not valid: %s", reason)
	}
	return nil
}

// checkPattern returns E_PATTERN_INVALID unless it is a pattern [P-3.3].
func checkPattern(pattern string) error {
	reason := defect(pattern)
	for word := range strings.SplitSeq(pattern, ".") {
		if reason == "" && len(word) > 1 && strings.ContainsAny(word, "*#") {
			reason = "a wildcard is a word of its own"
		}
	}
	if reason != "" {
		return newError("E_PATTERN_INVALID", "pattern is not valid: %s", reason)
	}
	return nil
}

func defect(text string) string {
	switch {
	case len(text) < 1 || len(text) > maxKeyBytes:
		return "it has 1 to 255 bytes"
	case !utf8.ValidString(text):
		return "it is not UTF-8"
	case strings.ContainsFunc(text, func(char rune) bool { return char <= 0x20 || char >= 0x7f && char <= 0x9f }):
		return "it has a space or a control character"
	}
	return ""
}

// matches says whether a pattern matches a key [P-3.4]. It takes at most the product of their words as steps.
func matches(pattern, key string) bool {
	words := strings.Split(key, ".")
	// Which prefixes of the key, by their number of words, the pattern so far matches.
	reached := make([]bool, len(words)+1)
	reached[0] = true
	for part := range strings.SplitSeq(pattern, ".") {
		if part == "#" {
			for at := 1; at <= len(words); at++ {
				reached[at] = reached[at] || reached[at-1]
			}
			continue
		}
		for at := len(words); at > 0; at-- {
			reached[at] = reached[at-1] && (part == "*" || part == words[at-1])
		}
		reached[0] = false
	}
	return reached[len(words)]
}

// checkValue refuses what would break a header: options are visible ASCII without spaces.
func checkValue(code, name, value string, maxBytes int) error {
	if len(value) > maxBytes || strings.ContainsFunc(value, func(char rune) bool { return char <= ' ' || char > '~' }) {
		return newError(code, "%s: at most %d visible ASCII characters", name, maxBytes)
	}
	return nil
}
