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

// requestTimeout bounds a request from its sending to the end of its response,
// watches excepted. It is what the API server itself allows; it matters when
// something in between swallows a request. Waiting for the client's own rate
// limit does not count.
const requestTimeout = 60 * time.Second

// Clients makes the client for one purpose. Each has a rate limit of its own,
// so that neither events nor one controller's burst delay the others, nor any
// of them the renewal of the lease.
type Clients func(purpose string) (kubernetes.Interface, error)

// ClientsFor returns the Clients that options ask for.
func ClientsFor(options *Options) (Clients, error) {
	config, err := configFrom(options.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = options.KubeAPIQPS, options.KubeAPIBurst
	config.ContentType = options.KubeAPIContentType
	config.AcceptContentTypes = options.KubeAPIContentType + "," + runtime.ContentTypeJSON
	// Endpoints are deprecated, and every request for them would say so.
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &timeoutTransport{next: next, limit: requestTimeout}
	})
	return func(purpose string) (kubernetes.Interface, error) {
		config := rest.CopyConfig(config)
		if purpose == leaderElectionClient {
			// A request for the lease must fail in time for another.
			config.Timeout = max(time.Second, options.LeaderElection.RenewDeadline/2)
		}
		client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, purpose))
		if err != nil {
			return nil, fmt.Errorf("making the client for %s: %w", purpose, err)
		}
		return client, nil
	}, nil
}

// configFrom says how to reach the API server: as a file says, or, without one,
// as every pod is told.
func configFrom(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("finding the API server: --kubeconfig is not given, and this is no pod: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading where the API server is (--kubeconfig=%s): %w", kubeconfig, err)
	}
	return config, nil
}

// timeoutTransport is a transport that gives up on requests that are not answered.
type timeoutTransport struct {
	next  http.RoundTripper
	limit time.Duration
}

// RoundTrip implements http.RoundTripper.
func (t *timeoutTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if watch := request.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		return t.next.RoundTrip(request)
	}
	ctx, cancel := context.WithTimeoutCause(request.Context(), t.limit,
		fmt.Errorf("%s %s was not answered within %s", request.Method, request.URL.Path, t.limit))
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

// WrappedRoundTripper lets client-go reach the transport below.
func (t *timeoutTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

type cancelOnClose struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *cancelOnClose) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}
