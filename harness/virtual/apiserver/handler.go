package apiserver

import (
	"net/http"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// withFilters adds those HTTP filters of kube-apiserver that the handlers need. The user of a
// request is the user in the request's context. Without one, it is the user admin of the group
// system:masters.
func withFilters(container *restful.Container) http.Handler {
	admin := &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		ctx := audit.WithAuditContext(r.Context())
		if _, known := request.UserFrom(ctx); !known {
			ctx = request.WithUser(ctx, admin)
		}
		container.Dispatch(w, r.WithContext(ctx))
	})
	return filters.WithRequestReceivedTimestamp(filters.WithRequestInfo(mux, resolver))
}
