package cluster

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestUnavailable checks which errors of requests a user repeats.
func TestUnavailable(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("disk full"), false},
		{errors.New("unexpected EOF"), true},
		{apierrors.NewInternalError(errors.New("etcdserver: request timed out")), true},
		{apierrors.NewInternalError(errors.New(`failed calling webhook "a": failed to call webhook: connection refused`)), true},
		{apierrors.NewInternalError(errors.New(`failed calling webhook "a": failed to call webhook: the server could not find the requested resource`)), true},
		{apierrors.NewBadRequest("no"), false},
	} {
		if got := Unavailable(test.err); got != test.want {
			t.Errorf("Unavailable(%v) = %t, want %t", test.err, got, test.want)
		}
	}
}
