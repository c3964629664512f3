package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// discard is a Recorder that drops every record, so that the benchmarks do not measure the
// history.
type discard struct{}

func (discard) Append(history.Record) {}

// benchmarkDirectAndProxy runs a benchmark twice: directly against the server, and through a fault
// proxy. The difference between the results is the cost of the proxy.
func benchmarkDirectAndProxy(b *testing.B, handler http.Handler, run func(b *testing.B, client *http.Client, address string)) {
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	target, err := url.Parse(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	proxy, err := Start(b.Context(), Options{Target: target, TargetCA: ca, Interceptor: interceptor.New(discard{}, clock.RealClock{}), Clock: clock.RealClock{}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = proxy.Stop(context.WithoutCancel(b.Context())) }()
	endpoint, err := proxy.Listen("subject-0")
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range []struct {
		name, address string
		ca            []byte
	}{{"direct", server.URL, ca}, {"proxy", endpoint.URL, endpoint.CA}} {
		b.Run(path.name, func(b *testing.B) {
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(path.ca)
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
			defer transport.CloseIdleConnections()
			b.ReportAllocs()
			run(b, &http.Client{Transport: transport}, path.address)
		})
	}
}

const protobufType = "application/vnd.kubernetes.protobuf"

// BenchmarkCreate measures one create request of a pod in protobuf.
func BenchmarkCreate(b *testing.B) {
	accept := &http.Request{Header: http.Header{"Accept": {protobufType}}}
	body, _ := encoded(accept, pod("web-1", 3))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", protobufType)
		_, _ = w.Write(body)
	})
	benchmarkDirectAndProxy(b, handler, func(b *testing.B, client *http.Client, address string) {
		for b.Loop() {
			response, err := client.Post(address+"/api/v1/namespaces/ns/pods", protobufType, strings.NewReader(string(body)))
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	})
}

// BenchmarkEvent measures one watch event of a pod in protobuf. The server sends the events
// without pauses.
func BenchmarkEvent(b *testing.B) {
	accept := &http.Request{Header: http.Header{"Accept": {protobufType}}}
	event := watchEvent(accept, history.Modified, pod("web-1", 3))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", protobufType+";stream=watch")
		for r.Context().Err() == nil {
			_, _ = w.Write(event)
			w.(http.Flusher).Flush()
		}
	})
	benchmarkDirectAndProxy(b, handler, func(b *testing.B, client *http.Client, address string) {
		response, err := client.Get(address + "/api/v1/pods?watch=true")
		if err != nil {
			b.Fatal(err)
		}
		defer response.Body.Close()
		buffer := make([]byte, len(event))
		for b.Loop() {
			if _, err := io.ReadFull(response.Body, buffer); err != nil {
				b.Fatal(err)
			}
		}
	})
}
