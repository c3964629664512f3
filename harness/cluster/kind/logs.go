package kind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"
	kindlog "sigs.k8s.io/kind/pkg/log"
)

// Bounds on writing logs. They are for who wants to know more, and must not keep
// a cluster from being removed.
const (
	logsWithin    = 20 * time.Second
	kubeletLines  = 15
	allLogsSubdir = "kind"
)

// components are the parts of the control plane that have a log of their own.
var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// writeLogs writes the logs of the components and kubelets; of a broken cluster
// all that there are besides. What cannot be had is left out.
func (c *Cluster) writeLogs(ctx context.Context, all bool) {
	ctx, cancel := context.WithTimeout(ctx, logsWithin)
	defer cancel()
	var writes errgroup.Group
	for _, component := range components {
		writes.Go(func() error {
			// Of a container that was started again the earlier logs too, in order.
			script := "cat $(ls -tr /var/log/pods/kube-system_" + component + "-*/*/*.log)"
			return c.writeLog(ctx, component, c.nodes[0], "sh", "-c", script)
		})
	}
	for _, node := range c.nodes {
		writes.Go(func() error {
			return c.writeLog(ctx, "kubelet-"+strings.TrimPrefix(node, c.name+"-"), node, "journalctl", "--unit", "kubelet", "--no-pager")
		})
	}
	_ = writes.Wait()
	if all {
		_ = c.ExportLogs(ctx, filepath.Join(c.logDir, allLogsSubdir))
	}
}

// writeLog writes what a command on a node prints to a log file. A node without
// such a log gets no file.
func (c *Cluster) writeLog(ctx context.Context, name, node string, command ...string) error {
	out, err := c.engine.run(ctx, logsWithin, append([]string{"exec", node}, command...)...)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.logDir, name+".log"), []byte(out+"\n"), 0o600)
}

// ExportLogs writes all that kind can find out about the cluster into a
// directory. It gives up when ctx ends.
func (c *Cluster) ExportLogs(ctx context.Context, dir string) error {
	exported := make(chan error, 1)
	go func() {
		provider := kindcluster.NewProvider(kindcluster.ProviderWithDocker())
		exported <- provider.CollectLogs(c.name, dir)
	}()
	select {
	case err := <-exported:
		return explain(err)
	case <-ctx.Done():
		return fmt.Errorf("exporting the logs of %s: %w", c.name, context.Cause(ctx))
	}
}

// kubeletLog is the end of the log of a node's kubelet, empty if it has none.
func (c *Cluster) kubeletLog(ctx context.Context, node string) string {
	out, err := c.engine.run(ctx, engineAnswerMax, "exec", node,
		"journalctl", "--unit", "kubelet", "--no-pager", "--output", "cat", "--lines", fmt.Sprint(kubeletLines))
	if err != nil {
		return ""
	}
	return out
}

// kindLog takes what kind says to a user, and writes it to a file.
type kindLog struct {
	mu   sync.Mutex
	file *os.File
}

var _ kindlog.Logger = (*kindLog)(nil)

func openKindLog(path string) (*kindLog, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening kind's log: %w", err)
	}
	return &kindLog{file: file}, nil
}

func (l *kindLog) line(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.file, time.Now().Format("15:04:05.000 ")+strings.TrimRight(format, "\n")+"\n", args...)
}

// Warn writes a warning.
func (l *kindLog) Warn(message string) { l.line("%s", message) }

// Warnf writes a warning.
func (l *kindLog) Warnf(format string, args ...any) { l.line(format, args...) }

// Error writes an error.
func (l *kindLog) Error(message string) { l.line("%s", message) }

// Errorf writes an error.
func (l *kindLog) Errorf(format string, args ...any) { l.line(format, args...) }

// V returns the logger for a level: kubeadm's own output is at 3.
func (l *kindLog) V(level kindlog.Level) kindlog.InfoLogger {
	return kindInfo{l, level <= 3}
}

// kindInfo is the log at one level.
type kindInfo struct {
	log     *kindLog
	enabled bool
}

// Info writes a message.
func (i kindInfo) Info(message string) { i.Infof("%s", message) }

// Infof writes a message.
func (i kindInfo) Infof(format string, args ...any) {
	if i.enabled {
		i.log.line(format, args...)
	}
}

// Enabled says whether anything is written.
func (i kindInfo) Enabled() bool { return i.enabled }
