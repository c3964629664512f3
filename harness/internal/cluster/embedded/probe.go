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

// prober sends health check requests to components.
type prober struct {
	client *http.Client
	token  string // of the Admin role
}

// probeTimeout limits a single health check. A component that does not respond in time is unhealthy.
const probeTimeout = 5 * time.Second

func newProber(roots *x509.CertPool, token string) prober {
	return prober{token: token, client: &http.Client{
		Timeout: probeTimeout,
		// Keep-alive is disabled, so that each check also tests whether the component
		// accepts a new connection.
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
	}}
}

// probe returns nil if a GET request to the URL returns status 200.
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
