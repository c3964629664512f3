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

// prober asks components whether they are well.
type prober struct {
	client *http.Client
	token  string // the admin's
}

// probeDurationMax bounds one question: a component that hangs is not well.
const probeDurationMax = 5 * time.Second

func newProber(roots *x509.CertPool, token string) prober {
	return prober{token: token, client: &http.Client{
		Timeout: probeDurationMax,
		// No connection is kept: each question also asks whether one can be made.
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
	}}
}

// probe is nil when the URL answers 200.
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
