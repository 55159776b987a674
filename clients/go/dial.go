package webmq

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
)

// Options of [Dial]. The zero value is right for a server without tokens.
type Options struct {
	// Token gives the present token. It is asked for each connection, again before a token expires, and again after it
	// has failed. Its context ends after 10 s. nil: the server asks for none. See [StaticToken].
	Token func(ctx context.Context) (string, error)
	// MaxPendingBytes bounds the publishes that wait for their answers, each with 256 bytes more. A publish beyond it
	// is refused with E_QUEUE_FULL. 0: 4 MiB.
	MaxPendingBytes int
	// OnStatus is told the status when it has changed, one call at a time. Changes that come while it runs are told as
	// one.
	OnStatus func(Status)
	// HTTPClient makes the handshakes: for proxies, certificates and cookies. nil: [http.DefaultClient]. Redirects are
	// not followed, unless its CheckRedirect does.
	HTTPClient *http.Client
	// Logger gets what belongs to no call, such as a failing handler. nil: [slog.Default].
	Logger *slog.Logger
}

// StaticToken returns a function for [Options.Token] that always gives this token.
func StaticToken(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

// Dial makes a client of the server at a url such as "wss://example.org/ws", and waits for its first connection, also
// for a server that does not run yet. ctx bounds this waiting alone: the client lives until [Client.Close].
//
// Errors: E_OPTION_INVALID, E_UNAUTHENTICATED, E_TOKEN_INVALID and others with which the server refuses this client for
// good; E_TIMEOUT when ctx ends, with its cause.
func Dial(ctx context.Context, url string, options Options) (*Client, error) {
	if err := checkURL(url); err != nil {
		return nil, err
	}
	client := &Client{
		options: options, log: cmp.Or(options.Logger, slog.Default()),
		status: StatusConnecting, changed: make(chan struct{}),
	}
	client.options.HTTPClient = withoutRedirects(options.HTTPClient)
	client.ctx, client.cancel = context.WithCancel(context.Background())
	client.requests = &requests{client: client, pending: map[string]*pendingRequest{}}
	maxBytes := cmp.Or(options.MaxPendingBytes, 4<<20)
	client.publishes = &publishes{client: client, maxBytes: maxBytes, sent: map[string]*Publishing{}}
	client.connection = &connection{client: client, url: url, wake: make(chan struct{}, 1), done: make(chan struct{})}
	var connecting context.Context
	connecting, client.connection.cancel = context.WithCancel(context.Background())
	if options.OnStatus != nil {
		go client.tellStatus()
	}
	go client.connection.run(connecting)
	if err := client.connected(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// withoutRedirects: whoever sends the client elsewhere is no WebMQ server, and the token is not for the other place.
func withoutRedirects(given *http.Client) *http.Client {
	client := *cmp.Or(given, http.DefaultClient)
	if client.CheckRedirect == nil {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return &client
}

func checkURL(text string) error {
	parsed, err := url.Parse(text)
	if err != nil {
		return newError("E_OPTION_INVALID", "url: %w", err)
	}
	if !slices.Contains([]string{"ws", "wss", "http", "https"}, parsed.Scheme) {
		return newError("E_OPTION_INVALID", "url: begin with ws:// or wss://")
	}
	return nil
}

func (c *Client) tellStatus() {
	for told := StatusConnecting; told != StatusClosed; {
		c.mu.Lock()
		status, changed := c.status, c.changed
		c.mu.Unlock()
		if status != told {
			told = status
			c.options.OnStatus(status)
		} else {
			<-changed
		}
	}
}
