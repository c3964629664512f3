package interceptor

import (
	"net/http"
	"slices"
	"strings"
)

// hopByHop contains the HTTP headers that apply only to a single connection. The interceptor
// does not forward these headers.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// copyHeader copies the headers that an interceptor must forward. It omits the headers in
// hopByHop and the headers that the Connection header names.
func copyHeader(to, from http.Header) {
	for name, values := range from {
		if !slices.Contains(hopByHop, name) {
			to[name] = values
		}
	}
	for _, named := range from.Values("Connection") {
		for name := range strings.SplitSeq(named, ",") {
			to.Del(strings.TrimSpace(name))
		}
	}
}
