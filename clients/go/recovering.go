package webmq

import (
	"cmp"
	"time"
)

const (
	// Pages without news that are asked for at once. A server that says `more` for ever must not keep the program
	// busy.
	freePages      = 16
	emptyPagePause = 100 * time.Millisecond
)

// livePosition is the last live position of the connection. It also moves the listens that had no message of their own
// [P-8.7].
type livePosition struct {
	count    uint64
	position string
}

func (l *livePosition) take(position string) {
	if position != "" && position != "-" {
		l.count++
		l.position = position
	}
}

func (s *subscription) resumePosition() string {
	live := &s.client.live
	if s.isLive && !s.isBehind && live.count > s.liveCount && isLater(live.position, s.cursor) {
		return live.position
	}
	return s.cursor
}

func (s *subscription) ask(continues bool, start ...string) {
	parts := append(append([]string{s.pattern}, start...), s.options...)
	s.continues = continues
	s.asked = s.client.requests.ask(s.take, forgotten, nil, "listen", parts...)
}

// restart asks without a position: what came meanwhile is missing.
func (s *subscription) restart(reason string) {
	s.cursor, s.dueGap = "", reason
	s.ask(false)
}

// take takes an answer, and in the same moment all of its replay.
func (s *subscription) take(answer reply) {
	if s.isClosed || s.asked != answer.id {
		return
	}
	s.asked = ""
	if answer.err != nil {
		s.refused(answer.err)
		return
	}
	_, isState := answer.options["state"]
	_, isRecovered := answer.options["recovered"]
	reason := cmp.Or(answer.options["gap"], s.dueGap)
	s.dueGap = ""
	if s.state != nil && !isState {
		s.end(newError("E_UNSUPPORTED", "the server does not know state topics"))
		s.leave()
		return
	}
	// Without `recovered` and without a gap, the messages in between count as lost.
	if reason == "" && s.continues && !isRecovered {
		reason = "no-history"
	}
	if reason != "" && s.state != nil && s.continues {
		s.state.asksWhole, s.isLive, s.nextPage = true, false, ""
		s.pause()
		return
	}
	if reason != "" {
		s.put(Gap{reason})
	}
	if s.state != nil {
		s.state.begins(s)
	}
	for _, message := range answer.messages {
		s.put(message)
	}
	position := answer.options["position"]
	if s.emptyPages++; len(answer.messages) > 0 && (position == "" || isAfter(position, s.cursor)) {
		s.emptyPages = 0
	}
	if position != "" {
		s.cursor = position
		if s.handled == "" && len(s.queue) == 0 {
			s.handled = position
		}
	}
	s.settle()
	if _, hasMore := answer.options["more"]; hasMore && s.cursor != "" {
		s.nextPage = s.cursor
		if s.emptyPages > freePages {
			s.pause()
		} else if len(s.queue) == 0 {
			s.drained()
		}
		return
	}
	s.isBehind = false
	s.isLive, s.wasLive = true, true
	s.liveCount = s.client.live.count
	if s.state != nil {
		s.state.ends(s)
	}
}

func (s *subscription) refused(err *Error) {
	switch {
	case err.Code == "E_POSITION_INVALID" && s.continues:
		if s.state != nil {
			s.cursor = ""
			s.askWhole()
			return
		}
		s.restart("position-invalid")
	case err.Retryable:
		s.client.later(err, s.again)
	default:
		s.end(err)
	}
}

func (s *subscription) pause() {
	s.isPausing = true
	s.client.after(emptyPagePause, s.again)
}

// again asks after a refusal that may pass, or a pause.
func (s *subscription) again() {
	s.isPausing = false
	switch {
	case s.asked != "" || s.isClosed:
	case !s.isLive && s.nextPage == "":
		s.opened()
	case len(s.queue) == 0:
		s.drained()
	}
}

// drained: the reader has taken everything. Now there is room for what was left out.
func (s *subscription) drained() {
	if s.asked != "" || s.isPausing || !s.client.requests.isLive {
		return
	}
	if page := s.nextPage; page != "" {
		s.nextPage = ""
		s.ask(true, option("since", page))
	} else if s.isBehind && s.isLive {
		s.ask(true, option("since", s.cursor))
	}
}
