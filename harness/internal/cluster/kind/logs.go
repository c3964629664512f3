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

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

const (
	// logsTimeout limits the time for writing logs, which must not delay the removal of
	// a cluster for long.
	logsTimeout   = 20 * time.Second
	kubeletLines  = 15
	allLogsSubdir = "kind"
)

// components lists the components of the control plane, each of which has its own log.
var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// writeLogs writes the logs of the components and kubelets. If all is true, it also
// writes all other logs of the nodes. It omits logs that it cannot read.
func (c *Cluster) writeLogs(ctx context.Context, all bool) {
	ctx, cancel := context.WithTimeout(ctx, logsTimeout)
	defer cancel()
	var writes errgroup.Group
	for _, component := range components {
		writes.Go(func() error {
			// A restarted container has several logs; the oldest is first.
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

// writeLog writes the output of a command on a node to a log file.
// It writes no file if the command fails.
func (c *Cluster) writeLog(ctx context.Context, name, node string, command ...string) error {
	out, err := c.engine.run(ctx, logsTimeout, append([]string{"exec", node}, command...)...)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.logDir, name+".log"), []byte(out+"\n"), 0o600)
}

var _ cluster.LogExporter = (*Cluster)(nil)

// ExportLogs writes all logs that `kind export logs` collects to a directory.
// It returns early if ctx is canceled.
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

// kubeletLog returns the last lines of the kubelet log of a node, or "" if it cannot be read.
func (c *Cluster) kubeletLog(ctx context.Context, node string) string {
	out, err := c.engine.run(ctx, engineQueryTimeout, "exec", node,
		"journalctl", "--unit", "kubelet", "--no-pager", "--output", "cat", "--lines", fmt.Sprint(kubeletLines))
	if err != nil {
		return ""
	}
	return out
}

// kindLog writes the messages of kind to a file.
type kindLog struct {
	mu   sync.Mutex
	file *os.File
}

var _ kindlog.Logger = (*kindLog)(nil)

func openKindLog(path string) (*kindLog, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log file for kind: %w", err)
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

// V returns the logger for a verbosity level of kind. Level 3 includes the output of
// kubeadm.
func (l *kindLog) V(level kindlog.Level) kindlog.InfoLogger {
	return kindInfo{l, level <= 3}
}

// kindInfo is the logger for one verbosity level.
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

// Enabled reports whether messages of this level are written.
func (i kindInfo) Enabled() bool { return i.enabled }
