package manager

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// requestTimeout is the maximum time from sending a request to the end of its response. It
// equals the API server's default timeout. Without requestTimeout, a request that the network
// drops would block a worker forever.
//
// The timeout does not apply to watches. It does not include the time that a request waits in
// the client's rate limiter.
const requestTimeout = 60 * time.Second

// Clients returns a client for the given purpose, such as "events" or the name of a controller.
// Each client has its own rate limiter. Events and the requests of one controller therefore do
// not delay other controllers or the renewal of the lease.
type Clients func(purpose string) (kubernetes.Interface, error)

// ClientsFor returns a Clients function whose clients use the kubeconfig, the limits and the
// content type in options.
func ClientsFor(options *Options) (Clients, error) {
	config, err := configFrom(options.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return ClientsFrom(config, options), nil
}

// ClientsFrom returns a Clients function like ClientsFor, but its clients use the given config. The
// kubeconfig in options is ignored.
func ClientsFrom(config *rest.Config, options *Options) Clients {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = options.KubeAPIQPS, options.KubeAPIBurst
	config.ContentType = options.KubeAPIContentType
	config.AcceptContentTypes = options.KubeAPIContentType + "," + runtime.ContentTypeJSON
	// The Endpoints API is deprecated, so every response would log a warning.
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &timeoutTransport{next: next, limit: requestTimeout}
	})
	return func(purpose string) (kubernetes.Interface, error) {
		config := rest.CopyConfig(config)
		if purpose == leaderElectionClient {
			// The timeout must leave enough time to try again before the lease expires.
			config.Timeout = max(time.Second, options.LeaderElection.RenewDeadline/2)
		}
		client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, purpose))
		if err != nil {
			return nil, fmt.Errorf("creating the client for %s: %w", purpose, err)
		}
		return client, nil
	}
}

// configFrom returns the client configuration in a kubeconfig file. If the argument kubeconfig
// is empty, it returns the in-cluster configuration.
func configFrom(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("loading the in-cluster configuration; outside a cluster, set --kubeconfig: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("loading --kubeconfig=%s: %w", kubeconfig, err)
	}
	return config, nil
}

// timeoutTransport is an HTTP transport that limits the duration of every request except
// watches.
type timeoutTransport struct {
	next  http.RoundTripper
	limit time.Duration
}

// RoundTrip sends a request, and aborts it after the limit unless it is a watch. It implements
// http.RoundTripper.
func (t *timeoutTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if watch := request.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		return t.next.RoundTrip(request)
	}
	ctx, cancel := context.WithTimeoutCause(request.Context(), t.limit,
		fmt.Errorf("%s %s timed out after %s", request.Method, request.URL.Path, t.limit))
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
		cancel()
		return nil, err
	}
	response.Body = &cancelOnClose{response.Body, cancel}
	return response, nil
}

// WrappedRoundTripper returns the transport that t uses, t.next. client-go calls it to find the
// innermost transport.
func (t *timeoutTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// cancelOnClose is a response body whose method Close also cancels the context of the request.
// Canceling the context stops the timer of requestTimeout.
type cancelOnClose struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close closes the response body and cancels the context of the request.
func (c *cancelOnClose) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}
