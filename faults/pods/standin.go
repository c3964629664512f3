package pods

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-gauntlet/gauntlet/harness/standin"
)

// errUnreachable means that a pod's stand-in, gauntlet's own container, did not answer. Either
// the container has exited or is restarting, or the pod's node is down or disconnected.
var errUnreachable = errors.New("the stand-in container did not answer")

// isUnreachable reports whether err wraps errUnreachable: the stand-in container did not answer.
func isUnreachable(err error) bool { return errors.Is(err, errUnreachable) }

// standinTimeout is the maximum duration of a request to a stand-in container. A container on a
// disconnected node never answers.
const standinTimeout = 5 * time.Second

// callStandin sends a request to a pod's stand-in container, through the pod's proxy subresource.
// The argument operation is a URL path of package standin, such as standin.Die.
func (c *churn) callStandin(ctx context.Context, pod *corev1.Pod, operation string) error {
	ctx, cancel := context.WithTimeout(ctx, standinTimeout)
	defer cancel()
	err := c.env.Admin.CoreV1().RESTClient().Post().
		Namespace(pod.Namespace).Resource("pods").Name(fmt.Sprintf("%s:%d", pod.Name, standin.Port)).
		SubResource("proxy").Suffix(operation).Do(ctx).Error()
	if apierrors.IsServiceUnavailable(err) || err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", errUnreachable, err)
	}
	return err
}
