package pods

import (
	"context"
	"fmt"
	"strings"
)

// Commands on the node use containerd's own client ctr, because crictl is not on every
// node image.

// pidOf is a shell function that prints the process ID of a container on the node. It
// prints nothing if the container does not run, and fails if containerd does not
// answer.
const pidOf = `
pid_of() {
	tasks=$(ctr --namespace k8s.io tasks ls) || return 1
	echo "$tasks" | while read -r id pid rest; do
		if [ "$id" = "$1" ]; then echo "$pid"; fi
	done
}
`

// followScript prints the log file $2 of container $1, without containerd's prefix of
// each line. It ends when the container's process has ended and the log is complete.
// Its exit status is then 0.
const followScript = pidOf + `
pid=$(pid_of "$1") || exit 1
{
	# containerd may write the last lines only after the process has ended.
	while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
	sleep 0.2
} &
tail --pid=$! --sleep-interval=0.05 --lines=+1 --follow=name --retry "$2" 2>/dev/null |
	sed --unbuffered --regexp-extended 's/^[^ ]+ (stdout|stderr) [FP] //'
pid=$(pid_of "$1") && [ -z "$pid" ]
`

// killScript sends the signal $1 to the processes of the containers in the other
// arguments. For KILL, it waits until the processes have ended.
const killScript = pidOf + `
signal=$1
shift
for container; do
	pid=$(pid_of "$container") || exit 1
	if [ -n "$pid" ]; then kill -s "$signal" "$pid" 2>/dev/null; fi
	while [ "$signal" = KILL ] && [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
done
exit 0
`

func shell(script string, args ...string) []string {
	return append([]string{"sh", "-c", script, "gauntlet"}, args...)
}

// signal sends a signal to the processes of the given containers. It ignores
// containers that do not run.
func signal(ctx context.Context, node Node, name string, containers ...string) error {
	if _, err := node.Exec(ctx, shell(killScript, append([]string{name}, containers...)...)...); err != nil {
		return fmt.Errorf("sending SIG%s to containers %s on %s: %w", name, strings.Join(containers, ", "), node.Name(), err)
	}
	return nil
}

// gone returns nil if no process of the container runs on the node any more, and an
// error otherwise.
func gone(ctx context.Context, node Node, container string) error {
	pid, err := node.Exec(ctx, shell(pidOf+`pid_of "$1"`, container)...)
	if err != nil {
		return err
	}
	if pid != "" {
		return fmt.Errorf("process %s on %s is still running", pid, node.Name())
	}
	return nil
}
