package embedded

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// prober checks the health of control plane components with HTTPS requests to endpoints such as
// /readyz.
type prober struct {
	client *http.Client
	token  string // bearer token of the user with all permissions (role cluster.Admin)
}

// probeTimeout limits one request to a health endpoint. A component that does not respond within
// this time is unhealthy.
const probeTimeout = 5 * time.Second

// newProber returns a prober that trusts the certificate authorities in roots and authenticates
// with token.
func newProber(roots *x509.CertPool, token string) prober {
	return prober{token: token, client: &http.Client{
		Timeout: probeTimeout,
		// Without keep-alive, each health check also tests whether the component accepts a new
		// connection.
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
	}}
}

// probe sends a GET request to a URL and returns nil if the response has status 200. For another
// status, the error contains the status and the first 4 KiB of the response body.
func (p prober) probe(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return fmt.Errorf("GET %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
