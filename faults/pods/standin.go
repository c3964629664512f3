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

// errUnreachable is why a stand-in could not be told anything: it has ended, is being
// started again, or its node is lost.
var errUnreachable = errors.New("its container is out of reach")

func isUnreachable(err error) bool { return errors.Is(err, errUnreachable) }

// standinTimeout bounds the way to a pod and back: on a node that is cut off nobody
// answers.
const standinTimeout = 5 * time.Second

// callStandin tells the stand-in that is a pod's container what to be, by way of the API
// server, which has a way to every pod.
func (c *churn) callStandin(ctx context.Context, pod *corev1.Pod, what string) error {
	ctx, cancel := context.WithTimeout(ctx, standinTimeout)
	defer cancel()
	err := c.env.Admin.CoreV1().RESTClient().Post().
		Namespace(pod.Namespace).Resource("pods").Name(fmt.Sprintf("%s:%d", pod.Name, standin.Port)).
		SubResource("proxy").Suffix(what).Do(ctx).Error()
	if apierrors.IsServiceUnavailable(err) || err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", errUnreachable, err)
	}
	return err
}
