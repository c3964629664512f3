package interceptor

import (
	"net/http"
	"slices"
	"strings"
)

// hopByHop contains the HTTP headers that are valid for a single connection only. The
// interceptor does not forward them.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// copyHeader copies the headers that an interceptor must forward. It omits those in hopByHop
// and those that the header Connection names.
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
