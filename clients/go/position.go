package webmq

import (
	"strconv"
	"strings"
)

// Positions [P-8.1] are `epoch:offset.fingerprint`, and opaque but for their order within an epoch. "" is none.

func epochAndOffset(position string) (string, int64) {
	at := strings.LastIndexByte(position, ':')
	if at < 0 {
		return "", -1
	}
	digits, _, _ := strings.Cut(position[at+1:], ".")
	offset, err := strconv.ParseInt(digits, 36, 64)
	if err != nil {
		return position[:at], -1
	}
	return position[:at], offset
}

// isAfter says whether a position is later than another one, or of another epoch: then it counts as new.
func isAfter(position, other string) bool {
	if other == "" {
		return true
	}
	epoch, offset := epochAndOffset(position)
	otherEpoch, otherOffset := epochAndOffset(other)
	return epoch != otherEpoch || offset > otherOffset
}

// isLater says whether a position is later than another one of the same epoch.
func isLater(position, other string) bool {
	epoch, offset := epochAndOffset(position)
	otherEpoch, otherOffset := epochAndOffset(other)
	return position != "" && other != "" && epoch == otherEpoch && offset > otherOffset
}
