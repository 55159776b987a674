package webmq

import (
	"context"
	"iter"
	"maps"
	"strings"
)

// StateOptions of [Client.State].
type StateOptions struct {
	// Overflow is what the server may leave out: [OverflowLatest] fits. "": the server decides.
	Overflow Overflow
	// Meta asks who published each value and when.
	Meta bool
	// MaxWaitingMessages and MaxWaitingBytes as in [ListenOptions].
	MaxWaitingMessages int
	MaxWaitingBytes    int
}

// Change is what changed in a [State].
type Change struct {
	// Values has the new message of each key that has one.
	Values map[string]Message
	// Removed has the keys that are gone.
	Removed []string
	// IsWhole says that Values is everything: keys that are not in it are gone, too.
	IsWhole bool
}

// State has the last message of each key that a pattern matches, from [Client.State] until Close. There are no gaps:
// after one, the whole state comes anew.
type State struct {
	*subscription
	values  map[string]Message
	loading map[string]Message
}

// State follows the last message of each key that a pattern matches, for keys that the server retains. It returns once
// the server has accepted it. A payload that is empty removes a key.
//
// Errors: those of [Client.Listen], and E_UNSUPPORTED if the server does not retain all of these keys.
func (c *Client) State(ctx context.Context, pattern string, options StateOptions) (*State, error) {
	listener := c.subscription(pattern, options.MaxWaitingMessages, options.MaxWaitingBytes)
	listener.options = []string{"state", option("overflow", string(options.Overflow)), flag("meta", options.Meta)}
	listener.state = &stateListen{asksWhole: true, tellsWhole: true}
	if err := listener.begin(ctx); err != nil {
		return nil, err
	}
	return &State{subscription: listener, values: map[string]Message{}}, nil
}

// Changes returns what changes, in order, beginning with the whole. Use it with range, in one goroutine. It ends as
// [Listener.Events] does.
func (s *State) Changes(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for {
			event, err := s.next(ctx)
			if err != nil {
				yield(Change{}, err)
				return
			}
			if event == nil {
				return
			}
			if change, isChange := s.apply(event); isChange && !yield(change, nil) {
				return
			}
		}
	}
}

// Values returns all values as of the last change that the iteration gave: to be called by the goroutine that iterates.
func (s *State) Values() map[string]Message { return maps.Clone(s.values) }

func (s *State) apply(event Event) (Change, bool) {
	switch event := event.(type) {
	case wholeMark:
		if !event.isEnd {
			s.loading = map[string]Message{}
			return Change{}, false
		}
		s.values, s.loading = s.loading, nil
		return Change{Values: s.Values(), IsWhole: true}, true
	case Message:
		// Of a stream, only the whole text is part of the state [P-18.9].
		if event.Stream != "" && !strings.HasSuffix(event.Stream, ":text") {
			return Change{}, false
		}
		target := s.values
		if s.loading != nil {
			target = s.loading
		}
		_, had := target[event.Key]
		if len(event.Payload.Data) == 0 {
			delete(target, event.Key)
			return Change{Removed: []string{event.Key}}, had && s.loading == nil
		}
		target[event.Key] = event
		return Change{Values: map[string]Message{event.Key: event}}, s.loading == nil
	}
	return Change{}, false
}

// wholeMark stands in the queue: what follows, up to the one that isEnd, is the whole state.
type wholeMark struct{ isEnd bool }

func (wholeMark) isEvent() {}

// stateListen is what a subscription keeps of a state [P-17.5].
type stateListen struct {
	// asksWhole: the whole state is being asked for; tellsWhole: nothing of it has come yet.
	asksWhole  bool
	tellsWhole bool
}

func (s *subscription) askWhole() {
	s.state.asksWhole, s.state.tellsWhole = true, true
	s.isLive, s.isBehind, s.nextPage = false, false, ""
	s.ask(false)
}

func (t *stateListen) begins(s *subscription) {
	if t.tellsWhole {
		t.tellsWhole = false
		s.put(wholeMark{})
	}
}

func (t *stateListen) ends(s *subscription) {
	if t.asksWhole {
		t.asksWhole = false
		s.put(wholeMark{isEnd: true})
	}
}
