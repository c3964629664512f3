package workload

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
)

// TestRetryUnavailable verifies that steps repeat requests while the control plane is
// unavailable, and give up after a timeout. A failed request may have changed the object
// nevertheless.
func TestRetryUnavailable(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	const workload = `
  - create: {kind: ReplicaSet, name: web, replicas: 3}
  - scale: {kind: ReplicaSet, name: web, replicas: 7}
  - delete: {kind: ReplicaSet, name: web}
`
	tests := []struct {
		name string
		// applied is true if the API server executes the request and the response is lost.
		applied bool
		err     error
		times   int
		want    string // text that the error must contain
	}{
		{"refused", false, refused, 3, ""},
		{"applied-but-response-lost", true, apierrors.NewInternalError(errors.New("etcdserver: request timed out")), 1, ""},
		{"not-ready-yet", false, apierrors.NewForbidden(appsv1.Resource("replicasets"), "web", errors.New("not yet ready to handle request")), 2, ""},
		{"until-the-timeout", false, refused, 1 << 30, "the control plane was unavailable for 2m0s"},
		{"not-an-outage", false, apierrors.NewForbidden(appsv1.Resource("replicasets"), "web", errors.New("quota")), 1, "quota"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, recorded := fake.NewClientset(), records{}
				failed := map[string]int{}
				client.PrependReactor("*", "replicasets", func(action kubetesting.Action) (bool, runtime.Object, error) {
					if failed[action.GetVerb()]++; failed[action.GetVerb()] > test.times {
						return false, nil, nil
					}
					if test.applied {
						if _, _, err := kubetesting.ObjectReaction(client.Tracker())(action); err != nil {
							t.Error(err)
						}
					}
					return true, nil, test.err
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				err := Run(ctx, newEnv(client, &recorded), steps(t, workload))
				switch {
				case test.want == "" && err != nil:
					t.Error(err)
				case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
					t.Errorf("error %v; expected %s", err, test.want)
				}
			})
		})
	}
}
