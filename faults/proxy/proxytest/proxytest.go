// Package proxytest starts fault proxies in front of fake API servers, for tests.
package proxytest

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/faults/proxy"
)

// Start starts a TLS server that acts as the API server, and a fault proxy in front of it. The
// given handler answers the requests to the server. Start returns the proxy's interceptor, and
// the client configuration for the replica subject-0. The proxy and the server stop at the end
// of the test.
func Start(t *testing.T, handler http.HandlerFunc, recorder interceptor.Recorder, clock clock.WithTicker) (*interceptor.Interceptor, *rest.Config) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	i := interceptor.New(recorder, clock)
	p, err := proxy.Start(t.Context(), proxy.Options{
		Target:      target,
		TargetCA:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		Interceptor: i,
		Clock:       clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.WithoutCancel(t.Context())) })
	endpoint, err := p.Listen("subject-0")
	if err != nil {
		t.Fatal(err)
	}
	return i, &rest.Config{Host: endpoint.URL, TLSClientConfig: rest.TLSClientConfig{CAData: endpoint.CA}}
}
